"""A dataflow restored from a snapshot, taken anywhere, continues as if it had never stopped."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, note
from hypothesis import strategies as st

from muntin.model.catalog import Stream
from muntin.runtime.codec import decode, encode
from muntin.runtime.dataflow import Dataflow, Frontier
from muntin.runtime.snapshot import Snapshot
from muntin.testing.dataflows import batches_of, dataflow_of

SECOND = 1_000_000
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us"))])
STREAMS = [Stream(name, SCHEMA, "ts") for name in "AB"]
QUERIES = {
    "inserts": "SELECT A.v AS x, B.v AS y FROM A, B WHERE A.k = B.k WINDOW 4 SECONDS",
    "changes": "SELECT A.v AS x FROM A, B WHERE A.k = B.k WINDOW 3 SECONDS EMIT CHANGES",
    "rows": "SELECT A.v AS x, B.v AS y FROM A [ROWS 3], B [RANGE 5 SECONDS] WHERE A.k = B.k",
    "partitioned": "SELECT A.v AS x FROM A [PARTITION BY k ROWS 2], B [ROWS 2] WHERE A.k = B.k",
    "every": "SELECT k, v FROM A WINDOW 4 SECONDS EVERY 2 SECONDS EMIT CHANGES",
    "counts": "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM A GROUP BY k WINDOW 5 SECONDS",
    "except": "SELECT k FROM A EXCEPT SELECT k FROM B WINDOW 3 SECONDS",
}
Row = tuple[int, int, int]
"""A key, a value, and the seconds since the row before."""
ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 99), st.integers(0, 2)), max_size=5)


def made() -> Dataflow:
    return dataflow_of(STREAMS, QUERIES, partition=True)


def table_of(rows: list[Row], start: int) -> pa.Table:
    times, now = [], start
    for _, _, step in rows:
        now += step * SECOND
        times.append(now)
    return pa.table(
        [
            pa.array([k for k, _, _ in rows], pa.int64()),
            pa.array([v for _, v, _ in rows], pa.int64()),
            pa.array(times, pa.int64()).cast(pa.timestamp("us")),
        ],
        schema=SCHEMA,
    )


def results(dataflow: Dataflow, rows: dict[str, pa.Table], now: int) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    for name, table in dataflow.step(batches_of(dataflow, rows), Frontier(final=(now, 1))):
        found.setdefault(name, []).extend(table.to_pylist())
    return found


@given(st.lists(st.tuples(ROWS, ROWS, st.integers(-2, 1)), min_size=1, max_size=8), st.data())
def test_a_restored_dataflow_continues_as_if_it_had_never_stopped(
    batches: list[tuple[list[Row], list[Row], int]], data: st.DataObject
) -> None:
    """The frontier may be behind the newest rows, so that some wait, or ahead of them."""
    unbroken, other = made(), made()
    start = 0
    for first, second, ahead in batches:
        rows = {"A": table_of(first, start), "B": table_of(second, start)}
        newest = max(
            start, *(start + sum(row[2] for row in own) * SECOND for own in (first, second))
        )
        start = newest
        now = newest + ahead * SECOND
        if data.draw(st.booleans(), label="restore"):
            frame = encode(other.snapshot(), "dataflow")
            other = made()
            other.restore(decode(frame, "dataflow", Snapshot, "a snapshot"))
        wanted = results(unbroken, rows, now)
        note(f"{now}: {wanted}")
        assert results(other, rows, now) == wanted
    end = Frontier(advanced=start + 60 * SECOND)
    unbroken_end = {name: table.to_pylist() for name, table in unbroken.step(frontier=end)}
    assert {name: table.to_pylist() for name, table in other.step(frontier=end)} == unbroken_end
