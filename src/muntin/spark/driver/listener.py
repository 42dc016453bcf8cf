"""Listen to Spark's events of a run: write a readable log and call the user's function.

Spark sends the events of all streaming queries of a session to every listener; ours filters by
name. Events come in order but with a delay, so counts are those noted when a batch was written, not
the current ones. The listener removes itself from the session when its query ends, however it ends.

PySpark asks Java for every number of a progress separately, which costs an eighth of a second of a
core per batch. We take the progress as one text, see :class:`_Adapter`.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import UUID
from weakref import WeakSet

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    JStreamingQueryListener,
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from muntin.errors import RunError
from muntin.spark.driver.query_events import QueryEvents

OnProgress: TypeAlias = Callable[[dict[str, Any]], object]
"""A user's function that is called with the progress of every batch."""

_log = logging.getLogger("muntin.spark")
PATIENCE = 10.0
"""Seconds that an ended engine waits for the last calls of users' functions."""


@dataclass(frozen=True)
class ObservedRun:
    """A run as its listener sees it: the name of the streaming query, and a text for the log."""

    name: str
    about: str
    counts: Callable[[int], Mapping[str, Any]]
    """Returns our counts after a batch, the part of progress under ``muntin``."""
    failure: Callable[[str | None], RunError | None]
    """Returns the error that ended the run, given Java's text of it, if there is one."""
    events: QueryEvents
    """Derives the events of single queries."""
    is_finished_by_engine: Callable[[], bool] = lambda: False
    """Returns whether the engine calls :meth:`RunListener.finish` after the streaming query."""


_attached: WeakSet[RunListener] = WeakSet()


def own_listeners() -> list[Any]:
    """Return the objects that Java knows for our own listeners, those of all engines."""
    return [listener._jlistener for listener in list(_attached)]  # noqa: SLF001 (PySpark's name)


class RunListener(StreamingQueryListener):
    """Listens to one start of an engine, from :meth:`attach` until its streaming query ends."""

    def __init__(
        self,
        session: SparkSession,
        run: ObservedRun,
        on_progress: OnProgress | None = None,
    ) -> None:
        self._session = session
        self._run: ObservedRun | None = run
        self._on_progress = on_progress
        self._error: str | None = None
        self._run_id: UUID | None = None
        self._batch: int | None = None
        self._ended = threading.Event()
        self._calling = threading.Lock()
        self._caller: int | None = None
        self._adapter: Any = None

    def attach(self) -> None:
        """Start to listen, before the streaming query starts, so that no event is missed."""
        _attached.add(self)
        self._session.streams.addListener(self)

    def detach(self) -> None:
        """Stop listening and drop the references to the engine: Java may keep this object."""
        self._session.streams.removeListener(self)
        _attached.discard(self)
        self._run = self._on_progress = None
        self._ended.set()

    def wait(self) -> None:
        """Wait until the end of the streaming query is reported; not inside the user's function."""
        if self._caller != threading.get_ident():
            self._ended.wait(PATIENCE)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 (Spark's)
        """Remember the streaming query of our run."""
        if self._run is not None and event.name == self._run.name:
            self._run_id = event.runId
            _log.info("started: %s", self._run.about)
            self._run.events.begin(str(event.runId), event.timestamp)

    @property
    def _jlistener(self) -> Any:
        """Return the object that PySpark passes to Java."""
        if self._adapter is None:
            jvm = SparkContext._jvm  # noqa: SLF001 (PySpark's own listeners do the same)
            assert jvm is not None, "a session is there"
            self._adapter = jvm.PythonStreamingQueryListenerWrapper(_Adapter(self))
        return self._adapter

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 (Spark's)
        """Report a batch."""
        self.report(json.loads(event.progress.json))

    def report(self, progress: dict[str, Any]) -> None:
        """Log a batch and call the user's function with its progress."""
        if self._run is None or progress["runId"] != str(self._run_id):
            return
        counts = progress["muntin"] = self._run.counts(progress["batchId"])
        if "addBatch" in progress["durationMs"]:  # others are triggers without a batch
            self._run.events.report(progress, counts)
        repeated = counts["batch"]["number"] == self._batch
        self._batch = progress["batchId"] = counts["batch"]["number"]
        if not repeated:
            _log.info("%s", batch_line(progress))
        self._call(progress)

    def report_controls(self, progress: dict[str, Any]) -> None:
        """Log a batch without rows, of which Spark knows nothing, and call the user's function."""
        self._batch = progress["batchId"]
        _log.info("%s", batch_line(progress))
        if self._run is not None:
            self._run.events.report(progress, progress["muntin"])
        self._call(progress)

    def _call(self, progress: dict[str, Any]) -> None:
        if self._on_progress is None:
            return
        with self._calling:
            self._caller = threading.get_ident()
            try:
                self._on_progress(progress)
            except Exception:  # noqa: BLE001 (whatever a user's function does, the run continues)
                _log.exception(
                    "on_progress failed at batch %s; the run continues", progress["batchId"]
                )
            finally:
                self._caller = None

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 (Spark's)
        """Report triggers without input to the listeners of queries; the log has none."""
        if self._run is not None and event.runId == self._run_id:
            self._run.events.idle(event.timestamp)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 (Spark's)
        """Log how the run ended and stop listening."""
        if self._run is None or event.runId != self._run_id:
            return
        self._error = event.exception
        if not self._run.is_finished_by_engine():
            self._close()
        self._ended.set()

    def finish(self) -> None:
        """Wait for the events of a streaming query that has ended; log its end, stop listening.

        A batch without rows may end after the streaming query, so an engine that stops calls this
        itself, when no batch runs any more.
        """
        self.wait()
        self._close()

    def _close(self) -> None:
        if self._run is None:
            return
        after = "before its first batch" if self._batch is None else f"after batch {self._batch}"
        failure = self._run.failure(self._error)
        if self._error is None:
            _log.info("ended %s", after)
        else:
            _log.error("failed %s: %s", after, "" if failure is None else failure.fact)
        self._run.events.end(failure)
        self.detach()


class _Adapter(JStreamingQueryListener):
    """Adapts a listener to Java; takes progress as text."""

    pylistener: RunListener

    def onQueryProgress(self, jevent: Any) -> None:  # noqa: N802 (Spark's)
        """Pass on the progress of a batch."""
        self.pylistener.report(json.loads(jevent.progress().json()))


def batch_line(progress: Mapping[str, Any]) -> str:
    """Return the log line of a batch.

    >>> batch = {"number": 3, "rows": {"A": 1000}, "late": {"A": 2}, "results": {"q": 4}}
    >>> ours = {"batch": batch, "rows_held": 1500, "watermark": "12:00:00"}
    >>> batch_line({"durationMs": {"triggerExecution": 520}, "muntin": ours})
    'batch 3 in 0.52 s: A 1,000 rows, 2 late; results: q 4; watermark 12:00:00; 1,500 rows held'
    """
    ours = progress["muntin"]
    batch = ours["batch"]
    rows = ", ".join(
        f"{name} {count:,} rows" + (f", {late:,} late" if (late := batch["late"][name]) else "")
        for name, count in batch["rows"].items()
    )
    results = ", ".join(f"{name} {count:,}" for name, count in batch["results"].items())
    seconds = progress.get("durationMs", {}).get("triggerExecution", 0) / 1000
    return (
        f"batch {batch['number']} in {seconds:.2f} s: {rows or 'no streams'}; "
        f"results: {results or 'no queries'}; "
        f"watermark {ours['watermark'] or 'none yet'}; {ours['rows_held']:,} rows held"
    )
