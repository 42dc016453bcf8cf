"""The handle of a query waits, stops and raises as Spark's StreamingQuery does."""

from __future__ import annotations

import threading
import time
from typing import Any
from unittest.mock import MagicMock

import pytest

from muntin.errors import MuntinError, QuerySuspendedError, RunError
from muntin.plan.description import Description
from muntin.plan.explanation import Explanation
from muntin.spark import SparkQuery

SUSPENDED = QuerySuspendedError("q", "nothing works")
FAILED = RunError("the run failed")


class Engine:
    """An engine and the state of its only query."""

    name = "q"

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.registered = self.running = True
        self.failed: RunError | None = None
        self.suspended: QuerySuspendedError | None = None

    def handle(self) -> SparkQuery:
        state: Any = self
        return SparkQuery(self, MagicMock(), state)

    # -- the engine

    def drop(self, name: str) -> None:
        self.calls.append(f"drop {name}")
        self.registered = False

    def process_available(self) -> None:
        self.calls.append("process")

    def await_termination(self) -> bool:
        self.calls.append("await")
        if self.failed is not None:
            raise self.failed
        return True

    def exception(self) -> RunError | None:
        return self.failed

    def explain(self, query: str | None = None) -> Explanation:
        return Explanation([Description("query", f"plan of {query}")])

    # -- the state of the query

    def run_id(self) -> str:
        return "run"

    def is_registered(self) -> bool:
        return self.registered

    def is_active(self) -> bool:
        return self.registered and self.running and self.suspended is None

    def suspension(self) -> QuerySuspendedError | None:
        return self.suspended if self.registered else None

    def check_registered(self) -> None:
        if not self.registered:
            raise MuntinError("there is no query q")


def test_stop_drops_the_query_once() -> None:
    engine = Engine()
    handle = engine.handle()
    handle.stop()
    handle.stop()
    assert engine.calls == ["drop q"]
    assert not handle.isActive
    assert handle.exception() is None
    assert handle.awaitTermination() is True


def test_waiting_ends_in_time_or_when_the_query_is_dropped() -> None:
    engine = Engine()
    handle = engine.handle()
    began = time.monotonic()
    assert handle.awaitTermination(0.2) is False
    assert 0.2 <= time.monotonic() - began < 5
    threading.Timer(0.1, handle.stop).start()
    assert handle.awaitTermination() is True


def test_waiting_raises_the_error_of_a_failed_run_and_lets_the_engine_release_it() -> None:
    engine = Engine()
    engine.running, engine.failed, engine.suspended = False, FAILED, SUSPENDED
    handle = engine.handle()
    assert handle.exception() is FAILED
    with pytest.raises(RunError) as raised:
        handle.awaitTermination()
    assert raised.value is FAILED
    assert engine.calls == ["await"]


def test_a_suspended_query_raises_while_the_engine_runs() -> None:
    engine = Engine()
    engine.suspended = SUSPENDED
    handle = engine.handle()
    assert handle.exception() is SUSPENDED
    for wait in (handle.awaitTermination, handle.processAllAvailable):
        with pytest.raises(QuerySuspendedError) as raised:
            wait()
        assert raised.value is SUSPENDED
    assert engine.calls == ["process"], "the input is processed for the other queries"


def test_the_input_is_not_processed_for_a_dropped_query() -> None:
    engine = Engine()
    handle = engine.handle()
    handle.processAllAvailable()
    handle.stop()
    with pytest.raises(MuntinError, match="there is no query q"):
        handle.processAllAvailable()
    assert engine.calls == ["process", "drop q"]
    assert handle.explain() == "plan of q"
