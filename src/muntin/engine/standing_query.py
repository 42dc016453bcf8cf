"""The handle that users hold of a standing query."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from muntin.engine.subscription import BUFFER, Subscription

if TYPE_CHECKING:
    from muntin.engine.engine import Engine

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

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self.name = name

    def poll(self) -> pa.Table:
        """The changes since the last poll: ``_op``, ``_ts``, then the select list."""
        return self._engine._poll(self.name)  # noqa: SLF001 (a handle on the engine's insides)

    def answer(self) -> pa.Table:
        """The answer now: the select list over the rows inside their windows."""
        return self._engine._running(self.name, lambda running: running.answer())  # noqa: SLF001

    def stats(self) -> dict[str, object]:
        """Rows in and out, response times, state rows and bytes, and the work done."""
        return self._engine._running(self.name, self._engine._stats)  # noqa: SLF001

    def explain(self) -> str:
        """How this query is run, as a tree for people."""
        return self._engine.explain(self.name)

    def plan(self) -> dict[str, object]:
        """How this query is run, for machines: what :meth:`explain` tells as nested dicts and lists."""
        return self._engine.plans(self.name)[0]

    def subscribe(self, callback: Subscriber, buffer: int = BUFFER) -> Subscription:
        """Call ``callback`` with a RecordBatch whenever results are released, in order.

        While the engine runs by itself (:meth:`muntin.Engine.start`), each subscriber is called in a thread of its own as results are
        released. One that fails is logged and counted, see ``stats()["subscribers"]``; for one that is so slow that ``buffer``
        bytes of results wait for it, results are left out and counted.

        Otherwise the callback runs in the thread that pushed or advanced, after the engine has finished its work, so it
        may itself poll or push (what comes of such a push is delivered after it returns). When it fails, the push
        raises :class:`muntin.errors.SubscriberError` after all subscribers were called, and the results stay
        available to ``poll``.
        """
        return self._engine._subscribe(self.name, callback, buffer)  # noqa: SLF001

    def __repr__(self) -> str:
        return f"StandingQuery({self.name!r})"
