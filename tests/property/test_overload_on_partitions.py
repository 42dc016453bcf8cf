"""Operators above limited joins on partitions: exact over the matches that the joins make.

A second query emits the matches themselves, under the same limits, so its join makes the same
choices. Both are rebuilt from retained batches or from snapshots, and moved to other partitions.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from unittest.mock import patch

import duckdb
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from muntin.model.catalog import Catalog, Stream
from muntin.spark.exchange.controls import ControlRow, ProbeLimits
from muntin.spark.partition import recovery
from muntin.sql.script import read_query
from muntin.state import stream_log
from muntin.testing.compare import accumulate
from muntin.testing.golden import StreamDeclaration
from muntin.testing.partition_driver import PartitionDriver
from tests.property.test_overload_above_joins import ABOVE, JOIN, Rows

SCHEMA = pa.schema([("k", pa.int32()), ("v", pa.int32()), ("ts", pa.timestamp("us"))])
COLUMNS = (("k", "INT"), ("v", "INT"), ("ts", "TIMESTAMP"))
LIMITED = {"overload": "adapt", "sharing": "off", "replan": "off", "tree": "((A, B), C)"}
CLAUSES = "WINDOW 3 SECONDS FRESHNESS {} SECONDS"
MATCHES = f"SELECT A.k AS k, A.v + B.v AS v {JOIN}"
STEPS = st.sampled_from(["feed", "feed", "feed", "limit", "limit", "rebuild", "rescale"])


def limits_of(
    names: list[str], rates: list[float | None], work: float | None, partitions: int
) -> ControlRow:
    """Return a control row that limits each join the same way in each partition."""
    limits = tuple(
        ProbeLimits(name, (tuple(rates),) * partitions, (None,) * partitions, (work,) * partitions)
        for name in names
    )
    return ControlRow("limits", limits=limits, late_after=4_000_000)


def above(sql: str, matches: pa.Table) -> Counter[tuple[object, ...]]:
    """Return the rows of a query over a table of matches."""
    with duckdb.connect() as oracle:
        oracle.register("matches", matches)
        return Counter(oracle.execute(sql.format("matches", "matches")).fetchall())


def rows_of(table: pa.Table | None) -> Counter[tuple[object, ...]] | None:
    """Return a bag of rows."""
    return None if table is None else Counter(tuple(row.values()) for row in table.to_pylist())


@st.composite
def dense_rows(draw: st.DrawFn) -> Rows:
    """Draw rows at distinct times, so many inside each window that limits leave matches out.

    No two of them are a window apart, so that what leaves never cancels what comes.
    """
    gaps = draw(st.lists(st.sampled_from([50_001, 200_001, 900_001]), min_size=24, max_size=40))
    found, time = [], 0
    for gap in gaps:
        time += gap
        key, value = draw(st.integers(0, 1)), draw(st.integers(0, 3))
        found.append((draw(st.sampled_from("ABC")), time, key, value))
    return found


@settings(max_examples=settings().max_examples // 4)
@given(
    dense_rows(),
    st.sampled_from(sorted(ABOVE)),
    st.integers(3, 5),
    st.sampled_from([-(10**6), 20_000]),
    st.data(),
)
def test_answers_are_those_over_the_matches_after_any_restart(
    rows: Rows, operator: str, fresh: int, few: int, data: st.DataObject
) -> None:
    partitions, seed = data.draw(st.integers(1, 3)), data.draw(st.integers(0, 9))
    clauses = CLAUSES.format(fresh)
    sql = f"{ABOVE[operator].format(f'({MATCHES}) x', f'({MATCHES}) x')} {clauses} EMIT CHANGES"
    catalog = Catalog()
    for name in "ABC":
        catalog.add(Stream(name, SCHEMA, "ts", 0))
    names = ["m", *(join.name for join in read_query(sql, "q", catalog).joins)]
    with (
        closing(PartitionDriver(LIMITED, partitions, seed)) as driver,
        patch.object(recovery, "FEW", few),
        patch.object(recovery, "MANY", 0 if few < 0 else recovery.MANY),
        patch.object(stream_log, "_FEW", 0),
    ):
        for name in "ABC":
            driver.declare(StreamDeclaration(name, COLUMNS))
        driver.query("m", f"{MATCHES} {clauses} EMIT CHANGES")
        driver.query("q", sql)
        driver.change("overload", "queue")
        driver.query("x", f"{MATCHES} {clauses} EMIT CHANGES")
        left, now = rows, 0
        while left:
            match data.draw(STEPS):
                case "feed":
                    count = data.draw(st.integers(1, 12))
                    taken, left = left[:count], left[count:]
                    for name in "ABC":
                        own = [(k, v, time) for stream, time, k, v in taken if stream == name]
                        if own:
                            columns = [list(column) for column in zip(*own, strict=True)]
                            driver.feed(name, pa.table(columns, schema=SCHEMA))
                    now = taken[-1][1]
                    driver.advance(now)
                case "limit":
                    rate = st.sampled_from([None, 0.0, 0.7, 3.0])
                    rates = data.draw(st.lists(rate, min_size=4, max_size=4))
                    work = data.draw(st.sampled_from([None, None, 0.5, 6.0]))
                    driver.control(limits_of(names, rates, work, partitions))
                case "rebuild":
                    driver.rebuild()
                case "rescale":
                    partitions = data.draw(st.integers(1, 3))
                    driver.rescale(partitions)
            matches, found = driver.answer("m"), rows_of(driver.answer("q"))
            if matches is not None and found is not None:
                assert +found == above(ABOVE[operator], matches)
        driver.advance(now + 10_000_000)
        assert not len(accumulate(driver.take("m"))), "everything that came has gone"
        made, possible = (Counter(came(driver, name)) for name in "mx")
        assert made <= possible


def came(driver: PartitionDriver, query: str) -> list[tuple[object, ...]]:
    """Return the matches that a query ever emitted, with their times."""
    driver._taken[query] = 0
    return [tuple(row.values()) for row in driver.take(query).to_pylist() if row["_op"] == "+"]
