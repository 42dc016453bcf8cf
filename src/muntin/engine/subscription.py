"""A subscriber with a separate thread and buffer, so it delays neither the work nor others.

When its buffer is full, results are skipped for it and counted.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

import pyarrow as pa

from muntin.engine.interrupts import Held, wait_for
from muntin.errors import InputError

_log = logging.getLogger("muntin")

BUFFER = 64 << 20
"""Bytes of results that may wait for a subscriber, by default."""

_IDLE = 10.0
"""Seconds after which a subscriber's thread ends, if there is nothing to call it with."""


def checked_subscriber(
    query: str, callback: object, buffer: int, *, takes: str
) -> Callable[..., object]:
    """Return the callback of a subscriber; raise if it or its buffer is none.

    ``takes`` names the arguments of the callback in the error.
    """
    if not callable(callback):
        raise InputError(
            f"a subscriber of query {query} cannot be {callback!r}",
            hint=f"Pass a function of {takes}",
        )
    check_buffer(buffer)
    return callback


def check_buffer(buffer: object) -> None:
    """Raise unless a value is a number of bytes."""
    if type(buffer) is not int or buffer < 1:
        raise InputError(
            f"the buffer of a subscriber cannot be {buffer!r}",
            hint="Give a number of bytes of at least 1",
        )


class Subscription:
    """A subscriber of a query; made by ``subscribe`` of the query's handle."""

    def __init__(
        self,
        query: str,
        callback: Callable[..., object],
        buffer: int,
        ended: Callable[[Subscription], None],
        log: logging.Logger = _log,
    ) -> None:
        self.query = query
        self._log = log
        self.callback = callback
        self._buffer = buffer
        self._ended = ended
        self._changed = threading.Condition()
        self._waiting: deque[tuple[pa.RecordBatch, tuple[object, ...], str]] = deque()
        self._bytes = self._rows = self._left_out = self._failures = 0
        self._calling = self._cancelled = self._ending = False
        self._failure = ""
        self._failed_in: str | None = None
        self._thread: threading.Thread | None = None

    def cancel(self) -> None:
        """Cancel the subscription, also for results that wait."""
        with Held(), self._changed:
            self._cancelled = True
            self._waiting.clear()
            self._bytes = 0
            self._changed.notify_all()
        self._ended(self)

    def offer(self, results: pa.RecordBatch, *more: object, where: str = "") -> None:
        """Take results for the subscriber, or skip them when its buffer is full; never wait.

        It is called with ``results`` and ``more``; ``where`` is for the log.
        """
        with Held(), self._changed:
            if self._cancelled:
                return
            if self._waiting and self._bytes + results.nbytes > self._buffer:
                if not self._left_out:
                    self._log.warning(
                        "a subscriber of query %s is too slow: results are left out for it%s",
                        self.query,
                        where and f" {where}",
                    )
                self._left_out += len(results)
                return
            self._ending = False
            self._waiting.append((results, more, where))
            self._bytes += results.nbytes
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._call, name=f"muntin-subscriber-{self.query}", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def _call(self) -> None:
        while (piece := self._next()) is not None:
            results, more, where = piece
            try:
                self.callback(results, *more)
            except BaseException as error:  # noqa: BLE001 (also sys.exit)
                self._note_failure(error, where)

    def _next(self) -> tuple[pa.RecordBatch, tuple[object, ...], str] | None:
        """Return the next results; None if none come for long, or none will come."""
        with self._changed:
            self._calling = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._waiting or self._cancelled or self._ending, _IDLE)
            if not self._waiting:
                self._thread = None  # the next offer starts another
                return None
            piece = self._waiting.popleft()
            self._bytes -= piece[0].nbytes
            self._rows += len(piece[0])
            self._calling = True
            return piece

    def _note_failure(self, error: BaseException, where: str) -> None:
        """Count a failure; log one per place."""
        with self._changed:
            self._failures += 1
            self._failure = f"{type(error).__name__}: {error}"
            logged, self._failed_in = self._failed_in == where, where
        if not logged:
            self._log.error(
                "a subscriber of query %s failed%s; the run continues",
                self.query,
                where and f" {where}",
                exc_info=error,
            )

    def drain(self, until: float) -> None:
        """Wait until all waiting results are delivered, at most until a ``time.monotonic`` moment.

        Return at once when the subscriber itself calls it.
        """
        if self._thread is threading.current_thread():
            return
        wait_for(
            self._changed, lambda: self._cancelled or not (self._waiting or self._calling), until
        )

    def end_thread(self, seconds: float) -> None:
        """End the thread once all waiting results are delivered; wait at most ``seconds``.

        The next offer starts another thread.
        """
        with Held(), self._changed:
            thread, self._ending = self._thread, True
            self._changed.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join(max(seconds, 0))

    def undelivered(self) -> list[pa.RecordBatch]:
        """Return the results for which it was not called yet."""
        with Held(), self._changed:
            return [results for results, _, _ in self._waiting]

    def stats(self) -> dict[str, object]:
        """Return its counts: results delivered, waiting and skipped, failures, and the last one."""
        with Held(), self._changed:
            waiting = sum(len(results) for results, _, _ in self._waiting)
            return {
                "rows": self._rows,
                "rows_waiting": waiting,
                "rows_left_out": self._left_out,
                "failures": self._failures,
                "last_failure": self._failure or None,
            }
