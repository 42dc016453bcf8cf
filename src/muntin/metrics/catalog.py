"""All metrics: name, kind, help, labels, and where the value is in the figures of an engine.

Names follow Prometheus: the prefix ``muntin``, what is measured, the base unit; counters end in
``_total``. A metric that is declared here appears in ``/metrics``, in OpenTelemetry, in Spark's
metrics system and in the documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import TypeAlias

from muntin.metrics.figures import (
    BatchFigures,
    EngineFigures,
    Histogram,
    OverloadFigures,
    QueryFigures,
    StreamFigures,
)

Value: TypeAlias = float | Histogram
Samples: TypeAlias = Iterable[tuple[tuple[str, ...], Value | None]]
"""Values of labels, each with the value of the metric; None: there is none now."""


class Kind(StrEnum):
    """The kinds of metrics, by Prometheus' names."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Where(StrEnum):
    """The engines that export a metric."""

    BOTH = "both"
    IN_PROCESS = "in process"
    SPARK = "Spark"


@dataclass(frozen=True)
class Metric:
    """A metric: ``read`` finds its samples in the figures of an engine."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...]
    read: Callable[[EngineFigures], Samples]
    where: Where = Where.BOTH


@dataclass(frozen=True)
class Family:
    """A metric with its current samples."""

    metric: Metric
    samples: tuple[tuple[tuple[str, ...], Value], ...]


def families(figures: EngineFigures) -> list[Family]:
    """Return all metrics that have a sample, in the order of their declaration."""
    found = [
        Family(
            metric,
            tuple((labels, value) for labels, value in metric.read(figures) if value is not None),
        )
        for metric in METRICS
    ]
    return [family for family in found if family.samples]


# -- how the samples of a stream, a query, ... are found -------------------------------------------


def _streams(
    name: str, kind: Kind, about: str, value: Callable[[StreamFigures], float | None]
) -> Metric:
    def read(figures: EngineFigures) -> Samples:
        return (((stream,), value(each)) for stream, each in figures.streams.items())

    return Metric(f"muntin_stream_{name}", kind, about, ("stream",), read)


def _queries(
    name: str, kind: Kind, about: str, value: Callable[[QueryFigures], Value | None]
) -> Metric:
    def read(figures: EngineFigures) -> Samples:
        return (((query,), value(each)) for query, each in figures.queries.items())

    return Metric(f"muntin_query_{name}", kind, about, ("query",), read)


def _overloads(
    name: str,
    about: str,
    values: Callable[[OverloadFigures], Iterable[tuple[tuple[str, ...], float]]],
    *labels: str,
) -> Metric:
    def read(figures: EngineFigures) -> Iterator[tuple[tuple[str, ...], float]]:
        for query, each in figures.queries.items():
            if each.overload is not None:
                yield from (((query, *rest), value) for rest, value in values(each.overload))

    return Metric(f"muntin_query_{name}", Kind.GAUGE, about, ("query", *labels), read)


def _engine(
    name: str, kind: Kind, about: str, value: Callable[[EngineFigures], float | None]
) -> Metric:
    return Metric(f"muntin_{name}", kind, about, (), lambda figures: [((), value(figures))])


def _batches(
    name: str, kind: Kind, about: str, value: Callable[[BatchFigures], float | None]
) -> Metric:
    def read(figures: EngineFigures) -> Samples:
        return [((), None if figures.batches is None else value(figures.batches))]

    return Metric(f"muntin_{name}", kind, about, (), read, Where.SPARK)


def _only(where: Where, metric: Metric) -> Metric:
    return Metric(metric.name, metric.kind, metric.help, metric.labels, metric.read, where)


def _phases(figures: EngineFigures) -> Samples:
    batches = figures.batches
    return () if batches is None else (((name,), sum_) for name, sum_ in batches.phases.items())


def _waits(figures: EngineFigures) -> Samples:
    return (
        ((query, each.waits.stream), each.waits.seconds)
        for query, each in figures.queries.items()
        if each.waits is not None
    )


def _buffers(figures: EngineFigures) -> Samples:
    return (
        ((query, buffer), rows)
        for query, each in figures.queries.items()
        for buffer, rows in each.buffers.items()
    )


def _states(figures: EngineFigures) -> Samples:
    suspended = sum(each.suspended for each in figures.queries.values())
    running = len(figures.queries) - suspended
    return [(("running",), running), (("suspended",), suspended)]


# -- the metrics -----------------------------------------------------------------------------------

METRICS: tuple[Metric, ...] = (
    Metric(
        "muntin_engine_info",
        Kind.GAUGE,
        "1; the label says which engine this is: in_process or spark.",
        ("engine",),
        lambda figures: [((figures.kind,), 1)],
    ),
    Metric(
        "muntin_queries",
        Kind.GAUGE,
        "Standing queries that are running or suspended.",
        ("state",),
        _states,
    ),
    _engine(
        "results_total",
        Kind.COUNTER,
        "Result rows of all queries, also of those that were dropped.",
        lambda figures: figures.results,
    ),
    _engine(
        "held_bytes",
        Kind.GAUGE,
        "Bytes of rows, windows, indexes and operators; what queries share counts once.",
        lambda figures: figures.held_bytes,
    ),
    _engine(
        "held_rows",
        Kind.GAUGE,
        "Rows in windows and rows that wait; on Spark a row counts in each of its partitions.",
        lambda figures: figures.held_rows,
    ),
    # -- streams
    _streams(
        "rows_total",
        Kind.COUNTER,
        "Rows that arrived; in process with late rows and rows too far ahead.",
        lambda stream: stream.counts.rows,
    ),
    _streams(
        "late_rows_total",
        Kind.COUNTER,
        "Rows that arrived too late for a query that reads the stream.",
        lambda stream: stream.counts.late,
    ),
    _streams(
        "ahead_rows_total",
        Kind.COUNTER,
        "Rows further ahead of their stream than max_advance allows.",
        lambda stream: stream.counts.ahead,
    ),
    _streams(
        "idle_seconds",
        Kind.GAUGE,
        "Time since the last row arrived, by the clock.",
        lambda stream: stream.idle,
    ),
    _only(
        Where.IN_PROCESS,
        _streams(
            "waiting_rows",
            Kind.GAUGE,
            "Rows that wait for other streams to catch up.",
            lambda stream: stream.waiting,
        ),
    ),
    _only(
        Where.IN_PROCESS,
        _streams(
            "held_rows",
            Kind.GAUGE,
            "Rows that the log of the stream holds for queries.",
            lambda stream: stream.held_rows,
        ),
    ),
    _only(
        Where.IN_PROCESS,
        _streams(
            "held_bytes",
            Kind.GAUGE,
            "Bytes of the columns of those rows.",
            lambda stream: stream.held_bytes,
        ),
    ),
    # -- queries
    _queries(
        "results_total",
        Kind.COUNTER,
        "Result rows; with EMIT CHANGES both additions and removals.",
        lambda query: query.counts.results,
    ),
    _queries(
        "response_seconds",
        Kind.HISTOGRAM,
        "Time from the arrival of the newest row of an added result to the result.",
        lambda query: query.counts.response,
    ),
    _only(
        Where.IN_PROCESS,
        _queries(
            "late_rows_total",
            Kind.COUNTER,
            "Rows of its streams that arrived too late for this query.",
            lambda query: query.counts.late,
        ),
    ),
    _queries(
        "lag_seconds",
        Kind.GAUGE,
        "Event time between the newest row that arrived and what the query has processed.",
        lambda query: query.lag,
    ),
    _queries(
        "watermark_timestamp_seconds",
        Kind.GAUGE,
        "Event time up to which the results are final, in seconds since 1970.",
        lambda query: query.watermark,
    ),
    Metric(
        "muntin_query_waiting_seconds",
        Kind.GAUGE,
        "Time for which a stream without rows has held back the other streams of the query.",
        ("query", "stream"),
        _waits,
    ),
    _queries(
        "suspended",
        Kind.GAUGE,
        "1 if the query failed and no longer runs, else 0.",
        lambda query: int(query.suspended),
    ),
    _queries(
        "state_rows",
        Kind.GAUGE,
        "Rows inside the windows of its joins; queries that share a join all have its rows.",
        lambda query: query.state_rows,
    ),
    _only(
        Where.IN_PROCESS,
        _queries(
            "state_bytes",
            Kind.GAUGE,
            "Bytes of the windows and indexes of its joins, and of the operators above them.",
            lambda query: query.state_bytes,
        ),
    ),
    Metric(
        "muntin_query_buffer_rows",
        Kind.GAUGE,
        "Rows in progress: input to be processed, results held back, output not delivered.",
        ("query", "buffer"),
        _buffers,
    ),
    # -- overload = 'adapt'
    _overloads(
        "overloaded",
        "1 while probe budgets limit the query, else 0; only with overload = 'adapt'.",
        lambda overload: [((), int(overload.overloaded))],
    ),
    _overloads(
        "results_share_ratio",
        "Share of all results that the query produces under overload, estimated.",
        lambda overload: [((), overload.share_of_results)],
    ),
    _overloads(
        "probe_budget",
        "Probes per second of event time that a half join may make; +Inf without a limit.",
        lambda overload: (
            ((name,), inf if rate is None else rate) for name, rate in overload.budgets.items()
        ),
        "half_join",
    ),
    _overloads(
        "oldest_row_seconds",
        "Age of the oldest row of a source in any result, for windows in time.",
        lambda overload: (((alias,), age) for alias, age in overload.oldest.items()),
        "source",
    ),
    _overloads(
        "stale_results",
        "Results with a row older than its FRESHNESS, since the join has its present plan.",
        lambda overload: [((), overload.stale_results)],
    ),
    # -- batches on Spark
    _batches(
        "batches_total",
        Kind.COUNTER,
        "Complete batches.",
        lambda batches: batches.batches,
    ),
    Metric(
        "muntin_batch_phase_seconds_total",
        Kind.COUNTER,
        "Time spent in batches: plan, partitions (Spark's tasks), sinks, commit.",
        ("phase",),
        _phases,
        Where.SPARK,
    ),
    _batches(
        "last_batch_timestamp_seconds",
        Kind.GAUGE,
        "Time at which the last batch was complete, in seconds since 1970.",
        lambda batches: batches.last,
    ),
    _batches(
        "rebuilds_total",
        Kind.COUNTER,
        "Partitions that a state server rebuilt from the checkpoint.",
        lambda batches: batches.rebuilds,
    ),
    _batches(
        "rebuilt_rows_total",
        Kind.COUNTER,
        "Rows of rebuilt partitions.",
        lambda batches: batches.rebuilt_rows,
    ),
    _batches(
        "rebuild_seconds_total",
        Kind.COUNTER,
        "Time of rebuilds, added up over partitions.",
        lambda batches: batches.rebuild_seconds,
    ),
    _batches(
        "unsent_results_total",
        Kind.COUNTER,
        "Results that may not have reached subscribers.",
        lambda batches: batches.unsent,
    ),
)
