"""Subscribers without Spark.

Each has a separate thread and buffer, so none affects the others.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from muntin.engine import subscription
from muntin.engine.subscription import BUFFER
from muntin.errors import InputError
from muntin.spark.driver.subscriptions import Subscriptions
from muntin.spark.exchange.deployment_file import DeploymentFile
from muntin.spark.exchange.marks import Mark, Once
from muntin.spark.storage import LocalStorage

Came = list[tuple[Mark, list[int]]]


def piece(*values: int) -> pa.Table:
    return pa.table({"v": pa.array(values, pa.int64())})


def noting(came: Came) -> Callable[[pa.RecordBatch, Mark], None]:
    return lambda batch, mark: came.append((mark, batch.column("v").to_pylist()))


@contextmanager
def blocked() -> Iterator[tuple[threading.Event, Callable[[pa.RecordBatch, Mark], None], Came]]:
    """Yield a subscriber that blocks until the event is set, or the test ends."""
    go_on, came = threading.Event(), Came()

    def stand(batch: pa.RecordBatch, mark: Mark) -> None:
        assert go_on.wait(60)
        noting(came)(batch, mark)

    try:
        yield go_on, stand, came
    finally:
        go_on.set()


def test_every_subscriber_of_a_query_gets_its_results_in_order_with_their_marks() -> None:
    subscriptions = Subscriptions()
    first, second, other = Came(), Came(), Came()
    subscriptions.add("q", noting(first), BUFFER)
    subscriptions.add("Q", noting(second), BUFFER)
    subscriptions.add("other", noting(other), BUFFER)
    subscriptions.take("q", Mark(3, 1, 0, 12.5), pa.concat_tables([piece(1, 2), piece(), piece(3)]))
    subscriptions.take("q", Mark(3, 1, 3), piece(4))
    subscriptions.drain(10)
    assert first == second == [(Mark(3, 1, 0), [1, 2]), (Mark(3, 1, 2), [3]), (Mark(3, 1, 3), [4])]
    assert first[1][0].arrived == 12.5
    assert other == []


def test_a_failing_subscriber_is_called_again_and_reported_once_per_batch(
    caplog: pytest.LogCaptureFixture,
) -> None:
    subscriptions = Subscriptions()
    came = Came()

    def fail(batch: pa.RecordBatch, mark: Mark) -> None:
        raise ZeroDivisionError(f"row {batch.column('v')[0]} of {mark.batch}")

    failing = subscriptions.add("q", fail, BUFFER)
    subscriptions.add("q", noting(came), BUFFER)
    with caplog.at_level(logging.ERROR, "muntin.spark"):
        for batch in (0, 1):
            for sequence in range(3):
                subscriptions.take("q", Mark(batch, 0, sequence), piece(sequence))
        subscriptions.drain(10)
    assert len(came) == 6, "the other one notices nothing"
    assert failing.stats() == {
        "rows": 6, "rows_waiting": 0, "rows_left_out": 0, "failures": 6,
        "last_failure": "ZeroDivisionError: row 2 of 1",
    }  # fmt: skip
    said = [
        f"a subscriber of query q failed in batch {batch}; the run continues" for batch in (0, 1)
    ]
    assert [record.getMessage() for record in caplog.records] == said
    assert all(record.exc_info for record in caplog.records)


def test_results_for_a_blocked_subscriber_are_dropped_counted_and_visible_in_marks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    subscriptions = Subscriptions()
    came = Came()
    with blocked() as (go_on, stand, late):
        slow = subscriptions.add("q", stand, buffer=24)
        subscriptions.add("q", noting(came), BUFFER)
        for sequence in range(10):
            began = time.monotonic()
            subscriptions.take("q", Mark(0, 0, sequence), piece(sequence))
            assert time.monotonic() - began < 5, "nobody waits for it"
            if sequence == 0:
                while slow.stats()["rows"] != 1:  # it has the first one in hand
                    time.sleep(0.001)
        subscriptions.drain(0.1)
        assert slow.stats()["rows_waiting"] == 3, "as many as fit"
        assert slow.stats()["rows_left_out"] == 6
        go_on.set()
        subscriptions.drain(10)
        subscriptions.take("q", Mark(0, 0, 10), piece(10))
        subscriptions.drain(10)
    assert [mark.sequence for mark, _ in late] == [0, 1, 2, 3, 10], "a jump shows what is missing"
    assert [mark.sequence for mark, _ in came] == list(range(11))
    assert [record.getMessage() for record in caplog.records] == [
        "a subscriber of query q is too slow: results are left out for it in batch 0"
    ]


def test_a_piece_larger_than_the_buffer_is_delivered_when_nothing_else_waits() -> None:
    subscriptions = Subscriptions()
    came = Came()
    subscriptions.add("q", noting(came), buffer=1)
    subscriptions.take("q", Mark(0, 0, 0), piece(1, 2, 3))
    subscriptions.drain(10)
    assert came == [(Mark(0, 0, 0), [1, 2, 3])]


def test_a_cancelled_subscriber_is_not_called_again_even_if_it_cancels_itself() -> None:
    subscriptions = Subscriptions()
    came = Came()

    def once(batch: pa.RecordBatch, mark: Mark) -> None:
        noting(came)(batch, mark)
        own.cancel()

    own = subscriptions.add("q", once, BUFFER)
    for sequence in range(3):
        subscriptions.take("q", Mark(0, 0, sequence), piece(sequence))
    subscriptions.drain(10)
    assert came == [(Mark(0, 0, 0), [0])]
    assert subscriptions.of("q") == []
    own.cancel()


def test_a_subscriber_may_wait_for_all_without_waiting_for_itself() -> None:
    subscriptions = Subscriptions()
    waited: list[float] = []

    def wait(batch: pa.RecordBatch, mark: Mark) -> None:
        del batch, mark
        began = time.monotonic()
        subscriptions.drain(30)
        waited.append(time.monotonic() - began)

    subscriptions.add("q", wait, BUFFER)
    subscriptions.take("q", Mark(0, 0, 0), piece(1))
    subscriptions.drain(10)
    assert waited[0] < 10


def test_the_thread_of_an_idle_subscriber_ends_and_starts_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subscription, "_IDLE", 0.01)
    subscriptions = Subscriptions()
    threads: list[threading.Thread] = []
    subscriptions.add("q", lambda *_: threads.append(threading.current_thread()), BUFFER)
    for sequence in range(2):
        subscriptions.take("q", Mark(0, 0, sequence), piece(1))
        subscriptions.drain(10)
        threads[sequence].join(10)
        assert not threads[sequence].is_alive()
    assert threads[0] is not threads[1]


def test_tasks_find_the_names_while_the_engine_runs(tmp_path: Path) -> None:
    file, tasks = tmp_path / "subscribed", DeploymentFile(LocalStorage(tmp_path))
    subscriptions = Subscriptions()
    first = subscriptions.add("q", print, BUFFER)
    assert tasks.subscribed_queries() == frozenset()
    subscriptions.begin(tasks)
    assert tasks.subscribed_queries() == {"q"}
    second = subscriptions.add("Other", print, BUFFER)
    assert tasks.subscribed_queries() == {"q", "Other"}
    first.cancel()
    assert tasks.subscribed_queries() == {"Other"}
    second.cancel()
    assert not file.exists()
    subscriptions.add("q", print, BUFFER)
    subscriptions.forget("Q")
    subscriptions.add("p", print, BUFFER)
    assert tasks.subscribed_queries() == {"p"}
    subscriptions.end()
    assert not file.exists()
    file.write_text('["of a run that crashed"]', encoding="utf-8")
    Subscriptions().begin(tasks)
    assert not file.exists()


def test_what_cannot_be_a_subscriber_is_refused() -> None:
    subscriptions = Subscriptions()
    nothing: object = None
    with pytest.raises(InputError, match="a subscriber of query q cannot be None"):
        subscriptions.add("q", nothing, BUFFER)  # type: ignore[arg-type]
    for buffer in (0, -1, True, 1.5):
        with pytest.raises(InputError, match="the buffer of a subscriber cannot be"):
            subscriptions.add("q", print, buffer)  # type: ignore[arg-type]
    assert subscriptions.of("q") == []


def pieces(random: Random, batch: int, partition: int, rows: int) -> list[tuple[Mark, list[int]]]:
    """Return the results of a partition in a batch, cut at random.

    An attempt that ends halfway has only the first of them.
    """
    cuts = sorted({0, rows, *(random.randint(0, rows) for _ in range(4))})
    return [
        (Mark(batch, partition, begin), list(range(begin, end))) for begin, end in pairwise(cuts)
    ]


@pytest.mark.parametrize("seed", range(30))
def test_results_of_earlier_attempts_are_left_out_for_any_cut(seed: int) -> None:
    random = Random(seed)
    once, found = Once(), {}
    for batch in range(3):
        for partition in range(2):
            found[batch, partition] = list[int]()
        attempts = [
            (partition, random.random() < 0.7) for partition in range(2) for _ in range(3)
        ] + [
            (0, False),
            (1, False),
        ]
        for partition, ends_early in attempts:
            sent = pieces(random, batch, partition, 20)
            for mark, values in sent[: random.randint(0, len(sent)) if ends_early else None]:
                found[batch, partition] += (
                    once.new(piece(*values).to_batches()[0], mark).column("v").to_pylist()
                )
    assert all(values == list(range(20)) for values in found.values())
    assert len(once.new(piece(1).to_batches()[0], Mark(1, 0, 30))) == 0, (
        "a batch before the last cannot come again"
    )
