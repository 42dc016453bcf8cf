"""What Spark tells of a run while it goes on: a log that a person can read, and calls of a user's function.

Spark tells its listeners of all streaming queries of a session; ours heeds the one that has its name. Events come in order but
later than they happen, so counts are those that were noted when a batch was written, not those of now. The listener takes
itself out of the session when its query has ended, however it ended.

PySpark asks Java for every number of a progress by itself, which takes an eighth of a second of a core for each batch. We take it
as one text, see :class:`_Adapter`.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import UUID

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

OnProgress: TypeAlias = Callable[[dict[str, Any]], object]
"""A user's function that is called with the progress of every batch."""

_log = logging.getLogger("muntin.spark")
PATIENCE = 10.0
"""Seconds that an engine which has ended waits for users' functions to be called with what is left."""


@dataclass(frozen=True)
class Run:
    """What a listener knows of its run: the name that Spark has for it, words for the log, our counts, words for failures."""

    name: str
    about: str
    counts: Callable[[int], Mapping[str, Any]]
    """Our counts after a batch; the part of progress under ``muntin``."""
    reason: Callable[[str], str]
    """What went wrong, from all that Java has to say about it."""


class RunListener(StreamingQueryListener):
    """Listens to one start of an engine, from :meth:`attach` until its streaming query has ended."""

    def __init__(
        self, session: SparkSession, run: Run, on_progress: OnProgress | None = None
    ) -> None:
        self._session = session
        self._run: Run | None = run
        self._on_progress = on_progress
        self._run_id: UUID | None = None
        self._batch: int | None = None
        self._before = run.counts(-1)
        self._ended = threading.Event()
        self._caller: int | None = None
        self._adapter: Any = None

    def attach(self) -> None:
        """Begin to listen; before the streaming query starts, so that nothing is missed."""
        self._session.streams.addListener(self)

    def detach(self) -> None:
        """Listen no more, and let go of the engine: Java may hold on to this object for a while."""
        self._session.streams.removeListener(self)
        self._run = self._on_progress = None
        self._ended.set()

    def wait(self) -> None:
        """Wait until the end of the streaming query was told, and with it every batch; not in the user's own function."""
        if self._caller != threading.get_ident():
            self._ended.wait(PATIENCE)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 (Spark's)
        """Note which of the session's queries is ours."""
        if self._run is not None and event.name == self._run.name:
            self._run_id = event.runId
            _log.info("started: %s", self._run.about)

    @property
    def _jlistener(self) -> Any:
        """What PySpark hands to Java."""
        if self._adapter is None:
            jvm = SparkContext._jvm  # noqa: SLF001 (PySpark's own listeners do the same)
            assert jvm is not None, "a session is there"
            self._adapter = jvm.PythonStreamingQueryListenerWrapper(_Adapter(self))
        return self._adapter

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 (Spark's)
        """Tell of a batch."""
        self.tell(json.loads(event.progress.json))

    def tell(self, told: dict[str, Any]) -> None:
        """Tell of a batch, given its progress."""
        if self._run is None or told["runId"] != str(self._run_id):
            return
        told["muntin"] = self._run.counts(told["batchId"])
        if told["batchId"] != self._batch:
            _log.info("%s", batch_line(told, self._before))
        self._batch, self._before = told["batchId"], told["muntin"]
        self._call(told)

    def _call(self, told: dict[str, Any]) -> None:
        if self._on_progress is None:
            return
        self._caller = threading.get_ident()
        try:
            self._on_progress(told)
        except Exception:  # noqa: BLE001 (whatever a user's function does, the run goes on)
            _log.exception("on_progress failed at batch %s; the run goes on", told["batchId"])
        finally:
            self._caller = None

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 (Spark's)
        """Nothing came, nothing is told."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 (Spark's)
        """Tell how it ended and listen no more."""
        if self._run is None or event.runId != self._run_id:
            return
        after = "before its first batch" if self._batch is None else f"after batch {self._batch}"
        if event.exception is None:
            _log.info("ended %s", after)
        else:
            _log.error("failed %s: %s", after, self._run.reason(event.exception))
        self.detach()


class _Adapter(JStreamingQueryListener):
    """Between Java and a listener; takes progress as text."""

    pylistener: RunListener

    def onQueryProgress(self, jevent: Any) -> None:  # noqa: N802 (Spark's)
        """Hand on what Java tells of a batch."""
        self.pylistener.tell(json.loads(jevent.progress().json()))


def batch_line(told: Mapping[str, Any], before: Mapping[str, Any]) -> str:
    """A line about a batch; ``before`` are our counts after the batch before it.

    >>> def counts(rows: int, results: int) -> dict[str, object]:
    ...     held = {"rows_held": rows, "watermark": "2026-01-01 12:00:00", "newest": "2026-01-01 12:00:01.500000"}
    ...     return {"streams": {"A": {"rows": rows, "late": 0}}, "results": {"q": results}, **held}
    >>> batch_line({"batchId": 3, "durationMs": {"triggerExecution": 520}, "muntin": counts(1500, 7)}, counts(500, 3))
    'batch 3 in 0.52 s: A 1,000 rows; results: q 4; watermark 2026-01-01 12:00:00; 1,500 rows held'
    """
    ours = told["muntin"]
    rows = ", ".join(
        _stream_words(name, counts, before["streams"].get(name, {}))
        for name, counts in ours["streams"].items()
    )
    results = ", ".join(
        f"{name} {count - before['results'].get(name, 0):,}"
        for name, count in ours["results"].items()
    )
    seconds = told.get("durationMs", {}).get("triggerExecution", 0) / 1000
    return (
        f"batch {told['batchId']} in {seconds:.2f} s: {rows or 'no streams'}; results: {results or 'no queries'}; "
        f"watermark {ours['watermark'] or 'none yet'}; {ours['rows_held']:,} rows held"
    )


def _stream_words(name: str, counts: Mapping[str, int], before: Mapping[str, int]) -> str:
    late = counts["late"] - before.get("late", 0)
    return f"{name} {counts['rows'] - before.get('rows', 0):,} rows" + (
        f", {late:,} late" if late else ""
    )
