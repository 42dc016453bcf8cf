"""The subscribers of an engine, which get results before their micro-batch ends.

Results that are left out because a subscriber is too slow (:mod:`muntin.engine.subscription`) show
as gaps in its marks. Sinks get all results in any case. This module uses neither network nor Spark.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa

from muntin.engine.subscription import Subscription, checked_subscriber
from muntin.spark.exchange.deployment_file import DeploymentFile
from muntin.spark.exchange.marks import Mark

_log = logging.getLogger("muntin.spark")


Subscriber: TypeAlias = Callable[[pa.RecordBatch, Mark], object]
"""A user's function that is called with results and their mark."""


class Subscriptions:
    """The subscribers of an engine; while it runs, a file names their queries for the tasks."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._of: dict[str, list[Subscription]] = {}
        self._tasks: DeploymentFile | None = None

    def add(self, query: str, callback: Subscriber, buffer: int) -> Subscription:
        """Add a subscriber, from the next batch on."""
        checked_subscriber(query, callback, buffer, takes="a RecordBatch and its mark")
        subscription = Subscription(query, callback, buffer, self._remove, _log)
        with self._lock:
            self._of.setdefault(query.casefold(), []).append(subscription)
            self._write()
        return subscription

    def _remove(self, subscription: Subscription) -> None:
        with self._lock:
            key = subscription.query.casefold()
            left = [other for other in self._of.get(key, []) if other is not subscription]
            if left:
                self._of[key] = left
            else:
                self._of.pop(key, None)
            self._write()

    def forget(self, query: str) -> None:
        """Cancel the subscribers of a query."""
        for subscription in self.of(query):
            subscription.cancel()

    def of(self, query: str) -> list[Subscription]:
        """Return the subscribers of a query."""
        with self._lock:
            return list(self._of.get(query.casefold(), []))

    def any(self) -> bool:
        """Return whether any query has subscribers, so that partitions push results."""
        return bool(self._of)

    def names(self) -> set[str]:
        """Return the queries that have subscribers."""
        with self._lock:
            return {some[0].query for some in self._of.values()}

    def take(self, query: str, mark: Mark, results: pa.Table) -> None:
        """Offer pushed results of a query to its subscribers."""
        sequence = mark.sequence
        for piece in results.to_batches():
            if len(piece):
                own = Mark(mark.batch, mark.partition, sequence, mark.arrived)
                for subscription in self.of(query):
                    subscription.offer(piece, own, where=f"in batch {mark.batch}")
                sequence += len(piece)

    def drain(self, seconds: float) -> None:
        """Wait at most ``seconds`` until all subscribers have been called with all that waits."""
        until = time.monotonic() + seconds
        with self._lock:
            subscriptions = [subscription for some in self._of.values() for subscription in some]
        for subscription in subscriptions:
            subscription.drain(until)

    # -- the file for tasks ----------------------------------------------------------------------

    def begin(self, tasks: DeploymentFile) -> None:
        """Keep the file up to date from now on, because the engine runs."""
        with self._lock:
            self._tasks = tasks
            self._write()

    def end(self) -> None:
        """Remove the file, because the engine no longer runs."""
        with self._lock:
            if self._tasks is not None:
                self._tasks.write_subscribed(())
                self._tasks = None

    def _write(self) -> None:
        if self._tasks is not None:
            self._tasks.write_subscribed(sorted(self.names()))
