"""An engine in a background thread: input while it works, subscribers, changes of queries."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import muntin
from muntin.errors import CatalogError, InputError
from muntin.testing.compare import assert_same_sequence

SECOND = 1_000_000
WINDOWS = (1, 5, 15, 30, 60)


def rows(count: int, seed: int, keys: int = 50, first: int = 0) -> pa.Table:
    """Return rows of a stream, a thousand per second."""
    drawn = np.random.default_rng(seed)
    times = pa.array(first + np.arange(count, dtype=np.int64) * 1_000).cast(pa.timestamp("us"))
    return pa.table({"k": drawn.integers(0, keys, count), "v": np.arange(count), "ts": times})


def made(**settings: object) -> muntin.Engine:
    engine = muntin.Engine(**settings)
    for name in "AB":
        engine.stream(name, {"k": "bigint", "v": "bigint", "ts": "timestamp"}, time="ts")
    return engine


def sql(window: int) -> str:
    return f"SELECT A.v AS x, B.v AS y FROM A, B WHERE A.k = B.k WINDOW {window} SECONDS"


@pytest.fixture
def engine() -> Iterator[muntin.Engine]:
    made_engine = made()
    yield made_engine
    made_engine.stop()


class Collector:
    """A subscriber that keeps its calls."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []

    def __call__(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)

    def table(self, schema: pa.Schema) -> pa.Table:
        return pa.Table.from_batches(self.batches, schema)


@pytest.mark.parametrize("scheduler", ["lwo", "swf", "mqt"])
def test_subscribers_get_what_poll_gives_without_it(scheduler: str) -> None:
    live, plain = made(scheduler=scheduler), made(scheduler=scheduler)
    collectors = {}
    for window in WINDOWS:
        collectors[window] = Collector()
        live.query(sql(window), name=f"q{window}").subscribe(collectors[window])
        plain.query(sql(window), name=f"q{window}")
    live.start()
    for begin in range(0, 12_000, 2_000):
        for number, name in enumerate("AB"):
            part = rows(12_000, number, keys=10_000).slice(begin, 2_000)
            live.push(name, part)
            plain.push(name, part)
    live.stop()
    for window in WINDOWS:
        wanted = plain.handle(f"q{window}").poll()
        assert len(wanted) > 0
        assert_same_sequence(wanted, collectors[window].table(wanted.schema))
        assert not len(live.handle(f"q{window}").poll()), (
            "results of a query with subscribers are not kept"
        )


def test_without_subscribers_results_are_there_for_poll(engine: muntin.Engine) -> None:
    query = engine.query(sql(5))
    engine.start()
    engine.push("A", rows(2_000, 1))
    engine.push("B", rows(2_000, 2))
    assert engine.settle(60)
    assert len(query.poll()) > 0


def test_a_small_window_is_served_before_a_large_one(engine: muntin.Engine) -> None:
    """In a burst, most results of the smallest window come before half of the large one's work."""
    order: list[int] = []
    for window in (1, 600):
        engine.query(sql(window), name=f"q{window}").subscribe(
            lambda batch, window=window: order.extend([window] * len(batch))  # type: ignore[misc]
        )
    for number, name in enumerate("AB"):
        engine.push(name, rows(20_000, number, keys=200))
    engine.start()
    order.clear()
    for number, name in enumerate("AB"):
        engine.push(name, rows(1_500, number, keys=200, first=20_000_000))
    engine.stop()
    large = [place for place, window in enumerate(order) if window == 600]
    small = [place for place, window in enumerate(order) if window == 1]
    assert len(small) > 500
    assert np.median(small) < np.median(large) / 2


def test_rows_are_taken_within_a_few_turns_while_it_works(engine: muntin.Engine) -> None:
    """A push waits for one turn of work, not for all of the work, which takes a second."""
    for window in (1, 600):
        engine.query(sql(window), name=f"q{window}").subscribe(Collector())
    engine.start()
    for number, name in enumerate("AB"):
        engine.push(name, rows(10_000, number, keys=50))
    waits = []
    for number in range(50):
        begin = time.monotonic()
        engine.push("A", rows(1, number, keys=50, first=10_000_000 + number))
        waits.append(time.monotonic() - begin)
    begin = time.monotonic()
    assert engine.settle(120)
    left = time.monotonic() - begin
    assert np.median(waits) < max(left / 20, 0.05)


def test_a_subscriber_that_fails_is_reported_and_the_others_continue(
    engine: muntin.Engine, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(batch: pa.RecordBatch) -> None:
        raise ValueError(f"cannot take {len(batch) > 0}")

    query = engine.query(sql(5), name="q")
    good = Collector()
    query.subscribe(fail)
    query.subscribe(good)
    engine.start()
    with caplog.at_level(logging.ERROR, "muntin"):
        engine.push("A", rows(1_000, 1))
        engine.push("B", rows(1_000, 2))
        assert engine.settle(60)
    assert sum(len(batch) for batch in good.batches) == query.stats()["rows_out"]
    reported = query.stats()["subscribers"]
    assert isinstance(reported, list)
    assert reported[0]["failures"] > 0
    assert reported[0]["last_failure"] == "ValueError: cannot take True"
    assert reported[1]["failures"] == 0
    assert [record.getMessage() for record in caplog.records] == [
        "a subscriber of query q failed; the run continues"
    ]


def test_a_blocking_subscriber_delays_no_other(engine: muntin.Engine) -> None:
    go_on = threading.Event()
    query = engine.query(sql(5), name="q")
    slow, good = [], Collector()

    def block(batch: pa.RecordBatch) -> None:
        go_on.wait(60)
        slow.append(len(batch))

    query.subscribe(block, buffer=1)
    query.subscribe(good)
    engine.start()
    for number in range(10):
        for name in "AB":
            engine.push(name, rows(200, number, first=number * 200_000))
    while sum(len(batch) for batch in good.batches) < 1_000:
        time.sleep(0.01)
    go_on.set()
    assert engine.settle(60)
    reported = query.stats()["subscribers"]
    assert isinstance(reported, list)
    assert reported[0]["rows_left_out"] > 0
    assert (
        reported[0]["rows"] + reported[0]["rows_left_out"]
        == reported[1]["rows"]
        == query.stats()["rows_out"]
    )
    assert sum(slow) == reported[0]["rows"]


def test_a_cancelled_subscriber_is_called_no_more(engine: muntin.Engine) -> None:
    query = engine.query(sql(5))
    collector = Collector()
    subscription = query.subscribe(collector)
    engine.start()
    subscription.cancel()
    engine.push("A", rows(1_000, 1))
    engine.push("B", rows(1_000, 2))
    assert engine.settle(60)
    assert not collector.batches


def test_queries_are_added_and_dropped_while_it_works(engine: muntin.Engine) -> None:
    collectors = {window: Collector() for window in (5, 60, 600)}
    engine.query(sql(5), name="q5").subscribe(collectors[5])
    engine.start()
    for step in range(6):
        if step == 2:
            engine.query(sql(600), name="q600").subscribe(collectors[600])
            engine.query(sql(60), name="q60").subscribe(collectors[60])
        if step == 4:
            engine.drop("q600")
        for number, name in enumerate("AB"):
            engine.push(name, rows(1_000, number + step, keys=200, first=step * SECOND))
    engine.stop()
    times = {
        window: collector.table(engine.handle("q5").poll().schema)
        .column("_ts")
        .cast(pa.int64())
        .to_numpy()
        for window, collector in collectors.items()
    }
    assert times[5].min() < SECOND
    # The last row of B before a change waits for A to pass it.
    assert times[60].min() >= 2 * SECOND - 1_000 > times[5].min()
    assert times[600].min() >= 2 * SECOND - 1_000
    assert times[600].max() < 4 * SECOND <= times[60].max()


def test_the_rows_a_new_query_finds_do_not_depend_on_the_progress_of_the_thread() -> None:
    def found(*, live: bool) -> int:
        engine = made()
        if live:
            engine.start()
        engine.push("A", [(1, 0, 5 * SECOND), (1, 1, 6 * SECOND)])
        engine.push(
            "B", [(1, 0, 5 * SECOND)]
        )  # now what A had at 5 s is final, and no query needs it
        query = engine.query(
            "SELECT A.v AS x, C.v AS y FROM A, A AS C WHERE A.k = C.k WINDOW 6 SECONDS"
        )
        engine.push("A", [(1, 2, 7 * SECOND)])
        engine.advance(60 * SECOND)
        engine.stop()
        return int(query.poll().num_rows)

    # Half of the queries would find it if they were added before it was released.
    assert {found(live=True) for _ in range(30)} == {found(live=False)}


def test_starting_twice_is_refused_and_stopping_twice_is_fine(engine: muntin.Engine) -> None:
    engine.start()
    with pytest.raises(CatalogError, match="the engine is running"):
        engine.start()
    engine.stop()
    engine.stop()
    engine.start()


def test_only_functions_can_subscribe(engine: muntin.Engine) -> None:
    query = engine.query(sql(5), name="q")
    with pytest.raises(InputError, match="a subscriber of query q cannot be 7"):
        query.subscribe(7)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="the buffer of a subscriber cannot be 0"):
        query.subscribe(Collector(), buffer=0)


def test_a_failure_of_the_work_is_raised_by_the_next_call(
    engine: muntin.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.query(sql(5))
    engine.start()

    def fail(*_: object) -> bool:
        raise MemoryError("no room")

    assert engine.settle(60)
    monkeypatch.setattr(engine._live._executor, "_work", fail)
    engine.push("A", rows(10, 1))
    assert engine.settle(60)
    with pytest.raises(MemoryError, match="no room"):
        engine.push("A", rows(10, 1, first=SECOND))
    with pytest.raises(MemoryError, match="no room"):
        engine.stop()


def test_memory_is_released_when_rows_have_expired(engine: muntin.Engine) -> None:
    engine.query(sql(1), name="q1").subscribe(Collector())
    engine.query(sql(2), name="q2").subscribe(Collector())
    engine.start()
    for step in range(30):
        for number, name in enumerate("AB"):
            engine.push(name, rows(1_000, number, first=step * SECOND))
        assert engine.settle(60)
    streams = engine.stats()["streams"]
    assert isinstance(streams, dict)
    assert all(stream["rows_logged"] < 8_000 for stream in streams.values())
    buffers = engine.handle("q1").stats()["buffers"]
    assert isinstance(buffers, dict)
    assert buffers["held"] == 0
    assert buffers["input"] <= 1, "the last row of B waits for A to pass it"
    assert buffers["most_input"] > 0
