"""The handle that users hold of a standing query."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa

from muntin.engine.inspector import Inspector
from muntin.engine.query_registry import QueryRegistry
from muntin.engine.subscription import BUFFER, Subscription

Subscriber: TypeAlias = Callable[[pa.RecordBatch], None]


class StandingQuery:
    """A registered query; made by :meth:`muntin.Engine.query`.

    Examples
    --------
    >>> import muntin
    >>> engine = muntin.Engine()
    >>> engine.stream("A", {"k": "bigint", "ts": "timestamp"}, time="ts")
    >>> q = engine.query("SELECT k FROM A WINDOW 1 MINUTE", name="q")
    >>> engine.push("A", [(7, "2026-01-01")])
    >>> q.poll().column("k").to_pylist()
    [7]
    """

    def __init__(self, name: str, registry: QueryRegistry, inspector: Inspector) -> None:
        self.name = name
        self._registry = registry
        self._inspector = inspector

    def poll(self) -> pa.Table:
        """Return the changes since the last poll: ``_op``, ``_ts``, then the select list."""
        return self._registry.poll(self.name)

    def answer(self) -> pa.Table:
        """Return the answer now: the select list over the rows inside their windows."""
        return self._registry.answer(self.name)

    def stats(self) -> dict[str, object]:
        """Return rows in and out, response times, state rows and bytes, and the work done."""
        return self._inspector.query_stats(self.name)

    def explain(self) -> str:
        """Return how this query is run, as a tree for people."""
        return self._inspector.explain(self.name)

    def plan(self) -> dict[str, object]:
        """Return how this query is run, for machines: :meth:`explain` as nested dicts and lists."""
        return self._inspector.plan(self.name)

    def subscribe(self, callback: Subscriber, buffer: int = BUFFER) -> Subscription:
        """Call ``callback`` with a RecordBatch whenever results are released, in order.

        While the engine runs in the background (:meth:`muntin.Engine.start`), each subscriber is
        called in a separate thread as results are released. A failure is logged and counted, see
        ``stats()["subscribers"]``. If a subscriber is so slow that ``buffer`` bytes of results wait
        for it, further results are skipped and counted.

        Otherwise the callback runs in the thread that pushed or advanced, after the engine has
        finished its work, so it may poll or push (results of that push are delivered after it
        returns). When it fails, the push raises :class:`muntin.errors.SubscriberError` after all
        subscribers were called, and the results stay available to ``poll``.
        """
        return self._registry.subscribe(self.name, callback, buffer)

    def __repr__(self) -> str:
        return f"StandingQuery({self.name!r})"
