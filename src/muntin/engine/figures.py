"""Read the figures of an engine in process, for :mod:`muntin.metrics`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from muntin.errors import InputError
from muntin.metrics.figures import (
    EngineFigures,
    Histogram,
    OverloadFigures,
    QueryCounts,
    QueryFigures,
    StreamCounts,
    StreamFigures,
    Waits,
)
from muntin.model.clock import AFTER_ALL, BEFORE_ALL, parse_interval
from muntin.runtime.dataflow import Dataflow
from muntin.runtime.holdings import bytes_held, rows_held
from muntin.runtime.metrics import BOUNDS, ResponseTimes
from muntin.runtime.running_join import RunningJoin
from muntin.runtime.running_pipeline import RunningPipeline
from muntin.runtime.stream_input import StreamState

if TYPE_CHECKING:
    from muntin.engine.query_registry import QueryEntry, QueryRegistry

_SECOND = 1_000_000


def read_figures(dataflow: Dataflow, registry: QueryRegistry) -> EngineFigures:
    """Return the figures of an engine, whose lock is held."""
    rows = {id(join): sum(join.state_rows().values()) for join in dataflow.joins()}
    queries = {
        entry.query.name: _query_figures(dataflow, registry, entry, rows)
        for entry in registry.entries()
    }
    running = sum(query_counts(dataflow, entry).results for entry in registry.entries())
    return EngineFigures(
        kind="in_process",
        streams={
            name: _stream_figures(dataflow, registry, state)
            for name, state in dataflow.streams.items()
        },
        queries=queries,
        results=registry.finished.total.results + running,
        held_bytes=bytes_held(dataflow),
        held_rows=rows_held(dataflow),
    )


def seconds_of(instant: int) -> float | None:
    """Return an instant in seconds since 1970; None if it is not a time."""
    return instant / _SECOND if BEFORE_ALL < instant < AFTER_ALL else None


def histogram_of(times: ResponseTimes) -> Histogram:
    """Return response times by upper bounds."""
    return Histogram(BOUNDS, times.cumulative(), times.total)


def overload_figures(report: Mapping[str, Any]) -> OverloadFigures | None:
    """Return the figures in the report on a query's overload; None if it is not limited."""
    if report["mode"] != "adapt":
        return None
    reports = report.get("joins", {"": report})
    budgets = {
        f"{name}: {half}" if name else half: rate
        for name, one in reports.items()
        for half, rate in (one["budgets"] or {}).items()
    }
    ages = [(one, age) for each in reports.values() for one, age in each["oldest_rows"].items()]
    oldest: dict[str, float] = {}
    for alias, seconds in ((alias, _seconds(age)) for alias, age in ages):
        if seconds is not None:
            oldest[alias] = max(seconds, oldest.get(alias, 0.0))
    return OverloadFigures(
        overloaded=bool(report["overloaded"]),
        share_of_results=float(report["share_of_results"]),
        budgets=budgets,
        oldest=oldest,
        stale_results=int(report["stale_results"]),
    )


def _seconds(age: str) -> float | None:
    """Return an age in words in seconds; None if it is in rows."""
    try:
        return parse_interval(age) / _SECOND
    except InputError:
        return None


def query_counts(dataflow: Dataflow, entry: QueryEntry) -> QueryCounts:
    """Return the counters of a query since it was registered."""
    if entry.suspended is not None:
        return entry.suspended.counts
    running = dataflow.queries[entry.query.name]
    late = dataflow.group_of(entry.query.name).rows_late() - entry.late_before
    return QueryCounts(running.rows_out, late, histogram_of(running.response))


def stream_counts(state: StreamState) -> StreamCounts:
    """Return the counters of a stream since it was declared."""
    return StreamCounts(state.rows_in, state.rows_late, state.rows_ahead)


def _stream_figures(
    dataflow: Dataflow, registry: QueryRegistry, state: StreamState
) -> StreamFigures:
    name = state.stream.name
    inputs = dataflow.groups.inputs(name)
    return StreamFigures(
        registry.finished_streams.before(name) + stream_counts(state),
        idle=None if state.last_row is None else time.monotonic() - state.last_row,
        waiting=max(each.waiting() for each in inputs),
        held_rows=max(each.log.held() for each in inputs),
        held_bytes=max(each.log.nbytes() for each in inputs),
    )


def _query_figures(
    dataflow: Dataflow, registry: QueryRegistry, entry: QueryEntry, rows: Mapping[int, int]
) -> QueryFigures:
    """Return the figures of a query; ``rows`` are those in the windows of each join, by its id."""
    name = entry.query.name
    counts = registry.finished.before(name) + query_counts(dataflow, entry)
    if entry.suspended is not None:
        return QueryFigures(counts, suspended=True, buffers={"output": entry.rows_waiting()})
    running, group = dataflow.queries[name], dataflow.group_of(name)
    leaves = running.leaves if isinstance(running, RunningPipeline) else [running]
    joins = list({id(leaf.join): leaf.join for leaf in leaves}.values())
    above = running.nbytes() if isinstance(running, RunningPipeline) else 0
    waiting, buffers = entry.waits_for(group), running.queues()
    return QueryFigures(
        counts,
        lag=max((join.metrics.lag_seconds for join in joins), default=0.0),
        watermark=seconds_of(group.frontier[0]),
        waits=None if waiting is None else Waits(waiting.stream, waiting.since_seconds),
        state_rows=sum(rows[id(join)] for join in joins),
        state_bytes=above + sum(join.operator.nbytes() for join in joins),
        buffers={
            "input": buffers["input"],
            "held": buffers["held"],
            "output": buffers["output"] + entry.rows_waiting(),
        },
        overload=_overload_of(joins),
    )


def _overload_of(joins: Iterable[RunningJoin]) -> OverloadFigures | None:
    """Return the figures of the limited joins of a query together."""
    reports: dict[str, dict[str, Any]] = {
        join.query.name: {"mode": "adapt", **join.overload.stats()}
        for join in joins
        if join.overload.mode == "adapt"
    }
    if not reports:
        return None
    if len(reports) == 1:
        return overload_figures(next(iter(reports.values())))
    return overload_figures(
        {
            "mode": "adapt",
            "joins": reports,
            "overloaded": any(one["overloaded"] for one in reports.values()),
            "share_of_results": min(one["share_of_results"] for one in reports.values()),
            "stale_results": sum(one["stale_results"] for one in reports.values()),
        }
    )
