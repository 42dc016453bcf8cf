"""Rows that are stamped when they arrive: in order of arrival, never late, whatever the clock."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import muntin
from muntin.engine.arrival_clock import ArrivalClock
from muntin.errors import InputError, SqlError
from muntin.model.clock import BEFORE_ALL
from muntin.testing.compare import assert_same_changes, assert_same_sequence

SECOND = 1_000_000
START = 1_000 * SECOND
QUERIES = {
    "pairs": "SELECT A.v AS x, B.v AS y FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS",
    "counts": "SELECT k, COUNT(*) AS n FROM A GROUP BY k WINDOW 5 SECONDS",
    "rows": "SELECT A.v FROM A [ROWS 2], B [ROWS 3] WHERE A.k = B.k EMIT CHANGES",
}


class FakeClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


def made(clock: FakeClock) -> muntin.Engine:
    engine = muntin.Engine(clock=clock)
    for name in "AB":
        engine.stream(name, {"k": "bigint", "v": "bigint"}, time="arrival")
    return engine


def test_stamps_increase_although_the_clock_is_set_back() -> None:
    clock = FakeClock()
    arrivals = ArrivalClock(clock)
    assert [arrivals.stamp(BEFORE_ALL), arrivals.stamp(BEFORE_ALL)] == [START, START + 1]
    clock.now -= SECOND
    assert arrivals.stamp(BEFORE_ALL) == START + 2
    assert arrivals.stamp(after=START + 10) == START + 11
    clock.now += 2 * SECOND
    assert arrivals.promise() == START + SECOND
    clock.now -= SECOND
    assert arrivals.stamp(BEFORE_ALL) == START + SECOND, "what was promised holds"


def test_the_rows_of_a_push_have_one_time_and_no_stream_holds_back_another() -> None:
    clock = FakeClock()
    engine = made(clock)
    pairs = engine.query(QUERIES["pairs"])
    everything = engine.query("SELECT * FROM A WINDOW 1 HOUR")
    engine.push("B", [(1, 10)])
    engine.push("A", [(1, 20), (1, 21)])
    assert pairs.poll().to_pydict()["x"] == [20, 21]
    found = everything.poll()
    assert found.column_names == ["_op", "_ts", "k", "v", "_arrival"]
    assert found.column("_arrival").cast(pa.int64()).to_pylist() == [START + 1] * 2
    assert found.column("_ts").cast(pa.int64()).to_pylist() == [START + 1] * 2


def test_an_advance_beyond_the_clock_makes_nothing_late() -> None:
    engine = made(FakeClock())
    query = engine.query(QUERIES["counts"])
    engine.advance(START + 100 * SECOND)
    engine.push("A", [(1, 1)])
    engine.push("A", [])
    assert engine.late("A").num_rows == 0
    assert query.answer().to_pylist() == [{"k": 1, "n": 1}]
    engine.advance(START + 200 * SECOND)
    assert query.answer().num_rows == 0


def test_rows_after_a_long_silence_are_not_too_far_ahead() -> None:
    clock = FakeClock()
    engine = made(clock)
    query = engine.query(QUERIES["counts"])
    engine.push("A", [(1, 1)])
    clock.now += 10_000 * 86_400 * SECOND
    engine.push("A", [(1, 1)])
    assert (engine.late("A").num_rows, query.answer().num_rows) == (0, 1)


def test_with_a_heartbeat_rows_expire_and_a_clock_set_back_makes_nothing_late() -> None:
    clock = FakeClock()
    engine = made(clock)
    query = engine.query("SELECT v FROM A WINDOW 5 SECONDS EMIT CHANGES")
    engine.start(heartbeat="10 ms")
    try:
        engine.push("A", [(1, 1)])
        clock.now += 60 * SECOND
        changes: list[str] = []
        for _ in range(3000):
            engine.settle(0.01)
            changes += query.poll().column("_op").to_pylist()
            if len(changes) == 2:
                break
        assert changes == ["+", "-"]
        clock.now -= 300 * SECOND
        engine.push("A", [(2, 2)])
        assert engine.late("A").num_rows == 0
    finally:
        engine.stop()
    engine.advance(clock.now + 400 * SECOND)
    assert query.poll().column("_op").to_pylist() == ["+", "-"]


PUSHES = st.lists(
    st.tuples(
        st.sampled_from("AB"),
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), min_size=1, max_size=3),
        st.sampled_from([0, 1, SECOND, 3 * SECOND, 5 * SECOND, -4 * SECOND]),
    ),
    max_size=12,
)


@given(PUSHES)
def test_results_are_those_of_the_same_times_in_a_column(
    pushes: list[tuple[str, list[tuple[int, int]], int]],
) -> None:
    clock = FakeClock()
    stamped, timed = made(clock), muntin.Engine(clock=None)
    for name in "AB":
        timed.stream(name, {"k": "bigint", "v": "bigint", "t": "timestamp"})
    handles = {
        name: (stamped.query(sql, name), timed.query(sql, name)) for name, sql in QUERIES.items()
    }
    seen = {name: stamped.query(f"SELECT * FROM {name} WINDOW 1 SECOND") for name in "AB"}
    last = BEFORE_ALL
    for stream, rows, step in pushes:
        clock.now += step
        stamped.push(stream, rows)
        arrived = seen[stream].poll().select(["k", "v", "_arrival"])
        times = set(arrived.column("_arrival").cast(pa.int64()).to_pylist())
        assert len(arrived) == len(rows), "it is final at once"
        assert min(times) > last
        last = max(times)
        timed.push(stream, arrived.rename_columns(["k", "v", "t"]))
    for engine in (stamped, timed):
        engine.advance(last + 20 * SECOND if pushes else START)
    for name, (got, wanted) in handles.items():
        compare = assert_same_sequence if name == "pairs" else assert_same_changes
        compare(wanted.poll(), got.poll())
    assert stamped.late("A").num_rows + stamped.late("B").num_rows == 0


def test_a_column_called_arrival_still_holds_the_time() -> None:
    engine = muntin.Engine()
    engine.stream("A", {"k": "int", "arrival": "timestamp"}, time="arrival")
    query = engine.query("SELECT k FROM A WINDOW 1 SECOND")
    engine.push("A", [(1, 5)])
    assert query.poll().column("_ts").cast(pa.int64()).to_pylist() == [5]


def test_what_does_not_go_together_is_refused() -> None:
    engine = muntin.Engine()
    with pytest.raises(InputError, match="never late"):
        engine.stream("A", {"k": "int"}, time="arrival", slack="1 second")
    with pytest.raises(InputError, match="has a column _Arrival"):
        engine.stream("A", {"_Arrival": "timestamp"}, time="arrival")
    with pytest.raises(SqlError, match="never late"):
        engine.execute("CREATE STREAM A (k INT) WITH (time = 'arrival', slack = '1 second')")
    with pytest.raises(InputError, match="no clock"):
        muntin.Engine(clock=None).stream("A", {"k": "int"}, time="arrival")
    engine.execute("CREATE STREAM A (k INT) WITH (time = 'ARRIVAL')")
    with pytest.raises(InputError, match="does not have 1 values"):
        engine.push("A", [(1, "2026-01-01")])
