"""Who is called with results before their micro-batch ends: subscribers, and the marks they get. No network, no Spark.

Results that were left out for a subscriber that is too slow (:mod:`muntin.engine.subscription`) show in its marks. Sinks have all of
them, all the same.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from muntin.engine.subscription import Subscription
from muntin.errors import InputError

_log = logging.getLogger("muntin.spark")


@dataclass(frozen=True, order=True)
class Mark:
    """Where results stand: micro-batch, partition, and how many results of the query came from that partition in that batch before.

    A batch that is tried again gives the same results under the same marks, though perhaps cut into other pieces: the result in
    row ``i`` of a piece is always the one of ``(batch, partition, sequence + i)``. ``arrived`` is when the partition got its share of the
    batch, in seconds since 1970; it differs from one attempt to the next and is not compared.
    """

    batch: int
    partition: int
    sequence: int
    arrived: float = field(default=0.0, compare=False)


Subscriber: TypeAlias = Callable[[pa.RecordBatch, Mark], object]
"""A user's function that is called with results and their mark."""


class Once:
    """Leaves out results that came before, after a batch was tried again; remembers two numbers a partition.

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
        reached = self._reached.get(mark.partition, (-1, 0))
        if mark.batch < reached[0]:
            return results.slice(len(results))
        known = reached[1] if mark.batch == reached[0] else 0
        self._reached[mark.partition] = (mark.batch, max(known, mark.sequence + len(results)))
        return results.slice(min(max(known - mark.sequence, 0), len(results)))


class Subscriptions:
    """The subscribers of an engine. While it runs, a file has the names of their queries, where tasks look before every batch."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._of: dict[str, list[Subscription]] = {}
        self._file: Path | None = None

    def add(self, query: str, callback: Subscriber, buffer: int) -> Subscription:
        """Add a subscriber, from the next batch on."""
        if not callable(callback):
            raise InputError(
                f"a subscriber of query {query} cannot be {callback!r}",
                hint="Pass a function of a RecordBatch and its mark",
            )
        if type(buffer) is not int or buffer < 1:
            raise InputError(
                f"the buffer of a subscriber cannot be {buffer!r}",
                hint="Give a number of bytes of at least 1",
            )
        subscription = Subscription(query, callback, buffer, self._remove, _log)
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
        """Results of a query that a partition has released, for its subscribers."""
        sequence = mark.sequence
        for piece in results.to_batches():
            if len(piece):
                own = Mark(mark.batch, mark.partition, sequence, mark.arrived)
                for subscription in self.of(query):
                    subscription.offer(piece, own, where=f"in batch {mark.batch}")
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
