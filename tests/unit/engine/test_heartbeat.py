"""The clock of a running engine: time moves and rows expire although nothing arrives."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

import muntin
from muntin.engine.heartbeat import EventClock, HeartbeatThread
from muntin.errors import CatalogError, InputError
from muntin.model.catalog import Stream
from muntin.model.clock import BEFORE_ALL
from muntin.runtime.stream_input import StreamState

SECOND = 1_000_000
START = 1_000 * SECOND
SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])


class FakeClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


def streams(**newest: int) -> dict[str, StreamState]:
    made = {}
    for order, (name, time_of_row) in enumerate(newest.items()):
        made[name] = StreamState(Stream(name, SCHEMA, "ts", slack=2, order=order))
        made[name].newest = time_of_row
    return made


def wait_until(done: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not done():
        assert time.monotonic() < until, "it happens within half a minute"
        time.sleep(0.002)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def engine(clock: FakeClock) -> Iterator[muntin.Engine]:
    made = muntin.Engine(clock=clock)
    for name in "AB":
        made.stream(name, {"k": "bigint", "ts": "timestamp"}, slack="2 seconds")
    yield made
    made.stop()


def test_a_stream_is_at_its_newest_time_and_what_passed_minus_slack_and_distance() -> None:
    clock = FakeClock()
    event_clock = EventClock(clock, 10)
    known = streams(A=500, B=700)
    assert event_clock.low_marks(known) == {"A": 488, "B": 688}
    clock.now += 100
    assert event_clock.low_marks(known) == {"A": 588, "B": 788}
    known["A"].newest = 510
    assert event_clock.low_marks(known) == {"A": 498, "B": 788}, "A counts from its new row"


def test_a_stream_without_rows_follows_the_one_that_is_furthest(clock: FakeClock) -> None:
    event_clock = EventClock(clock, 10)
    known = streams(A=500, B=700, C=BEFORE_ALL)
    assert event_clock.low_marks(known)["C"] == 688


def test_without_any_row_there_is_no_event_time(clock: FakeClock) -> None:

    assert EventClock(clock, 10).low_marks(streams(A=BEFORE_ALL, B=BEFORE_ALL)) == {}


def test_a_clock_that_is_set_back_stands_still_and_goes_on(clock: FakeClock) -> None:
    event_clock = EventClock(clock, 0)
    known = streams(A=500)
    found = []
    for step in (0, 50, -1_000_000, 30, -1, 1):
        clock.now += step
        found.append(event_clock.low_marks(known)["A"] - 498)
    assert found == [0, 50, 50, 80, 80, 81]


def test_rows_expire_although_nothing_arrives(engine: muntin.Engine, clock: FakeClock) -> None:
    query = engine.query("SELECT k FROM A WINDOW 10 SECONDS EMIT CHANGES")
    engine.start(heartbeat="20 ms")
    engine.push("A", [(1, "2020-01-01 00:00:00")])
    time.sleep(0.1)
    assert query.poll().num_rows == 0, "the clock stands"
    clock.now += 3 * SECOND
    wait_until(lambda: len(query.answer()) == 1)
    assert query.poll().column("_op").to_pylist() == ["+"]
    clock.now += 60 * SECOND
    wait_until(lambda: len(query.answer()) == 0)
    changes = query.poll()
    assert changes.column("_op").to_pylist() == ["-"]
    assert str(changes.column("_ts")[0].as_py()) == "2020-01-01 00:00:10"


def test_rows_within_slack_and_distance_are_not_late(
    engine: muntin.Engine, clock: FakeClock
) -> None:
    query = engine.query("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 HOUR")
    engine.start(heartbeat="1 second")
    engine.push("A", [(1, 100 * SECOND)])
    engine.push("B", [(1, 100 * SECOND)])
    clock.now += 20 * SECOND
    wait_until(lambda: engine.stats()["watermark"] == "1970-01-01 00:01:57")
    engine.push("A", [(2, 117 * SECOND), (3, 117 * SECOND - 1)])
    assert engine.late("A").column("k").to_pylist() == [3]
    clock.now -= 500 * SECOND
    engine.push("B", [(2, 117 * SECOND)])

    def answered() -> bool:
        clock.now += SECOND // 10
        return len(query.answer()) == 2

    wait_until(answered)
    assert engine.late("B").num_rows == 0


def test_a_silent_stream_does_not_hold_back_results(
    engine: muntin.Engine, clock: FakeClock
) -> None:
    query = engine.query("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 HOUR")
    engine.start(heartbeat="10 ms")
    engine.push("B", [(1, 50 * SECOND)])
    engine.push("A", [(1, 100 * SECOND)])
    clock.now += 60 * SECOND
    results: list[pa.Table] = []

    def has_come() -> bool:
        results.append(query.poll())
        return len(results[-1]) > 0

    wait_until(has_come)
    assert results[-1].column("k").to_pylist() == [1]
    assert len(query.answer()) == 1


def test_a_query_that_fails_by_the_heartbeat_is_suspended(
    engine: muntin.Engine, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = engine.query("SELECT k FROM A WINDOW 10 SECONDS EMIT CHANGES", name="good")
    bad = engine.query("SELECT k + 1 AS x FROM B WINDOW 10 SECONDS EMIT CHANGES", name="bad")
    engine.start(heartbeat="10 ms")
    engine.push("A", [(1, 0)])
    engine.push("B", [(1, 0)])

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(engine.dataflow.queries["bad"], "taken", fail)
    clock.now += 60 * SECOND
    wait_until(lambda: bad.stats()["suspended"] is not None)
    signs: list[str] = []

    def ended() -> bool:
        signs.extend(good.poll().column("_op").to_pylist())
        return len(signs) == 2

    wait_until(ended)
    assert signs == ["+", "-"], "the other query continues"


def test_stop_returns_and_leaves_no_thread(engine: muntin.Engine) -> None:
    engine.start(heartbeat="10 ms")
    begun = time.monotonic()
    engine.stop()
    assert time.monotonic() - begun < 10
    assert not [each for each in threading.enumerate() if each.name == "muntin-heartbeat"]
    engine.start(heartbeat="10 ms")
    with pytest.raises(CatalogError, match="running"):
        engine.start(heartbeat="10 ms")


def test_stop_returns_while_a_beat_hangs() -> None:
    release = threading.Event()

    def hang() -> None:
        release.wait(30)

    heartbeat = HeartbeatThread(hang, 1)
    time.sleep(0.05)
    begun = time.monotonic()
    heartbeat.stop(0.1)
    assert time.monotonic() - begun < 10
    release.set()


def test_a_clock_that_fails_is_reported_by_the_next_call(
    engine: muntin.Engine, clock: FakeClock
) -> None:
    engine.query("SELECT k FROM A WINDOW 10 SECONDS")
    engine.start(heartbeat="10 ms")
    clock.now = None  # type: ignore[assignment]
    wait_until(lambda: engine._live._heartbeat.failure is not None)  # type: ignore[union-attr]
    with pytest.raises(TypeError):
        engine.push("A", [(1, 0)])
    with pytest.raises(TypeError):
        engine.stop()
    engine.stop()


@pytest.mark.parametrize("heartbeat", ["soon", "0 seconds", "-1 second", 5, True])
def test_a_wrong_heartbeat_is_refused(engine: muntin.Engine, heartbeat: object) -> None:
    with pytest.raises(InputError):
        engine.start(heartbeat=heartbeat)  # type: ignore[arg-type]
    engine.start()


def test_a_heartbeat_needs_a_clock() -> None:
    with pytest.raises(InputError, match="no clock"):
        muntin.Engine(clock=None).start(heartbeat="1 second")
