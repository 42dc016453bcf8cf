"""The handle that users hold of a standing query on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from muntin.engine.subscription import BUFFER, Subscription
from muntin.spark.driver.subscriptions import Subscriber

if TYPE_CHECKING:
    from muntin.spark.api import SparkEngine


class SparkQuery:
    """The handle of a standing query on Spark."""

    def __init__(self, engine: SparkEngine, name: str) -> None:
        self._engine = engine
        self.name = name

    @property
    def progress(self) -> dict[str, Any] | None:
        """What Spark tells of the last batch, and under ``muntin`` what we do; None before the first."""
        return self._engine.progress

    def results(self) -> pa.Table:
        """All changes so far, for a query whose sink is memory."""
        return self._engine.results(self.name)

    def subscribe(self, callback: Subscriber, *, buffer: int = BUFFER) -> Subscription:
        """Call ``callback(batch, mark)`` with results as partitions release them, before their micro-batch is complete.

        The sink still gets all of them, once, when the batch is. The callback has a thread of its own: one that is slow or fails
        disturbs nobody. It is called from the next batch on, for each partition in the order of results. After a failure a batch is
        tried again, and results come again under the same marks, see :class:`muntin.spark.Mark`; :class:`muntin.spark.Once`
        leaves them out.

        Parameters
        ----------
        callback : callable
            Called with a ``pyarrow.RecordBatch`` and its :class:`muntin.spark.Mark`.
        buffer : int
            Bytes of results that may wait for it; what comes while it is full is left out for this subscriber, and counted.
        """
        return self._engine._subscribe(self.name, callback, buffer)  # noqa: SLF001 (a handle on the engine's insides)

    def stats(self) -> dict[str, Any]:
        """Results, response times, sizes of buffers and subscribers, as :attr:`progress` has them under ``muntin``."""
        return self._engine._query_stats(self.name)  # noqa: SLF001

    def __repr__(self) -> str:
        return f"SparkQuery({self.name!r})"
