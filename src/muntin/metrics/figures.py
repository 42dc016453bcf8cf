"""The figures of an engine at one moment, in one form for both engines.

Times are in seconds; instants of event time in seconds since 1970. What an engine does not know is
None and is not exported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Histogram:
    """Counts of observations: ``counts`` has those up to each bound, and at last all of them."""

    bounds: tuple[float, ...] = ()
    counts: tuple[int, ...] = (0,)
    total: float = 0.0

    @property
    def count(self) -> int:
        """Return the number of observations."""
        return self.counts[-1]

    def __add__(self, other: Histogram) -> Histogram:
        if not other.bounds:
            return self
        if not self.bounds:
            return other
        assert self.bounds == other.bounds, "all histograms of a metric have the same bounds"
        counts = tuple(map(sum, zip(self.counts, other.counts, strict=True)))
        return Histogram(self.bounds, counts, self.total + other.total)


@dataclass(frozen=True)
class QueryCounts:
    """The counters of a query; they go on when its name is used again."""

    results: int = 0
    late: int = 0
    response: Histogram = field(default_factory=Histogram)

    def __add__(self, other: QueryCounts) -> QueryCounts:
        return QueryCounts(
            self.results + other.results,
            self.late + other.late,
            self.response + other.response,
        )


@dataclass(frozen=True)
class OverloadFigures:
    """What the controller of a query under overload decides, and how fresh its results are.

    ``budgets`` are probes per second by half join, None: no limit. ``oldest`` is the age of the
    oldest row in a result, by alias.
    """

    overloaded: bool
    share_of_results: float
    budgets: Mapping[str, float | None]
    oldest: Mapping[str, float]
    stale_results: int


@dataclass(frozen=True)
class Waits:
    """The stream that holds back rows of a query's other streams, and for how long it has."""

    stream: str
    seconds: float


@dataclass(frozen=True)
class QueryFigures:
    """A standing query. Queries that share a join each have its state."""

    counts: QueryCounts
    suspended: bool = False
    lag: float | None = None
    watermark: float | None = None
    waits: Waits | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    buffers: Mapping[str, int] = field(default_factory=dict)
    overload: OverloadFigures | None = None


@dataclass(frozen=True)
class StreamCounts:
    """The counters of a stream; they go on when its name is used again."""

    rows: int = 0
    late: int = 0
    ahead: int = 0

    def __add__(self, other: StreamCounts) -> StreamCounts:
        return StreamCounts(
            self.rows + other.rows, self.late + other.late, self.ahead + other.ahead
        )


@dataclass(frozen=True)
class StreamFigures:
    """A stream; ``idle`` is the time since its last row came."""

    counts: StreamCounts
    idle: float | None = None
    waiting: int | None = None
    held_rows: int | None = None
    held_bytes: int | None = None


@dataclass(frozen=True)
class BatchFigures:
    """The batches of an engine on Spark; ``last`` is the time at which the last one ended."""

    batches: int
    phases: Mapping[str, float]
    last: float | None
    rebuilds: int
    rebuilt_rows: int
    rebuild_seconds: float
    unsent: int


@dataclass(frozen=True)
class EngineFigures:
    """An engine: ``kind`` is ``in_process`` or ``spark``; ``results`` include dropped queries."""

    kind: str
    streams: Mapping[str, StreamFigures]
    queries: Mapping[str, QueryFigures]
    results: int
    held_bytes: int
    held_rows: int | None = None
    batches: BatchFigures | None = None
