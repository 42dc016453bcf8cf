"""The state of a dataflow between two steps, from which another one continues.

Windows and operators are functions of the rows that windows reach, so a snapshot has those rows
instead of operator state: it is small, and independent of the operators that a plan chose. A
restored dataflow replays them. What rows cannot tell is kept beside them: frontiers, the rows that
came before each query, the first instant and the next snapshot of its results, and counts; and the
matches that limited joins have made, where they are retracted later.
:mod:`muntin.runtime.codec` can encode it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.model.clock import BEFORE_ALL
from muntin.runtime.made_matches import MadeMatches, made_by
from muntin.runtime.metrics import ResponseTimes
from muntin.runtime.query_group import NOWHERE, QueryGroup, Running
from muntin.runtime.running_join import RunningJoin
from muntin.runtime.running_pipeline import RunningPipeline
from muntin.runtime.running_query import RunningQuery
from muntin.runtime.stream_input import Place, StreamInput, StreamState
from muntin.runtime.table_change import TableChange
from muntin.state.advance_limit import AdvanceLimit
from muntin.state.batch import batch_of, times_of


@dataclass(frozen=True)
class LogSnapshot:
    """The log of a stream: its number, the positions of its rows, and that of the next one.

    Rows of one number and position are the same in all snapshots. ``late`` rows were late for the
    group.
    """

    number: int
    positions: npt.NDArray[np.int64]
    next: int
    late: int = 0


@dataclass(frozen=True)
class GroupSnapshot:
    """The rows that a group holds of each stream, in order, and its frontier.

    Rows in the log are before those that wait. The total order is final up to ``final``; event time
    was advanced to ``advanced``. ``queries`` run in the group.
    """

    rows: Mapping[str, pa.Table]
    final: Place
    advanced: int = BEFORE_ALL
    logs: Mapping[str, LogSnapshot] = field(default_factory=dict)
    queries: tuple[str, ...] = ()


@dataclass(frozen=True)
class JoinCounts:
    """The instant up to which a join has joined, unread rows by stream, and counts."""

    now: int
    unread: tuple[int, ...]
    rows_in: int
    counters: npt.NDArray[np.int64]
    failures: int
    last_failure: str


@dataclass(frozen=True)
class QuerySnapshot:
    """How many of the held rows of each stream came before a query; its results and counts so far.

    ``seen`` is its first instant, ``following`` that of its first results or of its next snapshot.
    ``failures`` are those of expressions above the joins. ``made`` has by join the matches that a
    limited one has made and that have not ended: a line for each source, with places among the held
    rows of its stream. ``pending`` are the changes of tables that are not shown yet, which the
    restored tables have.
    """

    came_before: Mapping[str, int] = field(default_factory=dict)
    seen: int | None = None
    following: int | None = None
    rows_out: int = 0
    response: Any = None
    joins: tuple[JoinCounts, ...] = ()
    failures: int = 0
    last_failure: str = ""
    made: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    pending: tuple[TableChange, ...] = ()

    @classmethod
    def of(cls, running: Running) -> QuerySnapshot:
        """Return the snapshot of a running query."""
        pipeline = running if isinstance(running, RunningPipeline) else None
        return cls(
            running.came_before(),
            None if pipeline is None else pipeline.seen,
            None if pipeline is None else pipeline.output.following,
            running.rows_out,
            running.response.to_json(),
            tuple(_counts(leaf.join) for leaf in _leaves(running)),
            0 if pipeline is None else pipeline.evaluator.failures,
            "" if pipeline is None else pipeline.evaluator.last_failure,
            {
                join.name: made
                for join, leaf in zip(running.query.joins, _leaves(running), strict=True)
                if leaf.plan.limiting is not None
                and (made := made_by(leaf.expiry, leaf.join.rows)) is not None
            },
            () if pipeline is None else tuple(pipeline.pending),
        )

    def begin(self, running: Running, positions: Mapping[str, int]) -> None:
        """Prepare a query for the replay of the rows, which begin at these positions."""
        running.let_come_before(
            {name: start + self.came_before.get(name, 0) for name, start in positions.items()}
        )
        for join, leaf in zip(running.query.joins, _leaves(running), strict=True):
            if (made := self.made.get(join.name)) is not None:
                starts = [positions.get(source.relation, 0) for source in join.sources]
                leaf.only = MadeMatches(made + np.array(starts)[:, np.newaxis])
        if isinstance(running, RunningPipeline) and self.response is not None:
            running.seen = self.seen
            running.pending = [*(one.undone() for one in self.pending), *self.pending]

    def finish(self, running: Running, *, emitted: bool) -> None:
        """Continue the counts and results of a query after the replay, which may have emitted."""
        for leaf in _leaves(running):
            leaf.only = None
        if emitted:
            return
        running.rows_out = self.rows_out
        if self.response is not None:
            running.response = ResponseTimes.from_json(self.response)
        if isinstance(running, RunningPipeline) and self.response is not None:
            running.seen = self.seen
            running.output.resume(self.following)
            running.evaluator.failures = self.failures
            running.evaluator.last_failure = self.last_failure
        for leaf, counts in zip(_leaves(running), self.joins, strict=False):
            join = leaf.join
            if counts.now > join.now:  # it was made there, and nothing has been joined since
                read = zip(join.cursors.counts(), counts.unread, strict=True)
                join.cursors.read = [count - unread for count, unread in read]
                join.refill(join.plan, counts.now)
            join.cursors.rows_in = counts.rows_in
            join.operator.state.counters[:] = counts.counters
            join.evaluator.failures = counts.failures
            join.evaluator.last_failure = counts.last_failure
            join.metrics.begin(join.now if join.now > BEFORE_ALL else None)


def _leaves(running: Running) -> Sequence[RunningQuery]:
    return running.leaves if isinstance(running, RunningPipeline) else [running]


def _counts(join: RunningJoin) -> JoinCounts:
    counters = join.operator.state.counters.copy()
    unread = tuple(state.log.next - read for state, read in join.cursors.positions())
    return JoinCounts(
        join.now,
        unread,
        join.cursors.rows_in,
        counters,
        join.evaluator.failures,
        join.evaluator.last_failure,
    )


@dataclass(frozen=True)
class StreamSnapshot:
    """The clock and the counts of a stream, and its late rows."""

    rows_in: int
    newest: int
    low_mark: int
    rows_late: int
    rows_ahead: int
    limit: AdvanceLimit
    late: pa.Table

    @classmethod
    def of(cls, state: StreamState) -> StreamSnapshot:
        """Return the snapshot of a stream."""
        limit = AdvanceLimit(state.limit.newest, state.limit.ahead)
        return cls(
            state.rows_in,
            state.newest,
            state.low_mark,
            state.rows_late,
            state.rows_ahead,
            limit,
            state.late(),
        )

    def load(self, state: StreamState) -> None:
        """Continue with a stream that no row has come on."""
        state.rows_in, state.newest, state.low_mark = self.rows_in, self.newest, self.low_mark
        state.keep_late(self.late)
        state.rows_late, state.rows_ahead = self.rows_late, self.rows_ahead
        state.limit = AdvanceLimit(self.limit.newest, self.limit.ahead)


@dataclass(frozen=True)
class Snapshot:
    """All groups, queries and streams of a dataflow.

    Event time was advanced to ``advanced`` for groups that are opened later, and is final up to
    ``fed`` for them. A partition has one group and no streams: its driver keeps the clocks. Rows
    that are restored count as ``arrived`` at that moment.
    """

    groups: tuple[GroupSnapshot, ...]
    queries: Mapping[str, QuerySnapshot]
    streams: Mapping[str, StreamSnapshot] = field(default_factory=dict)
    advanced: int = BEFORE_ALL
    fed: Place = NOWHERE
    arrived: float = 0.0


def group_snapshot(group: QueryGroup, queries: tuple[str, ...]) -> GroupSnapshot:
    """Return the snapshot of a group; no column is copied."""
    rows, logs = {}, {}
    for name, each in group.inputs.items():
        positions, held = each.held()
        logs[name] = LogSnapshot(each.log.number, positions, each.log.next, each.rows_late)
        if len(held):
            rows[name] = held
    return GroupSnapshot(rows, group.frontier_of_rows, group.advanced, logs, queries)


def restored_inputs(
    snapshot: GroupSnapshot, streams: Mapping[str, StreamState]
) -> list[StreamInput]:
    """Return the inputs of a group without rows, at the positions where its rows begin."""
    inputs = []
    for name, log in snapshot.logs.items():
        each = StreamInput(streams[name])
        each.log.next = log.next - len(log.positions)
        each.rows_late = log.late
        inputs.append(each)
    return inputs


def wait_again(snapshot: GroupSnapshot, group: QueryGroup, arrived: float) -> None:
    """Let the rows of a snapshot wait in the inputs of a group, until the frontier moves."""
    for name, table in snapshot.rows.items():
        each = group.inputs[name]
        each.wait(batch_of(table, times_of(table, each.stream.time), arrived))
