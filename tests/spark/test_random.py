"""Random queries on Spark from end to end.

Several cases run at once in one streaming query, each with separate streams.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from muntin.plan.query import Emit
from muntin.spark import SparkEngine
from muntin.sql.script import read_query
from muntin.testing.case import Case
from muntin.testing.compare import difference
from muntin.testing.strategies import Shape, cases

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-2")]

EXAMPLES = 50 if os.environ.get("MUNTIN_PROFILE") == "deep" else 2
AT_ONCE = 3


def renamed(query: str, number: int) -> str:
    """Return a case's query with a number appended to the names of its relations.

    A query names relations only in FROM, each before its alias.
    """
    return re.sub(r"\b([ABCT]) (?=[abcd]\b)", rf"\g<1>{number} ", query)


def declare(engine: SparkEngine, case: Case, number: int, folder: Path) -> None:
    for stream in case.streams:
        path = folder / f"{stream.name}{number}"
        path.mkdir()
        options = f", format = 'parquet', path = '{path}', maxFilesPerTrigger = '1')"
        engine.execute(
            stream.sql.replace(f'"{stream.name}"', f"{stream.name}{number}").removesuffix(")")
            + options
        )
    for name, table in case.stored().items():
        engine.table(f"{name}{number}", table)
    engine.query(renamed(case.query, number), name=f"q{number}")
    for batch, piece in enumerate(case.micro_batches(), start=1):
        for name, rows in piece.items():
            file = folder / f"{name}{number}" / f"{batch:03d}.parquet"
            pq.write_table(rows, file)
            os.utime(file, (batch, batch))


def expected(case: Case, end: int) -> pa.Table:
    query = read_query(case.query, "q", case.catalog())
    oracle = case.oracle(query)
    note(case.script(query))
    return oracle.inserts(end) if query.emit is Emit.INSERTS else oracle.changes(end)


@settings(max_examples=EXAMPLES, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    st.lists(cases(Shape(events=16)), min_size=AT_ONCE, max_size=AT_ONCE),
    st.sampled_from([2, 1, 5]),
)
def test_random_queries_give_the_oracles_results(
    spark: SparkSession, drawn: list[Case], partitions: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        engine = SparkEngine(spark, checkpoint=Path(folder) / "checkpoint", partitions=partitions)
        for number, case in enumerate(drawn):
            declare(engine, case, number, Path(folder))
        end = max(case.end for case in drawn)
        engine.process_available(until=end)
        for number, case in enumerate(drawn):
            problem = difference(expected(case, end), engine.results(f"q{number}"))
            assert not problem, f"case {number}, {partitions} partitions: {problem}"
