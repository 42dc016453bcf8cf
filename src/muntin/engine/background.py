"""An engine that runs in the background: a thread processes rows as they come, in short turns.

With a heartbeat, a second thread moves event time although no rows come.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from weakref import WeakSet

from muntin.engine.executor import Executor
from muntin.engine.fair_lock import FairLock
from muntin.engine.heartbeat import EventClock, HeartbeatThread
from muntin.engine.query_registry import QueryRegistry
from muntin.errors import CatalogError
from muntin.operators.join.schedule import TurnPace
from muntin.runtime.dataflow import Dataflow, Frontier

_TURN = TurnPace(first=400_000, longest=400_000, results=1 << 12)
"""A turn of the executor: less than half a millisecond; results are built in other turns."""
_LONG_TURN = TurnPace(first=50_000_000, longest=50_000_000)

_PATIENCE = 1.0
"""Seconds that a turn or a beat gets in any case."""
_running: WeakSet[Live] = WeakSet()


@atexit.register
def _abandon_all() -> None:
    """End all threads: while Python ends, they would lose the modules that they need."""
    for live in list(_running):
        live.abandon()


class Live:
    """The background part of an engine; only ``stop`` and ``settle`` run without the lock.

    Nothing in it refers to the engine: an engine without references is released at once, with its
    connections to DuckDB, which warns about late ones.
    """

    def __init__(
        self,
        lock: FairLock,
        dataflow: Dataflow,
        registry: QueryRegistry,
        suspend: Callable[[], None],
    ) -> None:
        self._lock = lock
        self._dataflow = dataflow
        self._registry = registry
        self._deliveries = registry.deliveries
        self._suspend = suspend
        self._executor: Executor | None = None
        self._heartbeat: HeartbeatThread | None = None
        self._clock: EventClock | None = None
        self._turn = 0

    def start(self, clock: EventClock | None = None, distance: int = 0) -> None:
        """Work in a thread from now on; with a clock, time moves by it, seen from a distance."""
        if self._executor is not None:
            raise CatalogError("the engine is running", hint="Stop it first")
        self._set_live(live=True)
        self._executor = Executor(self._work, self._lock)
        self._executor.wake()
        self._clock = clock
        if clock is not None:
            clock.observe(self._dataflow.streams)
            self._heartbeat = HeartbeatThread(self._beat, distance)
        _running.add(self)

    def _beat(self) -> None:
        """Move event time to where the clock is, and process what that makes final."""
        with self._lock:
            if self._executor is None or self._clock is None or self._executor.failure is not None:
                return
            marks = self._clock.low_marks(self._dataflow.streams)
            if marks:
                self._registry.take(self._dataflow.offer({}, Frontier(low_marks=marks)))
                self._suspend()
                self.wake()

    def stop(self, timeout: float) -> bool:
        """Finish and end the thread; return whether there was one.

        Raises the failure that ended it before, if there was one.
        """
        with self._lock:
            executor, heartbeat = self._executor, self._heartbeat
            if executor is None:
                return False
            if heartbeat is not None:
                heartbeat.end()
            if executor.failure is None:
                self.finish()
            self._set_live(live=False)
            executor.end()
            self._executor = self._heartbeat = None
        until = time.monotonic() + timeout
        executor.stop(max(timeout, _PATIENCE))
        if heartbeat is not None:
            heartbeat.stop(max(until - time.monotonic(), _PATIENCE))
        self._deliveries.end_threads(until - time.monotonic())
        failure = executor.failure or (heartbeat.failure if heartbeat is not None else None)
        if failure is not None:
            raise failure
        return True

    def abandon(self) -> None:
        """End the thread whatever is left to do: the process ends."""
        if self._heartbeat is not None:
            self._heartbeat.stop(_PATIENCE)
        if self._executor is not None:
            self._executor.stop(_PATIENCE)
            self._deliveries.end_threads(_PATIENCE)

    def settle(self, timeout: float | None) -> bool:
        """Wait until all work is done and all results are delivered; return whether that is so."""
        executor = self._executor
        until = time.monotonic() + (threading.TIMEOUT_MAX if timeout is None else timeout)
        if executor is not None:
            if not executor.wait(timeout):
                return False
            self._deliveries.drain(until - time.monotonic())
        return time.monotonic() < until

    def is_running(self) -> bool:
        """Return whether there is a thread; raise the failure that ended one, if one did."""
        for thread in (self._executor, self._heartbeat):
            if thread is not None and thread.failure is not None:
                raise thread.failure
        return self._executor is not None

    def wake(self) -> None:
        """Process what the dataflow was offered."""
        assert self._executor is not None, "there is a thread"
        if self._clock is not None:
            with suppress(Exception):  # a clock that fails ends the heartbeat, not a push
                self._clock.observe(self._dataflow.streams)
        self._executor.wake()
        if self._has_failed():
            self.finish()

    def finish(self) -> None:
        """Complete all work, then suspend what failed: before queries change, and at the end."""
        while busy := self._dataflow.busy():
            for group, join in busy:
                self._registry.take(group.turn(join, _LONG_TURN))
        if self._has_failed():
            self._suspend()

    def _has_failed(self) -> bool:
        return any(group.failed for group in self._dataflow.groups)

    def _set_live(self, *, live: bool) -> None:
        self._deliveries.live = live
        self._dataflow.set_live(live=live)

    def _work(self) -> bool:
        """Work for a turn on the next join that has any work; return whether some is left."""
        busy = self._dataflow.busy()
        if busy:
            self._turn += 1
            group, join = busy[self._turn % len(busy)]
            self._registry.take(group.turn(join, _TURN))
            if self._has_failed():
                self.finish()
            if self._dataflow.busy():
                return True
        self._dataflow.groups.trim()
        return False
