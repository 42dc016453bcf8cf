"""The clock of a running engine: event time follows wall-clock time although nothing arrives.

Rule, per stream: its time is its newest time plus the time that the clock has measured since that
row came. The stream has no rows earlier than this minus its slack and minus the heartbeat's
distance. So a row is late by the heartbeat only if it is delayed by more than slack and distance
together, compared with the newest row before it; whether the times of a stream are near the clock
does not matter. A stream without rows follows the stream that is furthest.

Time never moves back: a clock that is set back counts as one that stood still, and goes on from
there.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from muntin.engine.arrival_clock import ArrivalClock, Clock
from muntin.errors import InputError
from muntin.model.clock import AFTER_ALL, BEFORE_ALL, SECOND, parse_interval
from muntin.runtime.stream_input import StreamState

_log = logging.getLogger("muntin")

_LEAST, _MOST = 0.01, 1.0
"""Seconds between two beats."""


def read_heartbeat(heartbeat: object) -> int:
    """Return the distance of a heartbeat in microseconds.

    >>> read_heartbeat("1 second")
    1000000
    """
    hint = "Give the distance at which time follows the clock, such as '1 second'"
    if not isinstance(heartbeat, str):
        raise InputError(f"the heartbeat cannot be {heartbeat!r}", hint=hint)
    micros = parse_interval(heartbeat)
    if micros <= 0:
        raise InputError(f"the heartbeat {heartbeat!r} is not longer than nothing", hint=hint)
    return micros


class EventClock:
    """Event time of streams by a clock, ``distance`` microseconds behind it.

    Streams that are stamped on arrival are where ``arrivals`` are: no row can be late.
    """

    def __init__(self, clock: Clock, distance: int, arrivals: ArrivalClock | None = None) -> None:
        self._clock = clock
        self._arrivals = ArrivalClock(clock) if arrivals is None else arrivals
        self._distance = distance
        self._read = clock()
        self._elapsed = 0
        self._newest: dict[str, tuple[int, int]] = {}
        """The newest time of each stream, and what had elapsed when it came."""

    def observe(self, streams: Mapping[str, StreamState]) -> None:
        """Read the clock; rows that came since the last call count as having come now."""
        read = self._clock()
        self._elapsed += max(0, read - self._read)
        self._read = read
        for name, state in streams.items():
            newest, _ = self._newest.get(name, (BEFORE_ALL, 0))
            if newest != state.newest:
                self._newest[name] = state.newest, self._elapsed

    def low_marks(self, streams: Mapping[str, StreamState]) -> dict[str, int]:
        """Return for each stream the instant before which it sends no more rows.

        Before the first row on any stream there is no event time, except on those that are stamped.
        """
        self.observe(streams)
        times = {
            name: min(newest + self._elapsed - since, AFTER_ALL - 1)
            for name, (newest, since) in self._newest.items()
            if name in streams
        }
        furthest = max(times.values(), default=BEFORE_ALL)
        return {
            name: self._arrivals.promise()
            if state.stream.arrival
            else times.get(name, furthest) - state.stream.slack - self._distance
            for name, state in streams.items()
            if times or state.stream.arrival
        }


class HeartbeatThread:
    """A thread that calls ``beat`` again and again; a failure ends it and is kept."""

    def __init__(self, beat: Callable[[], None], distance: int) -> None:
        self._beat = beat
        self._seconds = min(max(distance / SECOND, _LEAST), _MOST)
        self._stopped = threading.Event()
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="muntin-heartbeat", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stopped.wait(self._seconds):
                self._beat()
        except BaseException as error:  # noqa: BLE001 (the next call raises it)
            _log.critical("the heartbeat of the engine has stopped", exc_info=error)
            self.failure = error

    def end(self) -> None:
        """Make the thread end after the current beat, without waiting for it."""
        self._stopped.set()

    def stop(self, timeout: float) -> None:
        """End the thread; wait at most ``timeout`` seconds for a beat that is under way."""
        self.end()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)
