"""The results of all partitions as one table.

They are in order of time; those of one instant are ordered by partition, then by arrival.
"""

from __future__ import annotations

from functools import cache

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from muntin.expressions.duck import Duck
from muntin.model.catalog import Catalog, Stream
from muntin.plan.query import Query
from muntin.spark.exchange.merge_results import merged
from muntin.sql.script import read_query

_FIELDS = [("k", pa.int64()), ("word", pa.string()), ("ts", pa.timestamp("us"))]


@cache
def _query() -> Query:
    catalog = Catalog()
    catalog.add(Stream("A", pa.schema(_FIELDS), "ts", 0))
    return read_query("SELECT k, word FROM A WINDOW 1 MINUTE", "q", catalog)


_DUCK = Duck()
_VALUES = st.tuples(
    st.integers(0, 5), st.none() | st.integers(0, 9), st.none() | st.sampled_from(["", "a", "bc"])
)
_RUNS = st.lists(st.lists(st.lists(_VALUES, max_size=5), max_size=3), max_size=4)
"""For each partition its chunks."""


@given(_RUNS)
def test_runs_of_partitions_are_merged_by_time_and_nothing_else_is_moved(
    runs: list[list[list[tuple[int, int | None, str | None]]]],
) -> None:
    query = _query()
    tables, rows = [], []
    for run in runs:
        times = iter(sorted(time for chunk in run for time, _, _ in chunk))
        ordered = [[(next(times), k, word) for _, k, word in chunk] for chunk in run]
        rows += [row for chunk in ordered for row in chunk]
        chunks = [
            pa.table(
                [["+"] * len(chunk), *([row[place] for row in chunk] for place in range(3))],
                schema=query.output_schema,
            )
            for chunk in ordered
        ]
        tables.append(pa.concat_tables([query.output_schema.empty_table(), *chunks]))
    found = merged(query, tables, _DUCK, final=True)
    assert found.schema == query.output_schema
    assert found.column("_op").to_pylist() == ["+"] * len(rows)
    columns = [found.column("_ts").cast(pa.int64()), found.column("k"), found.column("word")]
    assert list(zip(*(column.to_pylist() for column in columns), strict=True)) == sorted(
        rows, key=lambda row: row[0]
    )
