"""The dataflow that both engines drive: streams, frontiers, and the operators of queries.

A step takes rows and a frontier and yields outputs: results of queries, by their names. A dataflow
has no lock, no clock, no I/O and no buffers for polling: those belong to its driver, the engine in
process or a partition on Spark. Replay is a step whose outputs are discarded.

The frontier is kept in one of two ways. In process each group of queries advances with the least
watermark of the streams it reads, which the dataflow keeps. A ``partition`` sees a part of the rows
only: its driver keeps the watermarks, passes the frontier with every step, and sets the probe
budgets of limited joins. Its queries form one group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from muntin.expressions.duck import Duck
from muntin.kernels.jit import prepare, prepare_part
from muntin.model.catalog import Stream
from muntin.model.clock import BEFORE_ALL
from muntin.operators.join.schedule import TurnPace
from muntin.operators.workspace import Workspace
from muntin.plan.query import Emit
from muntin.plan.query_plan import QueryPlan
from muntin.runtime.external_quota import ExternalQuota
from muntin.runtime.planned_query import PlannedQuery
from muntin.runtime.query_group import Output, Promise, QueryGroup, Running
from muntin.runtime.query_groups import QueryGroups
from muntin.runtime.running_join import RunningJoin, Shared
from muntin.runtime.snapshot import (
    QuerySnapshot,
    Snapshot,
    StreamSnapshot,
    group_snapshot,
    restored_inputs,
    wait_again,
)
from muntin.runtime.stored_tables import StoredTables
from muntin.runtime.stream_input import Place, StreamState
from muntin.runtime.table_change import TableChange
from muntin.state.batch import Batch


@dataclass(frozen=True)
class Frontier:
    """A frontier from outside: ``final`` in the total order, ``advanced`` by promise.

    Without ``final`` the watermarks of the streams count. ``low_marks`` raises them: the instants
    before which streams send no more rows, by name.
    """

    final: Place | None = None
    advanced: int | None = None
    low_marks: Mapping[str, int] = field(default_factory=dict)


_WATERMARKS = Frontier()
_NO_ROWS: Mapping[str, Batch] = {}


class Dataflow:
    """Standing queries over streams, driven step by step."""

    def __init__(self, *, partition: bool = False) -> None:
        self.duck = Duck()
        self.tables = StoredTables()
        self.queries: dict[str, Running] = {}
        """The running queries by name."""
        self.groups = QueryGroups(self.duck, self.tables, single=partition)
        self._group_of: dict[str, QueryGroup] = {}
        self._workspace = Workspace()
        self._partition = partition
        self._live = False

    # -- streams and queries -----------------------------------------------------------------------

    @property
    def streams(self) -> Mapping[str, StreamState]:
        """Return the declared streams."""
        return self.groups.streams

    def declare(self, stream: Stream, now: int | None = None, *, position: int = 0) -> None:
        """Add a stream; with ``now``, warn if its first time is decades away from that.

        ``position`` is the number of its first row, if another dataflow has had rows before.
        """
        self.groups.declare(stream, now)
        for each in self.groups.inputs(stream.name) if position else ():
            each.log.next = position

    def remove(self, stream: str) -> None:
        """Remove a stream that no query reads."""
        self.groups.remove(stream)

    def add(self, planned: PlannedQuery) -> list[pa.Table]:
        """Run a query from the frontier on, and return its results from before any row.

        It sees the rows inside its windows that are held: those that the windows of earlier
        queries reach, however rows were cut into steps.
        """
        if self.queries or self._live:
            self.groups.trim(exactly=bool(self.queries))
        try:
            return self._run(planned, self.groups.place(planned.query))
        except BaseException:
            self.groups.tidy()
            raise

    def _run(self, planned: PlannedQuery, group: QueryGroup) -> list[pa.Table]:
        """Run a query in a group, and return its results from before any row."""
        prepare()
        if planned.query.emit is Emit.CHANGES or isinstance(planned.plan, QueryPlan):
            prepare_part("changes")
        if isinstance(planned.plan, QueryPlan):
            prepare_part("pipelines")
        shared = Shared(
            self.duck,
            self._workspace,
            planned.settings,
            planned.known,
            self._live,
            self._partition,
        )
        running, initial = group.add(planned, shared)
        self.queries[planned.query.name] = running
        self._group_of[planned.query.name] = group
        return initial

    def drop(self, query: str) -> None:
        """End a query; the others continue as if it had never been."""
        running = self.queries.pop(query)
        self._group_of.pop(query).drop(running)
        if running.failure is None:  # else others may have failed with it
            self.groups.tidy()
            self.groups.trim()

    def take_failed(self) -> list[Running]:
        """Return the queries that failed since the last call; the driver drops them.

        Queries that share a join may fail in turn, so call it until it returns none.
        """
        failed = [running for group in self.groups for running in group.take_failed()]
        if not failed:
            self.groups.tidy()
        return failed

    def group_of(self, query: str) -> QueryGroup:
        """Return the group in which a query runs."""
        return self._group_of[query]

    # -- stepping ----------------------------------------------------------------------------------

    def step(
        self,
        rows: Mapping[str, Batch] = _NO_ROWS,
        frontier: Frontier = _WATERMARKS,
        pace: TurnPace | None = None,
    ) -> Iterator[Output]:
        """Take rows by stream, move the frontier, and yield results of each query in order.

        With a ``pace`` results are yielded as soon as they are computed, in the order of the
        scheduler. Otherwise the fastest order of work is taken.
        """
        for group in self._take(rows, frontier):
            yield from group.step(pace)

    def change_table(self, change: TableChange) -> Iterator[Output]:
        """Let queries follow a change of a stored table, and yield their results."""
        for group in self.groups:
            yield from group.change_table(change)

    def replay(self, rows: Mapping[str, Batch], frontier: Frontier) -> None:
        """Make a step whose outputs are known; they are discarded and do not count.

        Late rows were reported before, too.
        """
        counts = {name: running.rows_out for name, running in self.queries.items()}
        for group in self._take(rows, frontier):
            group.replay()
        for name, running in self.queries.items():
            running.rows_out = counts[name]
        for state in self.streams.values():
            state.take_late()

    def fill(self, rows: Mapping[str, Batch], frontier: Frontier) -> None:
        """Begin with rows that another dataflow holds, for the query that is added next."""
        self._take(rows, frontier)

    def release(self) -> Iterator[Output]:
        """Yield the results that wait for rows to come: those of input triggered queries.

        All state is then a function of the rows inside the windows, as a snapshot needs it.
        """
        for group in self.groups:
            yield from group.release()

    def snapshot(self) -> Snapshot:
        """Return the state after :meth:`release`, while no join is busy; no column is copied."""
        groups = tuple(
            group_snapshot(
                group, tuple(name for name, other in self._group_of.items() if other is group)
            )
            for group in self.groups
        )
        queries = {name: QuerySnapshot.of(running) for name, running in self.queries.items()}
        streams = {name: StreamSnapshot.of(state) for name, state in self.streams.items()}
        return Snapshot(groups, queries, streams, self.groups.advanced, self.groups.fed)

    def restore(
        self, snapshot: Snapshot, planned: Iterable[PlannedQuery] = (), *, emit: bool = False
    ) -> list[Output]:
        """Continue where a dataflow with the same streams was; no row has come to this one yet.

        The queries of a partition run already; others are ``planned``, in the order in which they
        were registered, and have their groups again. A replay of the rows fills windows and
        operators. Rows that came before a query yield no results for it. With ``emit``, return
        results that add up to those that the queries have had so far.
        """
        if not self._partition:
            self._open_groups(snapshot, planned)
        outputs: list[Output] = []
        for group, state in zip(self.groups, snapshot.groups, strict=True):
            running = [each for name, each in self.queries.items() if self._group_of[name] is group]
            starts = {name: each.log.next for name, each in group.inputs.items()}
            for each in running:
                snapshot.queries.get(each.query.name, QuerySnapshot()).begin(each, starts)
            wait_again(state, group, snapshot.arrived)
            for advanced in {BEFORE_ALL: 0, state.advanced: 0}:
                group.move(state.final, advanced)
                if emit:
                    outputs += group.step()
                else:
                    group.replay()
            if not self._partition:
                for _ in group.release():
                    pass
            for each in running:
                snapshot.queries.get(each.query.name, QuerySnapshot()).finish(each, emitted=emit)
        return outputs

    def _open_groups(self, snapshot: Snapshot, planned: Iterable[PlannedQuery]) -> None:
        """Open the groups of a snapshot without rows, and run their queries."""
        for name, state in snapshot.streams.items():
            state.load(self.streams[name])
        self.groups.reopen(
            [(restored_inputs(each, self.streams), bool(each.queries)) for each in snapshot.groups],
            Promise(snapshot.advanced, snapshot.fed),
        )
        group_of = {
            name: group
            for group, each in zip(self.groups, snapshot.groups, strict=True)
            for name in each.queries
        }
        for each in planned:
            self._run(each, group_of[each.query.name])

    def _take(self, rows: Mapping[str, Batch], frontier: Frontier) -> list[QueryGroup]:
        """Take rows and move frontiers; return the groups that may have work."""
        final, advanced = frontier.final, frontier.advanced
        assert not rows or final is not None or advanced is None, "rows come before the promise"
        groups = [
            group
            for name, batch in rows.items()
            for group in self._arrive(name, batch, ordered=final is None)
        ]
        for name, instant in frontier.low_marks.items():
            self.streams[name].raise_low_mark(instant)
            groups += [each for each in self.groups.readers(name) if each not in groups]
        if final is None and advanced is None:
            for group in groups:
                group.move()
            return groups
        self.groups.move(final, BEFORE_ALL if advanced is None else advanced)
        return list(self.groups)

    def _arrive(self, stream: str, batch: Batch, *, ordered: bool) -> list[QueryGroup]:
        """Give rows to all groups that read the stream, and return those groups.

        Rows ``ordered`` by arrival move the watermark of the stream; otherwise the driver keeps it.
        A row goes to the late output once if it is late for any group.
        """
        state, readers = self.streams[stream], self.groups.readers(stream)
        if len(batch):
            own = state.arrive(batch, ordered=ordered)
            late = [group.take(state, batch, own) for group in readers]
            masks = [mask for mask in late if mask is not None]
            if masks:
                state.keep_late(batch.rows.filter(pa.array(np.logical_or.reduce(masks))))
        return readers

    # -- working in turns --------------------------------------------------------------------------

    def set_live(self, *, live: bool) -> None:
        """Set whether joins work in short turns, between which other rows may come."""
        self._live = live
        for join in self.joins():
            join.set_live(live=live)

    def offer(
        self, rows: Mapping[str, Batch] = _NO_ROWS, frontier: Frontier = _WATERMARKS
    ) -> Iterator[Output]:
        """Take rows for the turns to come, and yield the results that are ready."""
        for group in self._take(rows, frontier):
            yield from group.offer()

    def busy(self) -> list[tuple[QueryGroup, RunningJoin]]:
        """Return the joins with work left, to be done by :meth:`QueryGroup.turn`."""
        return [
            (group, join) for group in self.groups for join in group.joins.running if join.is_busy()
        ]

    # -- inspection --------------------------------------------------------------------------------

    def joins(self) -> list[RunningJoin]:
        """Return all joins."""
        return [join for group in self.groups for join in group.joins.running]

    def quotas(self) -> dict[str, ExternalQuota]:
        """Return the limited joins whose budgets the driver sets, by the names of their queries."""
        joins = {join.query.name: join.overload for join in self.joins()}
        return {
            name: overload
            for name, overload in joins.items()
            if isinstance(overload, ExternalQuota)
        }
