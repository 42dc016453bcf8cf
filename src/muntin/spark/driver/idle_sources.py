"""Find sources that have stopped sending, so that they do not hold back their stream.

A stream declares with ``idle`` how long a source may be silent. The driver measures it with its
clock and sends a control row, which partitions keep with the rows of its batch: a replay finds the
same sources idle at the same place. A source that sends again in that very batch is not idle.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from muntin.model.catalog import Stream
from muntin.model.kafka import KafkaStream
from muntin.spark.exchange.controls import ControlRow
from muntin.spark.exchange.source_times import Source

_BEAT = 0.5
"""Seconds between two looks at the clock."""


def idle_limits(streams: Iterable[Stream]) -> dict[str, float]:
    """Return for each stream that has the option ``idle`` the seconds of silence."""
    given = {stream.name: KafkaStream.of(stream) for stream in streams}
    return {
        name: kafka.idle / 1e6
        for name, kafka in given.items()
        if kafka is not None and kafka.idle is not None
    }


class IdleSources:
    """Notes when sources sent rows, and sends control rows for those that are silent too long.

    ``send`` gets control rows; ``clock`` returns seconds. Threads may use it together.
    """

    def __init__(
        self, send: Callable[[ControlRow], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._send = send
        self._clock = clock
        self._lock = threading.Lock()
        self._limits: Mapping[str, float] = {}
        self._last: dict[Source, float] = {}
        """When each source that is not known to be idle sent rows."""
        self._idle: set[Source] = set()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def observe(self, reports: Iterable[Mapping[str, Any]]) -> None:
        """Take the reports of the partitions on a batch."""
        now = self._clock()
        with self._lock:
            for report in reports:
                self._idle.update((stream, source) for stream, source in report.get("idle", ()))
                for stream, sources in report.get("active", {}).items():
                    for source in sources:
                        self._last[stream, source] = now
                        self._idle.discard((stream, source))
                for stream, times in report.get("sources", {}).items():
                    for source in times:
                        self._last.setdefault((stream, source), now)

    def check(self) -> None:
        """Send a control row if sources have become idle."""
        now = self._clock()
        with self._lock:
            found = tuple(
                sorted(
                    source
                    for source, last in self._last.items()
                    if source not in self._idle
                    and now - last >= self._limits.get(source[0], float("inf"))
                )
            )
            self._idle.update(found)
        if found:
            self._send(ControlRow("idle", idle=found))

    def start(self, limits: Mapping[str, float]) -> None:
        """Look at the clock in a thread until :meth:`stop`, if a stream has a limit."""
        with self._lock:
            self._limits = limits
            # An engine that did not run cannot tell who was silent meanwhile.
            now = self._clock()
            self._last = dict.fromkeys(self._last, now)
            self._idle.clear()
        if limits:
            self._stopped.clear()
            self._thread = threading.Thread(target=self._run, name="muntin-idle", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._stopped.wait(_BEAT):
            self.check()

    def stop(self, timeout: float = 10.0) -> None:
        """Look no more."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(timeout)
            self._thread = None
