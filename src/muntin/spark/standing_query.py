"""The handle of a standing query on Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from muntin.engine.subscription import BUFFER, Subscription
from muntin.spark.driver.query_reports import QueryReports
from muntin.spark.driver.subscriptions import Subscriber


class SparkQuery:
    """The handle of a standing query on Spark; it keeps its engine alive."""

    def __init__(self, engine: object, reports: QueryReports, name: str) -> None:
        self._engine = engine
        self._reports = reports
        self.name = name

    @property
    def progress(self) -> dict[str, Any] | None:
        """Spark's progress of the last batch, with our counts under ``muntin``; None before any."""
        return self._reports.progress()

    def results(self) -> pa.Table:
        """Return all changes so far, for a query whose sink is memory."""
        return self._reports.results(self.name)

    def subscribe(self, callback: Subscriber, *, buffer: int = BUFFER) -> Subscription:
        """Call ``callback(batch, mark)`` with results as partitions push them.

        The calls come before the micro-batch is complete. The sink still gets all results, once,
        with the complete batch. The callback runs in a separate thread: one that is slow or fails
        affects nothing else. Calls start with the next batch; those of one partition come in the
        order of its results. After a failure a batch runs again, and results come again under the
        same marks, see :class:`muntin.spark.Mark`; :class:`muntin.spark.Once` drops them.

        Parameters
        ----------
        callback : callable
            Called with a ``pyarrow.RecordBatch`` and its :class:`muntin.spark.Mark`.
        buffer : int
            Bytes of results that may wait for it; results that arrive while it is full are left out
            for this subscriber, and counted.
        """
        return self._reports.subscribe(self.name, callback, buffer)

    def stats(self) -> dict[str, Any]:
        """Return results, response times, sizes of buffers and subscribers of this query.

        They are those of :attr:`progress` under ``muntin``.
        """
        return self._reports.stats(self.name)

    def __repr__(self) -> str:
        return f"SparkQuery({self.name!r})"
