"""What a run counts: partitions tell after every micro-batch, the engine adds up. Since the process began, not since the checkpoint."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from muntin.model.clock import BEFORE_ALL
from muntin.runtime.metrics import BUFFERS, ResponseTimes
from muntin.runtime.stalled_stream import Waiting

STATS = "stats"
"""The kind of output that carries a partition's :class:`PartitionMetrics`."""

_NOTED = 100


@dataclass(frozen=True)
class Rebuilt:
    """That a partition was built again from the shares that are kept: rows it then held, and when, in seconds since 1970."""

    rows: int
    began: float
    ended: float


@dataclass(frozen=True)
class QueryClock:
    """How far time has come for a query, and the stream that it waits for, if it does, with the newest time of that."""

    watermark: int = BEFORE_ALL
    waiting_for: str | None = None
    newest: int = BEFORE_ALL


@dataclass(frozen=True)
class PartitionMetrics:
    """What a partition tells of a micro-batch.

    The new rows that are at home in it, the rows it holds, the instant that is final, the time of the newest row of any stream so
    far, the bytes of state; which partition it is and which worker of Spark asked it; whether it had to be built again first; for each
    query its response times in the batch and the sizes of its buffers; results that may not have reached subscribers; for each
    limited query what was counted; the queries that are suspended, and why; for each query how far time has come; for each
    stream the rows that were too far ahead, and the newest time.
    """

    rows_in: Mapping[str, int]
    rows_held: int
    final: int
    newest: int = BEFORE_ALL
    bytes_held: int = 0
    partition: int = 0
    worker: int = 0
    rebuilt: Rebuilt | None = None
    queries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    unsent: int = 0
    overload: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    suspended: Mapping[str, str] = field(default_factory=dict)
    clocks: Mapping[str, QueryClock] = field(default_factory=dict)
    rows_ahead: Mapping[str, int] = field(default_factory=dict)
    times: Mapping[str, int] = field(default_factory=dict)
    due: int | None = None
    """The first instant at which time alone can change a result; None: time changes nothing."""

    def to_blob(self) -> bytes:
        """As JSON."""
        clocks = {name: asdict(clock) for name, clock in self.clocks.items()}
        return json.dumps(
            {
                **vars(self),
                "rebuilt": asdict(self.rebuilt) if self.rebuilt else None,
                "clocks": clocks,
            }
        ).encode()


@dataclass
class Rebuilds:
    """Partitions that were built again: how many, their rows, seconds from the first to the last of a micro-batch, seconds of each in sum."""

    partitions: int = 0
    rows: int = 0
    seconds: float = 0.0
    partition_seconds: float = 0.0

    def add(self, told: Sequence[Rebuilt]) -> None:
        """Take those of one micro-batch."""
        if told:
            self.partitions += len(told)
            self.rows += sum(one.rows for one in told)
            self.seconds += max(one.ended for one in told) - min(one.began for one in told)
            self.partition_seconds += sum(one.ended - one.began for one in told)


@dataclass
class QueryMetrics:
    """What the partitions measure of a query: response times since the process began and in the last batch, sizes of buffers now.

    ``began`` is the moment at which the query was first heard of.
    """

    overall: ResponseTimes = field(default_factory=ResponseTimes)
    last: ResponseTimes = field(default_factory=ResponseTimes)
    buffers: Counter[str] = field(default_factory=Counter)
    began: float = field(default_factory=time.monotonic)

    def add(self, told: Sequence[Mapping[str, Any]]) -> None:
        """Take what the partitions tell of one batch."""
        self.last = ResponseTimes()
        self.buffers = Counter()
        for one in told:
            self.last.merge(ResponseTimes.from_json(one["response"]))
            self.buffers.update(one["buffers"])
        self.overall.merge(self.last)

    def told(self) -> dict[str, Any]:
        """As a part of progress; the keys are there before the first batch."""
        buffers = {**dict.fromkeys(BUFFERS, 0), **self.buffers}
        return {
            "response_seconds": self.overall.stats(),
            "batch_response_seconds": self.last.stats(),
            "buffers": buffers,
        }


@dataclass
class RunMetrics:
    """Counts of streams and queries over all partitions; results and measures under the keys that the engine has for queries."""

    rows_in: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    ahead: Counter[str] = field(default_factory=Counter)
    """Rows too far ahead; they are put aside with the late ones."""
    begun: dict[str, int] = field(default_factory=dict)
    """For each stream the newest time in the first batch that had any."""
    results: Counter[str] = field(default_factory=Counter)
    measures: dict[str, QueryMetrics] = field(default_factory=dict)
    unsent: int = 0
    rows_held: int = 0
    bytes_held: int = 0
    final: int = BEFORE_ALL
    newest: int = BEFORE_ALL
    workers: dict[int, set[int]] = field(default_factory=dict)
    rebuilds: Rebuilds = field(default_factory=Rebuilds)
    batch: int = -1
    clocks: dict[str, QueryClock] = field(default_factory=dict)
    last_rows: dict[str, float] = field(default_factory=dict)
    """When the last row of each stream came."""
    due: int | None = BEFORE_ALL
    """The first instant at which time alone can change a result; None: there is none."""
    _noted: dict[int, dict[str, Any]] = field(default_factory=dict)

    def add(
        self,
        batch: int,
        told: Sequence[Mapping[str, Any]],
        results: Mapping[str, int],
        late: Mapping[str, int],
    ) -> None:
        """Take what the partitions told of a micro-batch, and what came of it; one that is done again counts once."""
        if batch <= self.batch:
            return
        self.batch = batch
        self.results.update(results)
        self.late.update(late)
        for stats in told:
            self.rows_in.update(stats["rows_in"])
            self.last_rows.update(
                (stream, time.monotonic()) for stream, rows in stats["rows_in"].items() if rows
            )
            self.ahead.update(stats["rows_ahead"])
            self.begun = {**stats["times"], **self.begun}
            self.final = max(self.final, stats["final"])
            self.newest = max(self.newest, stats["newest"])
            self.workers.setdefault(stats["partition"], set()).add(stats["worker"])
            self.unsent += stats["unsent"]
        self.rebuilds.add([Rebuilt(**stats["rebuilt"]) for stats in told if stats["rebuilt"]])
        if told:
            dues = [stats["due"] for stats in told if stats["due"] is not None]
            self.due = min(dues, default=None)
            self.rows_held = sum(stats["rows_held"] for stats in told)
            self.bytes_held = sum(stats["bytes_held"] for stats in told)
            self.final = max(stats["final"] for stats in told)
            self.clocks = _merged([stats["clocks"] for stats in told])
        by_key = [
            {name.casefold(): one for name, one in stats["queries"].items()} for stats in told
        ]
        for key in results:
            self.measures.setdefault(key, QueryMetrics()).add(
                [queries[key] for queries in by_key if key in queries]
            )

    def waiting(self, key: str) -> Waiting | None:
        """The stream that a query waits for, and since when."""
        clock = self.clocks.get(key)
        if clock is None or clock.waiting_for is None:
            return None
        began = self.measures[key].began if key in self.measures else time.monotonic()
        since = self.last_rows.get(clock.waiting_for, began)
        return Waiting(clock.waiting_for, clock.newest, time.monotonic() - since)

    def forget(self, key: str) -> None:
        """Forget a query that is dropped."""
        self.clocks.pop(key, None)
        self.results.pop(key, None)
        self.measures.pop(key, None)

    def told(self, streams: Sequence[str], queries: Mapping[str, str]) -> dict[str, Any]:
        """As a part of progress; ``queries`` maps keys to names."""
        return {
            "streams": {
                name: {
                    "rows": self.rows_in[name],
                    "late": self.late[name] - self.ahead[name],
                    "ahead": self.ahead[name],
                }
                for name in streams
            },
            "results": {name: self.results[key] for key, name in queries.items()},
            "queries": {name: self._told_query(key) for key, name in queries.items()},
            "unsent": self.unsent,
            "rows_held": self.rows_held,
            "bytes_held": self.bytes_held,
            "workers": [len(self.workers[partition]) for partition in sorted(self.workers)],
            "rebuilds": asdict(self.rebuilds),
            "watermark": _iso(self.final),
            "newest": _iso(self.newest),
        }

    def _told_query(self, key: str) -> dict[str, Any]:
        waiting = self.waiting(key)
        return {
            **self.measures.get(key, QueryMetrics()).told(),
            "watermark": _iso(self.clocks.get(key, QueryClock()).watermark),
            "waiting_for": None if waiting is None else waiting.to_dict(),
        }

    def note(self, batch: int, told: dict[str, Any]) -> None:
        """Keep what was told after a batch, for those who hear of the batch later; the last hundred are kept."""
        self._noted.pop(batch, None)
        self._noted[batch] = told
        while len(self._noted) > _NOTED:
            del self._noted[next(iter(self._noted))]

    def noted(self, batch: int) -> dict[str, Any] | None:
        """What was told after a batch, if that is still kept."""
        return self._noted.get(batch)


def _merged(told: Sequence[Mapping[str, Mapping[str, Any]]]) -> dict[str, QueryClock]:
    """How far time has come for each query: the same in all partitions, but rows may wait in some of them only."""
    found: dict[str, QueryClock] = {}
    for name, clock in (item for clocks in told for item in clocks.items()):
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
