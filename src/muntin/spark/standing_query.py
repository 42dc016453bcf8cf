"""The handle of a standing query on Spark.

It has the properties and methods of Spark's ``StreamingQuery`` under their names, for one query of
an engine that may run many.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame

from muntin.engine.live_view import Display, LiveOptions, LiveView, Reading
from muntin.engine.notebook import spark_query_html
from muntin.engine.subscription import BUFFER, Subscription
from muntin.errors import MuntinError, RunError
from muntin.plan.explanation import Explanation
from muntin.spark.driver.change_queue import POLL
from muntin.spark.driver.query_reports import QueryReports
from muntin.spark.driver.query_state import QueryState
from muntin.spark.driver.subscriptions import Subscriber


class QueryEngine(Protocol):
    """What a handle uses of its :class:`muntin.spark.SparkEngine`."""

    def drop(self, name: str) -> None:
        """Drop a query."""

    def process_available(self) -> None:
        """Process all input that is available now."""

    def await_termination(self) -> bool:
        """Wait until the engine stops; raise the error that ended the run, if it failed."""

    def exception(self) -> RunError | None:
        """Return the error that ended the last run."""

    def explain(self, query: str | None = None) -> Explanation:
        """Return the plan of a query."""


class SparkQuery:
    """The handle of a standing query on Spark; it keeps its engine alive."""

    def __init__(self, engine: QueryEngine, reports: QueryReports, state: QueryState) -> None:
        self._engine = engine
        self._reports = reports
        self._state = state
        self.name = state.name

    # -- identity and state ----------------------------------------------------------------------

    @property
    def id(self) -> str | None:
        """Return the id of the query, the same after a restart from the same checkpoint.

        A query that is dropped and registered again has another one. None before the first start.
        """
        return self._state.id()

    @property
    def runId(self) -> str | None:  # noqa: N802 (Spark's)
        """Return the id of the query in the engine's last run, new at each start; None before."""
        return self._state.run_id()

    @property
    def isActive(self) -> bool:  # noqa: N802 (Spark's)
        """True while the engine runs and the query is neither dropped nor suspended."""
        return self._state.is_active()

    @property
    def status(self) -> dict[str, Any]:
        """Return what the query does now: ``message``, ``isDataAvailable``, ``isTriggerActive``."""
        return self._state.status()

    def exception(self) -> MuntinError | None:
        """Return the error that ended the run, or the one that suspended the query; else None."""
        if not self._state.is_registered():
            return None
        return self._engine.exception() or self._state.suspension()

    # -- running ---------------------------------------------------------------------------------

    def processAllAvailable(self) -> None:  # noqa: N802 (Spark's)
        """Process all input that is available now, for all queries of the engine, then return.

        A running engine continues to run; one that does not run is started and stopped again, see
        :meth:`muntin.spark.SparkEngine.process_available`.

        Raises
        ------
        QuerySuspendedError
            When the query is suspended, so that the input is not processed for it.
        """
        self._state.check_registered()
        self._engine.process_available()
        suspended = self._state.suspension()
        if suspended is not None:
            raise suspended

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802 (Spark's)
        """Wait at most ``timeout`` seconds until the query ends; return whether it has.

        It ends when it is dropped or suspended, and when the engine stops or fails. Raises the
        error of :meth:`exception`, if there is one.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while self.isActive:
            if until is not None and time.monotonic() >= until:
                return False
            time.sleep(POLL)
        error = self.exception()
        if isinstance(error, RunError):
            self._engine.await_termination()  # raises the error, and releases what the run holds
        if error is not None:
            raise error
        return True

    def stop(self) -> None:
        """Drop the query; the engine and its other queries continue.

        Results in memory are deleted, those in files and elsewhere stay. A query that is already
        dropped is left alone.
        """
        if self._state.is_registered():
            self._state.run_id()  # both ids stay known
            self._engine.drop(self.name)

    # -- reports ---------------------------------------------------------------------------------

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802 (Spark's)
        """Return the progress of this query in the last batch of the run; None before the first.

        It has the form of Spark's progress. ``sink`` counts the results of this query in the batch,
        and ``muntin`` holds what :meth:`stats` returned after it.
        """
        return self._state.last_progress()

    @property
    def recentProgress(self) -> list[dict[str, Any]]:  # noqa: N802 (Spark's)
        """Return the progress of this query in the last batches of the run, at most 100."""
        return self._state.recent_progress()

    @property
    def progress(self) -> dict[str, Any] | None:
        """Spark's progress of the last batch, with our counts under ``muntin``; None before any."""
        return self._reports.progress()

    def stats(self) -> dict[str, Any]:
        """Return results, response times, sizes of buffers and subscribers of this query.

        They are those of :attr:`progress` under ``muntin``.
        """
        return self._reports.stats(self.name)

    def explain(self) -> Explanation:
        """Return the plan of the query, and how its streams are partitioned."""
        return self._engine.explain(self.name)

    # -- results ---------------------------------------------------------------------------------

    def table(self) -> DataFrame:
        """Return all changes so far as a DataFrame, for a query whose sink is memory or files.

        Later results are not in it: call it again. The rows are in no particular order.

        Raises
        ------
        InputError
            When the sink cannot be read back, like the console or a function.
        """
        return self._state.table()

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

    def live(
        self,
        seconds: float = 60.0,
        refresh: float = 1.0,
        *,
        view: str = "chart",
        display: Display | None = None,
    ) -> LiveView:
        """Show the query in a notebook, refreshed until it is dropped or the time is over.

        As :meth:`muntin.StandingQuery.live`, but a ``"table"`` has its counts, not the answer.
        """
        options = LiveOptions(seconds, refresh, view, display)
        return LiveView(self.name, partial(_reading, self._state, self._reports), options)

    def __repr__(self) -> str:
        return f"SparkQuery({self.name!r})"

    def _repr_html_(self) -> str:
        return spark_query_html(self.name, self.status["message"], self.explain())


def _reading(state: QueryState, reports: QueryReports) -> Reading:
    """Return a query as a live view shows it; raise if it does not run any more."""
    state.check_registered()
    suspended = state.suspension()
    if suspended is not None:
        raise suspended
    stats = reports.stats(state.name)
    figures = {
        "results": stats["rows_out"],
        "p95 seconds": f"{stats['batch_response_seconds']['p95']:.3g}",
        "rows in windows": stats["buffers"]["join"],
        "rows waiting": stats["buffers"]["input"],
        "watermark": stats["watermark"],
        "waiting for": (stats["waiting_for"] or {}).get("stream"),
    }
    return Reading(stats["rows_out"], figures)
