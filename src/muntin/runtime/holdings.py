"""The contents of a dataflow: rows and bytes in logs, windows and operators, and rows that wait."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from muntin.model.clock import BEFORE_ALL
from muntin.runtime.dataflow import Dataflow
from muntin.runtime.metrics import ResponseTimes
from muntin.runtime.plan_stats import levels_of_joins, scheduler_of, without_effect
from muntin.runtime.running_query import RunningQuery
from muntin.runtime.stream_input import StreamInput


def rows_held(dataflow: Dataflow) -> int:
    """Return the rows of all streams in logs and waiting for their turn."""
    groups = dataflow.groups
    return sum(max(each.held_after() for each in groups.inputs(name)) for name in groups.streams)


def rows_waiting(dataflow: Dataflow, stream: str) -> int:
    """Return how many rows of a stream wait for their turn."""
    return max(each.waiting() for each in dataflow.groups.inputs(stream))


def bytes_held(dataflow: Dataflow) -> int:
    """Return the bytes of columns in logs, and of the state of joins and operators."""
    logs = sum(each.log.nbytes() for each in _inputs(dataflow))
    above = sum(pipeline.nbytes() for group in dataflow.groups for pipeline in group.pipelines)
    return logs + above + sum(join.nbytes() for join in dataflow.joins())


def state_rows(dataflow: Dataflow) -> dict[str, int]:
    """Return for each stream the most of its rows that a query holds inside a window."""
    rows = dict.fromkeys(dataflow.streams, 0)
    for join in dataflow.joins():
        held = join.state_rows()
        for source in join.query.sources:
            if not source.stored:
                rows[source.relation] = max(rows[source.relation], held[source.alias])
    return rows


def table_held(dataflow: Dataflow, stream: str) -> pa.Table:
    """Return the rows of a partition's stream that windows reach or that wait, in order."""
    dataflow.groups.trim(exactly=True)
    return dataflow.groups.all_streams.inputs[stream].held()[1].combine_chunks()


def positions(dataflow: Dataflow) -> dict[str, int]:
    """Return for each stream of a partition how many rows have come that were not late."""
    return {name: each.accepted for name, each in dataflow.groups.all_streams.inputs.items()}


def take_measures(dataflow: Dataflow) -> Mapping[str, tuple[ResponseTimes, dict[str, int]]]:
    """Return for each query its response times since the last call, and its buffers in rows."""
    return {
        name: (running.take_response_times(), running.buffers())
        for name, running in dataflow.queries.items()
    }


def schedulers(dataflow: Dataflow) -> dict[str, dict[str, object]]:
    """Return for each query the schedule of its joins, and the settings without effect on them."""
    found: dict[str, dict[str, object]] = {}
    for name, running in dataflow.queries.items():
        leaves = [running] if isinstance(running, RunningQuery) else running.leaves
        found[name] = {
            "scheduler": scheduler_of(leaves),
            "levels": levels_of_joins(leaves),
            "without_effect": without_effect(leaves),
        }
    return found


def closed(dataflow: Dataflow) -> int:
    """Return the last instant at which no further row can count for any query."""
    groups = dataflow.groups
    return min((group.closed for group in groups.active or groups), default=BEFORE_ALL)


def oldest_waiting(dataflow: Dataflow) -> int | None:
    """Return the time of the oldest row that is not final yet, or None."""
    times = [time for each in _inputs(dataflow) if (time := each.oldest_waiting()) is not None]
    return min(times, default=None)


def oldest_logged(dataflow: Dataflow, stream: str, since: int) -> int | None:
    """Return the time of a stream's oldest row at or after ``since`` that is held, or None."""
    logs = [each.log for each in dataflow.groups.inputs(stream)]
    found = [(log, log.position_after(since - 1)) for log in logs]
    times = [log.time_at(position) for log, position in found if position < log.next]
    return min(times, default=None)


def _inputs(dataflow: Dataflow) -> list[StreamInput]:
    return [each for group in dataflow.groups for each in group.inputs.values()]
