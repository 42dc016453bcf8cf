"""The last answer of each window, from the changes of the answer."""

from __future__ import annotations

import pyarrow as pa

from muntin.operators.final_rows import final_rows
from muntin.plan.query import WindowEnd

INSTANT = pa.timestamp("us")
SCHEMA = pa.schema([("_op", pa.string()), ("_ts", INSTANT), ("n", pa.int64())])


def changes(*rows: tuple[str, int, int, int | None]) -> pa.Table:
    op, ts, n, bound = (list(column) for column in zip(*rows, strict=True))
    times = [pa.array(column, pa.int64()).cast(INSTANT) for column in (ts, bound)]
    return pa.table([pa.array(op), times[0], pa.array(n), times[1]], names=["_op", "_ts", "n", "b"])


def test_rows_are_final_that_leave_at_the_end_of_their_window_and_no_others() -> None:
    found = final_rows(
        changes(("+", 1, 5, 10), ("-", 4, 5, 10), ("+", 10, 7, 10), ("-", 10, 6, 10)),
        WindowEnd(1, 0),
        SCHEMA,
    )
    assert found.schema == SCHEMA
    assert found.column("_op").to_pylist() == ["+"]
    assert found.column("_ts").cast(pa.int64()).to_pylist() == [10]
    assert found.column("n").to_pylist() == [6]


def test_the_end_may_be_told_by_the_start_of_the_window_and_be_unknown() -> None:
    found = final_rows(
        changes(("-", 10, 1, None), ("-", 10, 2, 0), ("-", 10, 3, 10)), WindowEnd(1, 10), SCHEMA
    )
    assert found.column("n").to_pylist() == [2]
