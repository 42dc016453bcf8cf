"""The metrics of a partition after a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from muntin.model.clock import BEFORE_ALL
from muntin.runtime.holdings import bytes_held, closed, rows_waiting, schedulers, take_measures
from muntin.runtime.metrics import BUFFERS, ResponseTimes
from muntin.spark.exchange.deployment import PlacedQuery
from muntin.spark.exchange.partition_metrics import PartitionMetrics, QueryClock
from muntin.spark.partition.deployed_dataflows import DeployedDataflows
from muntin.spark.partition.next_deadline import next_due
from muntin.spark.partition.partition_clock import PartitionClock
from muntin.spark.partition.partition_dataflow import PartitionDataflow


@dataclass(frozen=True)
class BatchCounts:
    """The rows of a batch that a partition owns, by stream, and those too far ahead.

    ``malformed`` counts messages that cannot be read, ``sources`` are those that sent rows.
    """

    came: Mapping[str, int]
    ahead: Mapping[str, int]
    malformed: Mapping[str, int] = field(default_factory=dict)
    sources: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def metrics_of(
    number: int, dataflows: DeployedDataflows, clock: PartitionClock, counts: BatchCounts
) -> PartitionMetrics:
    """Return the metrics of a partition; response times are those since the last call."""
    queries = {}
    for each in dataflows:
        orders = schedulers(each.dataflow)
        for name, (times, buffers) in take_measures(each.dataflow).items():
            measured = {"response": times.to_json(), "buffers": buffers}
            queries[name] = {**measured, **orders[name]}
        for name in each.suspended:
            nothing = dict.fromkeys(BUFFERS, 0)
            queries[name] = {"response": ResponseTimes().to_json(), "buffers": nothing}
    final = min((each.final[0] for each in dataflows), default=BEFORE_ALL)
    return PartitionMetrics(
        counts.came,
        dataflows.rows_held(),
        max(final, clock.moment),
        max(clock.newest.values(), default=BEFORE_ALL),
        sum(bytes_held(each.dataflow) for each in dataflows),
        number,
        queries=queries,
        overload={name: one.take() for name, one in dataflows.quotas().items()},
        suspended=dataflows.suspended(),
        clocks={
            placed.query.name: _clock_of(placed, dataflows, clock)
            for placed in dataflows.in_force()
        },
        due=_due(dataflows, clock),
        rows_ahead=counts.ahead,
        malformed=counts.malformed,
        sources=clock.sources.newest if number == 0 else {},
        active={stream: list(times) for stream, times in counts.sources.items()},
        idle=clock.sources.idle,
        times=clock.newest,
    )


def _clock_of(
    placed: PlacedQuery, dataflows: DeployedDataflows, clock: PartitionClock
) -> QueryClock:
    """Return the watermark of a query, and the stream it waits for while rows of others wait."""
    own, deployment = dataflows.by_name[placed.dataflow], dataflows.deployment
    last = min(own.streams, key=lambda stream: deployment.watermark((stream,), clock.newest))
    waits = any(rows_waiting(own.dataflow, stream) for stream in own.streams if stream != last)
    newest = clock.newest.get(last, BEFORE_ALL)
    return QueryClock(max(own.final[0], clock.moment), last if waits else None, newest)


def _due(dataflows: DeployedDataflows, clock: PartitionClock) -> int | None:
    """Return the first instant at which time alone can change a result, or None."""
    found = []
    suspended = dataflows.suspended()
    for own in dataflows:
        running = [
            placed
            for placed in dataflows.in_force()
            if placed.dataflow == own.name and placed.query.name not in suspended
        ]
        settings = [(placed.query, own.settings[placed.query.name]) for placed in running]
        due = next_due(own.dataflow, settings, clock.newest)
        found += [] if due is None else [due]
        if any(_is_to_begin(placed, own) for placed in running):
            found.append(closed(own.dataflow) + 1)
    return min(found, default=None)


def _is_to_begin(placed: PlacedQuery, own: PartitionDataflow) -> bool:
    """Return whether a query has results before any row, and has not seen an instant yet."""
    begins = placed.query.has_beginning
    return begins and all(own.pipeline(part.name).seen is None for part in placed.parts)
