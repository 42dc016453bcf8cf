"""An engine that runs by itself: rows are offered to the joins as they come, and a thread works them off in short turns."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Iterator
from weakref import WeakMethod, WeakSet

import pyarrow as pa

from muntin.engine.delivery import Deliveries
from muntin.engine.executor import Executor
from muntin.engine.fair_lock import Turns
from muntin.errors import CatalogError
from muntin.operators.join.schedule import TurnPace
from muntin.runtime.query_group import QueryGroup
from muntin.runtime.query_groups import QueryGroups
from muntin.runtime.running_join import RunningJoin
from muntin.runtime.running_query import RunningQuery

_TURN = TurnPace(first=400_000, longest=400_000, results=1 << 12)
"""A turn of the executor: less than half a millisecond of joining; what was found is handed out in other turns."""
_LONG_TURN = TurnPace(first=50_000_000, longest=50_000_000)


_PATIENCE = 1.0
_running: WeakSet[Live] = WeakSet()


@atexit.register
def _abandon_all() -> None:
    """Threads that still work when Python ends would do so without what they need."""
    for live in list(_running):
        live.abandon()


class Live:
    """The running part of an engine; ``rest`` is called when all is worked off. Only ``stop`` and ``settle`` without holding ``turns``."""

    def __init__(
        self,
        turns: Turns,
        groups: QueryGroups,
        deliveries: Deliveries,
        rest: Callable[[], None],
        suspend: Callable[[], None],
    ) -> None:
        self._turns = turns
        self._groups = groups
        self._suspend = WeakMethod(suspend)
        self._deliveries = deliveries
        # Weak: an engine that nobody holds any more goes at once, with the connections of DuckDB, which complains of late ones.
        self._rest = WeakMethod(rest)
        self._executor: Executor | None = None
        self._turn = 0

    def start(self) -> None:
        """Work in a thread from now on."""
        if self._executor is not None:
            raise CatalogError("the engine is running", hint="Stop it first")
        self._be_live(live=True)
        self._executor = Executor(self._work, self._turns)
        self._executor.wake()
        _running.add(self)

    def stop(self, timeout: float) -> bool:
        """Finish, and end the thread; whether there was one. Raises what had ended it before."""
        with self._turns:
            executor = self._executor
            if executor is None:
                return False
            if executor.failure is None:
                self.finish()
            self._be_live(live=False)
            executor.end()
            self._executor = None
        executor.stop()
        self._deliveries.rest(timeout)
        if executor.failure is not None:
            raise executor.failure
        return True

    def abandon(self) -> None:
        """End the thread whatever is left to do: the process ends."""
        if self._executor is not None:
            self._executor.stop()
            self._deliveries.rest(_PATIENCE)

    def settle(self, timeout: float | None) -> bool:
        """Wait until nothing is left to do and all subscribers were called, at most so long; whether that is so."""
        executor = self._executor
        until = time.monotonic() + (threading.TIMEOUT_MAX if timeout is None else timeout)
        if executor is not None:
            if not executor.wait(timeout):
                return False
            self._deliveries.drain(until - time.monotonic())
        return time.monotonic() < until

    def offer(self, group: QueryGroup) -> bool:
        """Let the joins of a group take what is final, and the thread go on with it; False when there is none."""
        if self._executor is None:
            return False
        if self._executor.failure is not None:
            raise self._executor.failure
        for join in list(group.joins.running):
            self._hand(group, join, join.offer(group.frontier[0], group.closed))
        self._executor.wake()
        return True

    def finish(self) -> None:
        """Work off all there is, then suspend what failed: before queries come or go, and before the end."""
        while any(join.is_busy() for _, join in self._joins()):
            for group, join in self._joins():
                self._hand(group, join, join.turn(_LONG_TURN))
        suspend = self._suspend()
        if suspend is not None and any(group.guard.failed for group in self._groups):
            suspend()

    def _joins(self) -> list[tuple[QueryGroup, RunningJoin]]:
        return [(group, join) for group in self._groups for join in group.joins.running]

    def _be_live(self, *, live: bool) -> None:
        self._deliveries.live = live
        for _, join in self._joins():
            join.be_live(live=live)

    def _work(self) -> bool:
        """A turn of work on the next join that has any; whether something is left."""
        busy = [(group, join) for group, join in self._joins() if join.is_busy()]
        if busy:
            self._turn += 1
            group, join = busy[self._turn % len(busy)]
            self._hand(group, join, join.turn(_TURN))
            if group.guard.failed:
                self.finish()
            if any(join.is_busy() for _, join in self._joins()):
                return True
        rest = self._rest()
        if rest is not None:
            rest()
        return False

    def _hand(
        self, group: QueryGroup, join: RunningJoin, results: Iterator[tuple[RunningQuery, pa.Table]]
    ) -> None:
        for running, table in group.guard.join(join, results):
            self._deliveries.hand(running.query.name, table)
