"""The metrics of a run: the driver adds up the reports of all partitions after every batch.

Counts start with the process, not with the checkpoint. A batch that runs again counts once.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from muntin.engine.figures import histogram_of
from muntin.metrics.figures import QueryCounts
from muntin.metrics.finished import Finished
from muntin.model.clock import BEFORE_ALL
from muntin.runtime.metrics import BUFFERS, ResponseTimes
from muntin.runtime.stalled_stream import Waiting
from muntin.spark.exchange.partition_metrics import QueryClock, Rebuilt

_NOTED = 100
"""Batches whose reports are kept."""


@dataclass
class Rebuilds:
    """Counts of rebuilt partitions and their rows.

    ``seconds`` measures each batch from the first rebuild to the last, ``partition_seconds`` adds
    up the rebuilds.
    """

    partitions: int = 0
    rows: int = 0
    seconds: float = 0.0
    partition_seconds: float = 0.0

    def add(self, rebuilt: Sequence[Rebuilt]) -> None:
        """Add the rebuilds of one batch."""
        if rebuilt:
            self.partitions += len(rebuilt)
            self.rows += sum(one.rows for one in rebuilt)
            self.seconds += max(one.ended for one in rebuilt) - min(one.began for one in rebuilt)
            self.partition_seconds += sum(one.ended - one.began for one in rebuilt)


@dataclass
class QueryMetrics:
    """Response times of a query, overall and in the last batch, and current sizes of its buffers.

    ``began`` is the moment of the first report. ``scheduler`` orders the work of its join while
    partitions push results, ``levels`` the windows among which it is; ``without_effect`` has the
    reason for each setting that does nothing.
    """

    overall: ResponseTimes = field(default_factory=ResponseTimes)
    last: ResponseTimes = field(default_factory=ResponseTimes)
    buffers: Counter[str] = field(default_factory=Counter)
    began: float = field(default_factory=time.monotonic)
    scheduler: str = "lwo"
    levels: Sequence[Mapping[str, Any]] = ()
    without_effect: Mapping[str, str] = field(default_factory=dict)

    def add(self, reports: Sequence[Mapping[str, Any]]) -> None:
        """Add the reports of the partitions on one batch."""
        self.last = ResponseTimes()
        self.buffers = Counter()
        for one in reports:
            self.last.merge(ResponseTimes.from_json(one["response"]))
            self.buffers.update(one["buffers"])
            self.scheduler = one.get("scheduler") or self.scheduler
            self.levels = one.get("levels", self.levels)
            self.without_effect = one.get("without_effect", self.without_effect)
        self.overall.merge(self.last)

    def report(self) -> dict[str, Any]:
        """Return the metrics for progress; all keys exist before the first batch."""
        buffers = {**dict.fromkeys(BUFFERS, 0), **self.buffers}
        return {
            "response_seconds": self.overall.stats(),
            "batch_response_seconds": self.last.stats(),
            "buffers": buffers,
        }


@dataclass
class RunMetrics:
    """The metrics of all partitions together; those of queries are keyed by case-folded name."""

    rows_in: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    ahead: Counter[str] = field(default_factory=Counter)
    """Rows too far ahead; they are stored with the late ones."""
    malformed: Counter[str] = field(default_factory=Counter)
    """Messages that cannot be read."""
    begun: dict[str, int] = field(default_factory=dict)
    """By stream, the newest time in the first batch that had any."""
    results: Counter[str] = field(default_factory=Counter)
    queries: dict[str, QueryMetrics] = field(default_factory=dict)
    unsent: int = 0
    rows_held: int = 0
    bytes_held: int = 0
    final: int = BEFORE_ALL
    newest: int = BEFORE_ALL
    workers: dict[int, set[int]] = field(default_factory=dict)
    rebuilds: Rebuilds = field(default_factory=Rebuilds)
    batch: int = -1
    last_results: Mapping[str, int] = field(default_factory=dict)
    last_late: Mapping[str, int] = field(default_factory=dict)
    last_rows_in: Mapping[str, int] = field(default_factory=dict)
    """Results by query, late rows and rows by stream, all of the last batch."""
    clocks: dict[str, QueryClock] = field(default_factory=dict)
    last_rows: dict[str, float] = field(default_factory=dict)
    """By stream, the arrival of its last row."""
    due: int | None = BEFORE_ALL
    """The first instant at which time alone can change a result; None if there is none."""
    finished: Finished[QueryCounts] = field(default_factory=lambda: Finished(QueryCounts()))
    """The counts of dropped queries."""
    batches: int = 0
    last_batch: float | None = None
    """The time at which the last batch was written."""
    phases: dict[str, float] = field(default_factory=dict)
    """Seconds spent in the phases of batches."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    """Held while counts change that belong together."""
    _noted: dict[int, dict[str, Any]] = field(default_factory=dict)

    def add(
        self,
        batch: int,
        reports: Sequence[Mapping[str, Any]],
        results: Mapping[str, int],
        late: Mapping[str, int],
    ) -> None:
        """Add the reports of the partitions on a batch, and its counts of results and late rows."""
        if batch > self.batch:
            with self.lock:
                self._add(batch, reports, results, late)

    def _add(
        self,
        batch: int,
        reports: Sequence[Mapping[str, Any]],
        results: Mapping[str, int],
        late: Mapping[str, int],
    ) -> None:
        self.batch = batch
        self.batches += 1
        self.last_batch = time.time()
        self.results.update(results)
        self.late.update(late)
        self.last_results = dict(results)
        self.last_rows_in = sum((Counter(stats["rows_in"]) for stats in reports), Counter())
        ahead = sum((Counter(stats["rows_ahead"]) for stats in reports), Counter())
        self.last_late = {stream: count - ahead[stream] for stream, count in late.items()}
        for stats in reports:
            self.rows_in.update(stats["rows_in"])
            self.last_rows.update(
                (stream, time.monotonic()) for stream, rows in stats["rows_in"].items() if rows
            )
            self.ahead.update(stats["rows_ahead"])
            self.malformed.update(stats.get("malformed", {}))
            self.begun = {**stats["times"], **self.begun}
            self.final = max(self.final, stats["final"])
            self.newest = max(self.newest, stats["newest"])
            self.workers.setdefault(stats["partition"], set()).add(stats["worker"])
            self.unsent += stats["unsent"]
        self.rebuilds.add([Rebuilt(**stats["rebuilt"]) for stats in reports if stats["rebuilt"]])
        if reports:
            dues = [stats["due"] for stats in reports if stats["due"] is not None]
            self.due = min(dues, default=None)
            self.rows_held = sum(stats["rows_held"] for stats in reports)
            self.bytes_held = sum(stats["bytes_held"] for stats in reports)
            self.final = max(stats["final"] for stats in reports)
            self.clocks = _merged([stats["clocks"] for stats in reports])
        by_key = [
            {name.casefold(): one for name, one in stats["queries"].items()} for stats in reports
        ]
        for key in results:
            self.queries.setdefault(key, QueryMetrics()).add(
                [queries[key] for queries in by_key if key in queries]
            )

    def waiting(self, key: str) -> Waiting | None:
        """Return the stream that delays a query, and since when; None if none does."""
        clock = self.clocks.get(key)
        if clock is None or clock.waiting_for is None:
            return None
        began = self.queries[key].began if key in self.queries else time.monotonic()
        since = self.last_rows.get(clock.waiting_for, began)
        return Waiting(clock.waiting_for, clock.newest, time.monotonic() - since)

    def forget(self, key: str) -> None:
        """Forget a dropped query, but for its counters."""
        with self.lock:
            self.finished.add(key, self.query_counts(key))
            self.clocks.pop(key, None)
            self.results.pop(key, None)
            self.queries.pop(key, None)

    def query_counts(self, key: str) -> QueryCounts:
        """Return the counters of a query since it was registered."""
        own = self.queries.get(key, QueryMetrics())
        return QueryCounts(self.results[key], 0, histogram_of(own.overall))

    def report(self, streams: Sequence[str], queries: Mapping[str, str]) -> dict[str, Any]:
        """Return the metrics for progress; ``queries`` maps keys to names."""
        return {
            "streams": {
                name: {
                    "rows": self.rows_in[name],
                    "late": self.late[name] - self.ahead[name],
                    "ahead": self.ahead[name],
                    **({"malformed": self.malformed[name]} if name in self.malformed else {}),
                }
                for name in streams
            },
            "results": {name: self.results[key] for key, name in queries.items()},
            "batch": {
                "number": self.batch,
                "rows": {name: self.last_rows_in.get(name, 0) for name in streams},
                "late": {name: self.last_late.get(name, 0) for name in streams},
                "results": {name: self.last_results.get(key, 0) for key, name in queries.items()},
            },
            "queries": {name: self._query_report(key) for key, name in queries.items()},
            "unsent": self.unsent,
            "rows_held": self.rows_held,
            "bytes_held": self.bytes_held,
            "workers": [len(self.workers[partition]) for partition in sorted(self.workers)],
            "rebuilds": asdict(self.rebuilds),
            "watermark": _iso(self.final),
            "newest": _iso(self.newest),
        }

    def _query_report(self, key: str) -> dict[str, Any]:
        waiting = self.waiting(key)
        return {
            **self.queries.get(key, QueryMetrics()).report(),
            "watermark": _iso(self.clocks.get(key, QueryClock()).watermark),
            "waiting_for": None if waiting is None else waiting.to_dict(),
        }

    def note(self, batch: int, report: dict[str, Any]) -> None:
        """Keep the report after a batch for listeners, which learn of the batch later."""
        self._noted.pop(batch, None)
        self._noted[batch] = report
        while len(self._noted) > _NOTED:
            del self._noted[next(iter(self._noted))]

    def noted(self, batch: int) -> dict[str, Any] | None:
        """Return the report after a batch, if it is still kept."""
        return self._noted.get(batch)

    def all_noted(self) -> list[tuple[int, dict[str, Any]]]:
        """Return the batches whose reports are kept, with the reports, from old to new."""
        return list(self._noted.items())


def _merged(reports: Sequence[Mapping[str, Mapping[str, Any]]]) -> dict[str, QueryClock]:
    """Return the clock of each query: equal in all partitions, but rows may wait only in some."""
    found: dict[str, QueryClock] = {}
    for name, clock in (item for clocks in reports for item in clocks.items()):
        if name.casefold() not in found or clock["waiting_for"] is not None:
            found[name.casefold()] = QueryClock(**clock)
    return found


def _iso(micros: int) -> str | None:
    if micros <= BEFORE_ALL:
        return None
    try:
        return (
            datetime.fromtimestamp(micros // 1_000_000, UTC)
            .replace(microsecond=micros % 1_000_000, tzinfo=None)
            .isoformat(sep=" ")
        )
    except (OverflowError, ValueError):
        return None
