"""The events of the queries of a run, in the form of Spark's: started, progress, idle, terminated.

Spark reports on one streaming query, in which all queries of an engine run. From the reports on its
batches follow the events of each query. This is a state machine without I/O: a query starts with
the first report that has it and ends with the first that lacks it, with its suspension, or with the
run.

Batches with rows are reported late, through Spark's listeners, and those without rows at once. So
reports are put in the order of their numbers, which have no gaps. Spark drops reports of which it
has too many; a gap is skipped once :data:`_AHEAD` later batches wait.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from muntin.errors import MuntinError
from muntin.spark.driver.query_state import own_progress, query_run_id
from muntin.spark.driver.suspended_queries import suspension

_AHEAD = 16
"""Batches that wait for the report of an earlier one."""

Counts: TypeAlias = Mapping[str, Any]
"""Our counts after a batch, the part of progress under ``muntin``."""


class EventKind(StrEnum):
    """The kinds of events; values are the methods of a listener of Spark's."""

    STARTED = "onQueryStarted"
    PROGRESS = "onQueryProgress"
    IDLE = "onQueryIdle"
    TERMINATED = "onQueryTerminated"


@dataclass(frozen=True)
class QueryEvent:
    """An event of a query; ``progress`` and ``error`` are those of its kind."""

    kind: EventKind
    id: str
    run_id: str
    name: str
    timestamp: str = ""
    progress: Mapping[str, Any] | None = None
    error: MuntinError | None = None


class QueryEvents:
    """Derives the events of the queries of one run; threads may report at the same time.

    Parameters
    ----------
    first : int
        The number of the first batch of the run.
    current : callable
        Returns the current counts.
    emit : callable
        Takes events, in order; it must return at once.
    """

    def __init__(
        self,
        first: int,
        current: Callable[[], Counts],
        emit: Callable[[Sequence[QueryEvent]], None],
    ) -> None:
        self._next = first
        self._current = current
        self._emit = emit
        self._lock = threading.Lock()
        self._run = ""
        self._active: dict[str, str] = {}
        self._suspended: set[str] = set()
        self._waiting: dict[int, tuple[Mapping[str, Any], Counts]] = {}

    def begin(self, run: str, timestamp: str) -> None:
        """Start all queries, except those that stay suspended."""
        counts = self._current()
        with self._lock:
            self._run = run
            self._suspended = {
                query["id"]
                for query in counts["queries"].values()
                if query["suspended"] is not None
            }
            self._emit(list(self._start(counts, timestamp)))

    def report(self, progress: Mapping[str, Any], counts: Counts) -> None:
        """Take the progress of a batch, with the counts after it."""
        number = counts["batch"]["number"]
        with self._lock:
            if number < self._next:
                return  # reported before
            self._waiting[number] = (progress, counts)
            if len(self._waiting) > _AHEAD:
                self._next = min(self._waiting)
            self._emit(list(self._ordered()))

    def _ordered(self) -> Iterator[QueryEvent]:
        while self._next in self._waiting:
            yield from self._after(*self._waiting.pop(self._next))
            self._next += 1

    def _after(self, progress: Mapping[str, Any], counts: Counts) -> Iterator[QueryEvent]:
        """Yield the events of a batch."""
        present = {query["id"] for query in counts["queries"].values()}
        yield from self._end([own for own in self._active if own not in present], None)
        self._suspended &= present
        yield from self._start(counts, progress["timestamp"])
        for name, query in counts["queries"].items():
            own = query["id"]
            if own not in self._active:
                continue
            yield self._event(
                EventKind.PROGRESS, own, progress=own_progress(progress, counts, name)
            )
            if query["suspended"] is not None:
                self._suspended.add(own)
                yield from self._end([own], suspension(name, query["suspended"]))

    def idle(self, timestamp: str) -> None:
        """Report that there was nothing to process."""
        with self._lock:
            self._emit(
                [self._event(EventKind.IDLE, own, timestamp=timestamp) for own in self._active]
            )

    def end(self, error: MuntinError | None) -> None:
        """End all queries with the run; those that were dropped meanwhile end without an error."""
        present = {query["id"] for query in self._current()["queries"].values()}
        with self._lock:
            events: list[QueryEvent] = []
            for number in sorted(self._waiting):
                events += self._after(*self._waiting.pop(number))
            events += self._end([own for own in self._active if own not in present], None)
            events += self._end([*self._active], error)
            self._emit(events)

    def _start(self, counts: Counts, timestamp: str) -> Iterator[QueryEvent]:
        for name, query in counts["queries"].items():
            own = query["id"]
            if own not in self._active and own not in self._suspended:
                self._active[own] = name
                yield self._event(EventKind.STARTED, own, timestamp=timestamp)

    def _end(self, ids: Sequence[str], error: MuntinError | None) -> Iterator[QueryEvent]:
        for own in ids:
            yield self._event(EventKind.TERMINATED, own, error=error)
            del self._active[own]

    def _event(self, kind: EventKind, own: str, **rest: Any) -> QueryEvent:
        return QueryEvent(kind, own, query_run_id(self._run, own), self._active[own], **rest)
