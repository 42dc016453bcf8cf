"""A group of queries that read the same streams: its inputs, its frontier, and the operators that its queries share.

The group is the unit that advances. A step takes what the frontier has made final from the inputs to the joins and on to
the pipelines above them. It knows no names, no lock and no clock: those belong to whoever drives it.

Why it is exact: the frontier is the least watermark over the streams of the group, or what was promised for all streams. So it
depends on the rows of these streams alone, and every query goes on as if it were the only one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.expressions.duck import Duck
from muntin.model.clock import AFTER_ALL, BEFORE_ALL
from muntin.model.window import PartitionedWindow, RowsWindow, TimeWindow
from muntin.operators.join.schedule import TurnPace
from muntin.operators.pipeline import Drive
from muntin.plan.join import JoinPlan
from muntin.plan.nodes import Scan
from muntin.plan.query_plan import QueryPlan
from muntin.planner.strategies import drive_strategy
from muntin.runtime.fault_isolation import Guard
from muntin.runtime.join_registry import Joins
from muntin.runtime.running_join import RunningJoin, Shared
from muntin.runtime.running_pipeline import RunningLeaf, RunningPipeline
from muntin.runtime.running_query import RunningQuery
from muntin.runtime.shared_subplans import SubPlans
from muntin.runtime.stream_clock import Mask, Place, StreamState, Times, least_watermark
from muntin.runtime.stream_input import StreamInput
from muntin.state.batch import Batch

Running: TypeAlias = RunningQuery | RunningPipeline
Results: TypeAlias = Iterator[tuple[Running, pa.Table]]

NOWHERE: Place = (BEFORE_ALL, -1)
_EVERY_STREAM = 1 << 62


@dataclass(frozen=True)
class Promise:
    """How far time has come by what others say: ``advanced`` on all streams, ``final`` in the total order."""

    advanced: int = BEFORE_ALL
    final: Place = NOWHERE


class QueryGroup:
    """The queries over one set of streams; with no queries, the rows of streams that nobody reads."""

    def __init__(
        self,
        inputs: Iterable[StreamInput],
        duck: Duck,
        tables: Mapping[str, pa.Table],
        promise: Promise,
    ) -> None:
        self.inputs = {each.stream.name: each for each in inputs}
        self.joins = Joins(duck)
        self.guard = Guard(self.joins)
        self.pipelines: list[RunningPipeline] = []
        self._subplans = SubPlans()
        self._turns = count()
        self._duck = duck
        self._tables = tables
        self._advanced = promise.advanced
        self._final = promise.final

    # -- time --------------------------------------------------------------------------------------

    @property
    def frontier(self) -> Place:
        """How far the total order is final and processed."""
        return max(self._final, (self._advanced, _EVERY_STREAM))

    @property
    def closed(self) -> int:
        """The last instant that is complete on all streams."""
        instant, order = self.frontier
        return instant if order == _EVERY_STREAM else instant - 1

    @property
    def floor(self) -> Place:
        """Rows before this place are late.

        Rows of exactly the instant that ``advance`` reached are still taken: only earlier ones were excluded.
        """
        return max(self._final, (self._advanced, -1))

    def advance(self, instant: int) -> None:
        """Take the promise that nothing earlier comes on any stream."""
        self._advanced = max(self._advanced, instant)

    def move(self, final: Place | None = None) -> None:
        """Move the frontier to the least watermark, or to a given place, and rows that are final into the logs."""
        self._final = max(self._final, least_watermark(self._sources()) if final is None else final)
        frontier = self.frontier
        for each in self.inputs.values():
            each.release(frontier)

    def _sources(self, besides: StreamState | None = None) -> list[StreamState]:
        return [each.source for each in self.inputs.values() if each.source is not besides]

    def waits_for(self) -> StreamState | None:
        """Return the stream that holds back waiting rows of other streams, if there is one."""
        if not self.inputs:
            return None
        last = min(self._sources(), key=lambda source: source.place)
        waiting = (each for each in self.inputs.values() if each.source is not last)
        return last if any(each.waiting() for each in waiting) else None

    # -- rows --------------------------------------------------------------------------------------

    def take(self, source: StreamState, batch: Batch, own: Times) -> Mask | None:
        """Take rows of a stream that came under these watermarks of its own; return which are late, None if none is."""
        others = self._sources(besides=source)
        waits = least_watermark(others) if others else (AFTER_ALL, 0)
        return self.inputs[source.stream.name].take(batch, own, waits, self.floor)

    def take_final(self, stream: str, batch: Batch) -> Mask | None:
        """Take rows of a stream that is watched elsewhere; return which are late, None if none is."""
        return self.inputs[stream].take_final(batch, self.floor)

    def rows_late(self) -> int:
        """How many rows were late for this group."""
        return sum(each.rows_late for each in self.inputs.values())

    def lacks(self, source: Scan, other: StreamInput) -> bool:
        """Whether another group holds more of the rows that the window of a new query's source reaches."""
        own, window = self.inputs[source.relation], source.window
        if isinstance(window, TimeWindow):
            after = self.frontier[0] - window.micros
            return own.held_after(after) < other.held_after(after)
        if isinstance(window, RowsWindow):
            return own.held_after() < min(window.rows, other.held_after())
        assert isinstance(window, PartitionedWindow), "a stream has one of three windows"
        return own.held_after() < other.held_after()

    def trim(self, *, exactly: bool = False) -> None:
        """Let go of rows that no window reaches any more: sooner or later, or ``exactly`` now."""
        for each in self.inputs.values():
            readers = [join for join in self.joins.running if join.retention.reads(each)]
            first = min((join.retention.needs(each) for join in readers), default=each.log.next)
            keepers = [(join, source) for join in readers for source in join.retention.keeps(each)]
            each.log.trim(
                first, partial(_kept_positions, keepers) if keepers else None, exactly=exactly
            )

    # -- queries -----------------------------------------------------------------------------------

    def add(self, plan: JoinPlan | QueryPlan, shared: Shared, *, alone: bool = False) -> Running:
        """Run a query from the frontier on; ``alone``: it has no part in others."""
        if isinstance(plan, QueryPlan):
            return self._add_pipeline(plan, shared, alone=alone)
        return self.joins.add(
            plan.query, shared.settings, partial(self._make_join, plan, shared), RunningQuery
        )

    def _make_join(self, plan: JoinPlan, shared: Shared) -> RunningJoin:
        streams = {
            source.relation: self.inputs[source.relation]
            for source in plan.query.sources
            if not source.stored
        }
        join = RunningJoin(plan, list(streams.values()), self._tables, shared)
        join.begin(self.frontier[0])
        return join

    def _add_pipeline(self, plan: QueryPlan, shared: Shared, *, alone: bool) -> RunningPipeline:
        leaves, settings = [], shared.settings
        for leaf in plan.joins:
            make = partial(
                self.joins.add,
                leaf.query,
                settings,
                partial(self._make_join, leaf, shared),
                RunningLeaf,
            )
            leaves.append(self._subplans.leaf(leaf.query, settings, make, alone=alone))
        steps = None if alone else self._subplans.steps
        drive = Drive(drive_strategy(settings), steps, leaves)
        running = RunningPipeline(
            plan.query, leaves, self._tables, self._duck, drive, part=shared.governed
        )
        running.begin(self._advanced)
        self.pipelines.append(running)
        return running

    def drop(self, running: Running) -> None:
        """End a query."""
        if isinstance(running, RunningPipeline):
            self.pipelines.remove(running)
        for each in (
            self._subplans.drop(running) if isinstance(running, RunningPipeline) else (running,)
        ):
            self.joins.drop(each)

    def abandon(self, running: Running) -> None:
        """End a query that failed; a join that cannot shrink then fails for its other queries, too."""
        if isinstance(running, RunningPipeline):
            self.pipelines.remove(running)
        for each in (
            self._subplans.drop(running) if isinstance(running, RunningPipeline) else (running,)
        ):
            try:
                self.joins.drop(each)
            except Exception as error:  # noqa: BLE001 (whatever it is, queries of other joins continue)
                self.guard.broken(each.join, error)

    def is_empty(self) -> bool:
        """Whether no query is left."""
        return not self.joins.running

    # -- stepping ----------------------------------------------------------------------------------

    def step_joins(self, pace: TurnPace | None = None, *, silent: bool = False) -> Results:
        """Let the joins process all that is final, and yield results; ``silent``: results are known, so none are made."""
        for join in list(self.joins.running):
            yield from self.guard.join(join, self._step_join(join, pace, silent=silent))

    def _step_join(self, join: RunningJoin, pace: TurnPace | None, *, silent: bool) -> Results:
        instant, closed = self.frontier[0], self.closed
        if not silent:
            yield from join.catch_up(instant, closed, pace)
        elif not any(member.remembers for member in join.members):
            join.remember(instant, closed)
        else:  # what is kept depends on results, so they are made and left out
            for running, table in join.catch_up(instant, closed):
                running.take_back(table)

    def step_pipelines(self, *, silent: bool = False) -> Results:
        """Let the operators above joins take what those have found, and yield results."""
        turn = next(self._turns)
        for pipeline in list(self.pipelines):
            yield from self.guard.pipeline(
                pipeline, self._step_pipeline(pipeline, turn, silent=silent)
            )

    def _step_pipeline(self, pipeline: RunningPipeline, turn: int, *, silent: bool) -> Results:
        # An advance to an instant that the rows have passed is no instant of the query.
        advanced = self._advanced if self._advanced >= self._final[0] else BEFORE_ALL
        tables = pipeline.catch_up(self.closed, turn, advanced)
        if silent:  # what it keeps depends on every row, so only the results are left out
            pipeline.take_back(list(tables))
            return
        for table in tables:
            yield pipeline, table


def _kept_positions(keepers: list[tuple[RunningJoin, int]]) -> npt.NDArray[np.int64]:
    """The positions that partitioned windows keep."""
    return np.concatenate([join.retention.kept(source) for join, source in keepers])
