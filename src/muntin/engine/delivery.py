"""The delivery of results to subscribers.

They are called after the work in the thread that pushed or, while the engine runs in the
background, each in a separate thread.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque

import pyarrow as pa

from muntin.engine.async_changes import ChangeFeed
from muntin.engine.fair_lock import FairLock
from muntin.engine.interrupts import Held, call_user, is_interrupted
from muntin.engine.subscription import Subscription, check_buffer, checked_subscriber
from muntin.errors import MuntinError, SubscriberError


class Deliveries:
    """The subscribers of all queries of an engine; ``live`` while it runs in the background."""

    def __init__(self, lock: FairLock) -> None:
        self.live = False
        self._lock = lock
        self._of: dict[str, list[Subscription]] = {}
        self._feeds: dict[str, list[ChangeFeed]] = {}
        self._waiting: deque[tuple[Subscription, pa.RecordBatch]] = deque()
        self._delivering = False

    def subscribe(self, query: str, callback: object, buffer: int) -> Subscription:
        """Add a subscriber of a query."""
        function = checked_subscriber(query, callback, buffer, takes="a RecordBatch")
        subscription = Subscription(query, function, buffer, self._remove)
        with self._lock:
            self._of.setdefault(query.casefold(), []).append(subscription)
        return subscription

    def feed(self, query: str, buffer: int) -> ChangeFeed:
        """Add a feed of the results of a query, for the event loop that runs."""
        check_buffer(buffer)
        feed = ChangeFeed(query, buffer, asyncio.get_running_loop())
        with self._lock:
            self._feeds.setdefault(query.casefold(), []).append(feed)
        return feed

    def feeds(self, query: str) -> list[ChangeFeed]:
        """Return the feeds of a query that are in use."""
        known = self._feeds.get(query.casefold())
        if not known:
            return []
        known[:] = [feed for feed in known if not feed.cancelled]
        return known

    def end(self, query: str, failure: MuntinError | None = None) -> None:
        """End the feeds of a query that is dropped or was suspended."""
        for feed in self._feeds.pop(query.casefold(), []):
            feed.end(failure)

    def _remove(self, subscription: Subscription) -> None:
        with self._lock:
            left = [other for other in self.of(subscription.query) if other is not subscription]
            self._of[subscription.query.casefold()] = left

    def of(self, query: str) -> list[Subscription]:
        """Return the subscribers of a query."""
        return self._of.get(query.casefold(), [])

    def forget(self, query: str) -> None:
        """Remove the subscribers of a query that is dropped."""
        self._of.pop(query.casefold(), None)
        self.end(query)

    def hand(self, query: str, results: pa.Table) -> None:
        """Take results for the subscribers of a query."""
        for feed in self.feeds(query):
            for batch in results.to_batches():
                feed.offer(batch)
        for subscription in self.of(query):
            for batch in results.to_batches():
                if self.live:
                    subscription.offer(batch)
                else:
                    self._waiting.append((subscription, batch))

    def deliver(self) -> None:
        """Call subscribers outside the lock and in order.

        If a delivery is under way, in this thread further up or in another one, it also delivers
        the results added now: so a subscriber may push, and batches never overtake each other.

        After Ctrl-C, subscribers that were not called yet are called by the next delivery.
        """
        if not self._waiting:
            return  # what other threads have added, they deliver
        failures: list[tuple[str, Exception]] = []
        with Held():
            with self._lock:
                if self._delivering:
                    return
                self._delivering = True
            try:
                while (delivery := self._next()) is not None:
                    subscription, batch = delivery
                    try:
                        call_user(subscription.callback, batch)
                    except Exception as error:  # noqa: BLE001 (reported below)
                        failures.append((subscription.query, error))
            except BaseException:
                self._delivering = False
                raise
        if failures:
            name, failure = failures[0]
            raise SubscriberError(
                f"a subscriber of query {name} failed: {type(failure).__name__}: {failure}",
                hint="The results are still there for poll; the engine continues",
            ) from failure

    def _next(self) -> tuple[Subscription, pa.RecordBatch] | None:
        with self._lock:
            if self._waiting and not is_interrupted():
                return self._waiting.popleft()
            self._delivering = False
            return None

    def drain(self, seconds: float) -> None:
        """Wait until all waiting results are delivered, at most ``seconds``."""
        until = time.monotonic() + seconds
        for subscription in self._all_subscriptions():
            subscription.drain(until)

    def end_threads(self, seconds: float) -> None:
        """End the threads of subscribers once they are idle; wait at most ``seconds``."""
        until = time.monotonic() + seconds
        for subscription in self._all_subscriptions():
            subscription.end_thread(until - time.monotonic())

    def _all_subscriptions(self) -> list[Subscription]:
        with self._lock:
            return [subscription for some in self._of.values() for subscription in some]
