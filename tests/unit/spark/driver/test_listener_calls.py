"""The thread that calls listeners, without Spark."""

from __future__ import annotations

import json
import threading
import time
from unittest.mock import MagicMock

import pytest

from muntin.spark.driver import listener_calls
from muntin.spark.driver.listener_calls import ListenerCalls, progress_text
from muntin.spark.driver.query_events import EventKind, QueryEvent


def event(number: int, kind: EventKind = EventKind.PROGRESS) -> QueryEvent:
    return QueryEvent(kind, str(number), "run", "q")


class Gate:
    """Takes events, each when it is allowed to."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.seen: list[str] = []

    def __call__(self, taken: QueryEvent) -> None:
        assert self.open.wait(30)
        self.seen.append(taken.id)
        if taken.id == "13":
            raise OSError("no session")


def threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "muntin-listeners"]


@pytest.fixture
def gate() -> Gate:
    return Gate()


def test_events_come_in_order_and_the_thread_ends_after_them(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_calls, "_LINGER", 0.05)
    gate.open.set()
    calls = ListenerCalls(MagicMock(), call=gate)
    calls.put([])
    assert not threads()
    for start in (0, 10):
        calls.put([event(number) for number in range(start, start + 10)])
        assert calls.drain(30)
        until = time.monotonic() + 30
        while threads():
            assert time.monotonic() < until
            time.sleep(0.01)
    assert gate.seen == [str(number) for number in range(20)]


def test_behind_a_slow_listener_the_oldest_progress_is_left_out(gate: Gate) -> None:
    calls = ListenerCalls(MagicMock(), most=4, call=gate)
    calls.put([event(0, EventKind.STARTED)])
    until = time.monotonic() + 30
    while calls._since is None:  # the thread is in the first call
        assert time.monotonic() < until
        time.sleep(0.01)
    calls.put([event(1, EventKind.STARTED), *map(event, range(2, 9))])
    calls.put([event(9, EventKind.TERMINATED)])
    assert (calls.left_out, gate.seen) == (5, [])
    assert not calls.drain(0.05)
    gate.open.set()
    assert calls.drain(30)
    assert gate.seen == ["0", "1", "7", "8", "9"]


def test_starts_and_ends_are_bounded_too(gate: Gate) -> None:
    calls = ListenerCalls(MagicMock(), most=3, call=gate)
    calls.put([event(number, EventKind.STARTED) for number in range(100)])
    assert len(calls._waiting) <= 3
    gate.open.set()
    assert calls.drain(30)


def test_a_call_that_does_not_return_is_waited_for_once(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_calls, "_STUCK", 0.1)
    calls = ListenerCalls(MagicMock(), call=gate)
    calls.put([event(0)])
    time.sleep(0.2)
    began = time.monotonic()
    assert not calls.drain(30)
    assert time.monotonic() - began < 5
    gate.open.set()
    while calls._since is not None:
        assert time.monotonic() - began < 30
        time.sleep(0.01)
    assert calls.drain(30)


def test_a_listener_may_wait_for_the_engine_that_calls_it() -> None:
    drained = []
    calls = ListenerCalls(MagicMock(), call=lambda _: drained.append(calls.drain(30)))
    calls.put([event(0)])
    assert calls.drain(30)
    assert drained == [False]


def test_progress_becomes_a_text_with_all_fields_that_java_needs() -> None:
    progress = {
        "id": "1",
        "sources": [{"description": "files"}],
        "sink": {"description": "memory", "numOutputRows": 3},
        "muntin": {"results": 7},
    }
    assert json.loads(progress_text(progress)) == {
        "id": "1",
        "batchDuration": 0,
        "eventTime": {},
        "stateOperators": [],
        "observedMetrics": {},
        "sources": [{"metrics": {}, "description": "files"}],
        "sink": {
            "description": "memory",
            "numOutputRows": 3,
            "metrics": {"muntin": '{"results": 7}'},
        },
    }
