"""Who gets the results of an engine: subscribers, called after the work in the thread that pushed, or live, each in a thread of its own."""

from __future__ import annotations

import time
from collections import deque

import pyarrow as pa

from muntin.engine.fair_lock import Turns
from muntin.engine.interrupts import Held, call_user, is_interrupted
from muntin.engine.subscription import Subscription
from muntin.errors import InputError, SubscriberError


class Deliveries:
    """The subscribers of all queries of an engine; ``live`` while it runs by itself."""

    def __init__(self, turns: Turns) -> None:
        self.live = False
        self._turns = turns
        self._of: dict[str, list[Subscription]] = {}
        self._waiting: deque[tuple[Subscription, pa.RecordBatch]] = deque()
        self._delivering = False

    def subscribe(self, query: str, callback: object, buffer: int) -> Subscription:
        """Add a subscriber of a query."""
        if not callable(callback):
            raise InputError(
                f"a subscriber of query {query} cannot be {callback!r}",
                hint="Pass a function of a RecordBatch",
            )
        if type(buffer) is not int or buffer < 1:
            raise InputError(
                f"the buffer of a subscriber cannot be {buffer!r}",
                hint="Give a number of bytes of at least 1",
            )
        subscription = Subscription(query, callback, buffer, self._remove)
        with self._turns:
            self._of.setdefault(query.casefold(), []).append(subscription)
        return subscription

    def _remove(self, subscription: Subscription) -> None:
        with self._turns:
            left = [other for other in self.of(subscription.query) if other is not subscription]
            self._of[subscription.query.casefold()] = left

    def of(self, query: str) -> list[Subscription]:
        """The subscribers of a query."""
        return self._of.get(query.casefold(), [])

    def forget(self, query: str) -> None:
        """Let go of the subscribers of a query that is dropped."""
        self._of.pop(query.casefold(), None)

    def hand(self, query: str, results: pa.Table) -> None:
        """Take results for the subscribers of a query."""
        for subscription in self.of(query):
            for batch in results.to_batches():
                if self.live:
                    subscription.offer(batch)
                else:
                    self._waiting.append((subscription, batch))

    def deliver(self) -> None:
        """Call subscribers outside the lock and in order.

        Whoever is delivering already, this thread further up or another one, also delivers what was added now: so a
        subscriber may push, and batches never overtake each other.

        After Ctrl-C, subscribers that were not called yet are called by the next delivery.
        """
        if not self._waiting:
            return  # what other threads have added, they deliver
        failures: list[tuple[str, Exception]] = []
        with Held():
            with self._turns:
                if self._delivering:
                    return
                self._delivering = True
            try:
                while (delivery := self._next()) is not None:
                    subscription, batch = delivery
                    try:
                        call_user(subscription.callback, batch)
                    except Exception as error:  # noqa: BLE001 (whatever a callback raises is reported, the others are still called)
                        failures.append((subscription.query, error))
            except BaseException:
                self._delivering = False
                raise
        if failures:
            name, failure = failures[0]
            raise SubscriberError(
                f"a subscriber of query {name} failed: {type(failure).__name__}: {failure}",
                hint="The results are still there for poll; the engine goes on",
            ) from failure

    def _next(self) -> tuple[Subscription, pa.RecordBatch] | None:
        with self._turns:
            if self._waiting and not is_interrupted():
                return self._waiting.popleft()
            self._delivering = False
            return None

    def drain(self, seconds: float) -> None:
        """Wait until all were called with what waits for them, at most so long."""
        until = time.monotonic() + seconds
        for subscription in self._everyone():
            subscription.drain(until)

    def rest(self, seconds: float) -> None:
        """Let the threads of subscribers end when they have nothing to do any more; wait for that at most so long."""
        until = time.monotonic() + seconds
        for subscription in self._everyone():
            subscription.rest(until - time.monotonic())

    def _everyone(self) -> list[Subscription]:
        with self._turns:
            return [subscription for some in self._of.values() for subscription in some]
