"""Who is called with results before their micro-batch ends: marks, subscribers and their threads. No network, no Spark.

A subscriber has a thread and a buffer of its own, so whatever it does, it holds up neither the batch nor the others. When its
buffer is full, results are left out for it and counted; marks show where. Sinks have all of them, all the same.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from muntin.errors import InputError

_log = logging.getLogger("muntin.spark")

BUFFER = 64 << 20
"""Bytes of results that may wait for a subscriber, unless it says otherwise."""

_IDLE = 10.0
"""Seconds after which a subscriber's thread ends, if there is nothing to call it with."""


@dataclass(frozen=True, order=True)
class Mark:
    """Where results stand: micro-batch, bucket, and how many results of the query came from that bucket in that batch before.

    A batch that is tried again gives the same results under the same marks, though perhaps cut into other pieces: the result in
    row ``i`` of a piece is always the one of ``(batch, bucket, sequence + i)``. ``arrived`` is when the bucket got its share of the
    batch, in seconds since 1970; it differs from one attempt to the next and is not compared.
    """

    batch: int
    bucket: int
    sequence: int
    arrived: float = field(default=0.0, compare=False)


Subscriber: TypeAlias = Callable[[pa.RecordBatch, Mark], object]
"""A user's function that is called with results and their mark."""


class Once:
    """Leaves out results that came before, after a batch was tried again; remembers two numbers a bucket.

    Examples
    --------
    >>> once = Once()
    >>> piece = pa.record_batch({"k": [1, 2, 3]})
    >>> len(once.new(piece, Mark(0, 0, 0))), once.new(piece, Mark(0, 0, 1)).column("k").to_pylist()
    (3, [3])
    """

    def __init__(self) -> None:
        self._reached: dict[int, tuple[int, int]] = {}

    def new(self, results: pa.RecordBatch, mark: Mark) -> pa.RecordBatch:
        """What of a piece did not come before, in order; perhaps nothing."""
        reached = self._reached.get(mark.bucket, (-1, 0))
        if mark.batch < reached[0]:
            return results.slice(len(results))
        known = reached[1] if mark.batch == reached[0] else 0
        self._reached[mark.bucket] = (mark.batch, max(known, mark.sequence + len(results)))
        return results.slice(min(max(known - mark.sequence, 0), len(results)))


class Subscription:
    """A subscriber of a query; made by :meth:`muntin.spark.SparkQuery.subscribe`."""

    def __init__(self, query: str, callback: Subscriber, buffer: int, ended: Callable[[Subscription], None]) -> None:
        self.query = query
        self._callback = callback
        self._buffer = buffer
        self._ended = ended
        self._changed = threading.Condition()
        self._waiting: deque[tuple[pa.RecordBatch, Mark]] = deque()
        self._bytes = self._rows = self._left_out = self._failures = 0
        self._calling = self._cancelled = False
        self._failure = ""
        self._failed_in = -1
        self._thread: threading.Thread | None = None

    def cancel(self) -> None:
        """Be called no more, also not with what waits."""
        with self._changed:
            self._cancelled = True
            self._waiting.clear()
            self._bytes = 0
            self._changed.notify_all()
        self._ended(self)

    def offer(self, results: pa.RecordBatch, mark: Mark) -> None:
        """Take results for the subscriber, or leave them out when its buffer is full; never waits."""
        with self._changed:
            if self._cancelled:
                return
            if self._waiting and self._bytes + results.nbytes > self._buffer:
                if not self._left_out:
                    _log.warning(
                        "a subscriber of query %s is too slow: results are left out for it from batch %d on", self.query, mark.batch
                    )
                self._left_out += len(results)
                return
            self._waiting.append((results, mark))
            self._bytes += results.nbytes
            if self._thread is None:
                self._thread = threading.Thread(target=self._call, name=f"muntin-subscriber-{self.query}", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def _call(self) -> None:
        while (piece := self._next()) is not None:
            results, mark = piece
            try:
                self._callback(results, mark)
            except Exception as error:  # noqa: BLE001 (whatever a user's function does, the run and the other subscribers go on)
                self._note_failure(error, mark)

    def _next(self) -> tuple[pa.RecordBatch, Mark] | None:
        """The next piece, once there is one; None when there is none for long, or will be none."""
        with self._changed:
            self._calling = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._waiting or self._cancelled, _IDLE)
            if not self._waiting:
                self._thread = None  # the next offer starts another
                return None
            results, mark = self._waiting.popleft()
            self._bytes -= results.nbytes
            self._rows += len(results)
            self._calling = True
            return results, mark

    def _note_failure(self, error: Exception, mark: Mark) -> None:
        """Count a failure; one of each batch is logged."""
        with self._changed:
            self._failures += 1
            self._failure = f"{type(error).__name__}: {error}"
            told, self._failed_in = self._failed_in == mark.batch, mark.batch
        if not told:
            _log.error("a subscriber of query %s failed in batch %d; the run goes on", self.query, mark.batch, exc_info=error)

    def drain(self, until: float) -> None:
        """Wait until the subscriber was called with all that waits, at most until a moment of ``time.monotonic``; not in its own call."""
        if self._thread is threading.current_thread():
            return
        with self._changed:
            self._changed.wait_for(lambda: self._cancelled or not (self._waiting or self._calling), until - time.monotonic())

    def stats(self) -> dict[str, object]:
        """Results it was called with, that wait, that were left out because it was too slow; how often it failed, and how lastly."""
        with self._changed:
            waiting = sum(len(results) for results, _ in self._waiting)
            return {
                "rows": self._rows,
                "rows_waiting": waiting,
                "rows_left_out": self._left_out,
                "failures": self._failures,
                "last_failure": self._failure or None,
            }


class Subscriptions:
    """The subscribers of an engine. While it runs, a file has the names of their queries, where tasks look before every batch."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._of: dict[str, list[Subscription]] = {}
        self._file: Path | None = None

    def add(self, query: str, callback: Subscriber, buffer: int) -> Subscription:
        """Add a subscriber, from the next batch on."""
        if not callable(callback):
            raise InputError(f"a subscriber of query {query} cannot be {callback!r}", hint="Pass a function of a RecordBatch and its mark")
        if type(buffer) is not int or buffer < 1:
            raise InputError(f"the buffer of a subscriber cannot be {buffer!r}", hint="Give a number of bytes of at least 1")
        subscription = Subscription(query, callback, buffer, self._remove)
        with self._lock:
            self._of.setdefault(query.casefold(), []).append(subscription)
            self._tell()
        return subscription

    def _remove(self, subscription: Subscription) -> None:
        with self._lock:
            key = subscription.query.casefold()
            left = [other for other in self._of.get(key, []) if other is not subscription]
            if left:
                self._of[key] = left
            else:
                self._of.pop(key, None)
            self._tell()

    def forget(self, query: str) -> None:
        """Cancel the subscribers of a query that is dropped."""
        for subscription in self.of(query):
            subscription.cancel()

    def of(self, query: str) -> list[Subscription]:
        """The subscribers of a query."""
        with self._lock:
            return list(self._of.get(query.casefold(), []))

    def take(self, query: str, mark: Mark, results: pa.Table) -> None:
        """Results of a query that a bucket has released, for its subscribers."""
        sequence = mark.sequence
        for piece in results.to_batches():
            if len(piece):
                own = Mark(mark.batch, mark.bucket, sequence, mark.arrived)
                for subscription in self.of(query):
                    subscription.offer(piece, own)
                sequence += len(piece)

    def drain(self, seconds: float) -> None:
        """Wait until all were called with what waits for them, at most so long."""
        until = time.monotonic() + seconds
        with self._lock:
            all_of_them = [subscription for some in self._of.values() for subscription in some]
        for subscription in all_of_them:
            subscription.drain(until)

    # -- what tasks know ---------------------------------------------------------------------------

    def begin(self, file: Path) -> None:
        """The engine runs: from now on the file tells of its subscribers."""
        with self._lock:
            self._file = file
            self._tell()

    def end(self) -> None:
        """The engine does not run any more."""
        with self._lock:
            if self._file is not None:
                self._file.unlink(missing_ok=True)
                self._file = None

    def _tell(self) -> None:
        if self._file is None:
            return
        names = [some[0].query for some in self._of.values()]
        if not names:
            self._file.unlink(missing_ok=True)
            return
        part = self._file.with_suffix(".part")
        part.write_text(json.dumps(names), encoding="utf-8")
        part.replace(self._file)


def subscribed(file: Path) -> frozenset[str]:
    """The names of queries that have subscribers, as tasks find them."""
    try:
        # Opened anew each time, as the program is.
        return frozenset(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return frozenset()
