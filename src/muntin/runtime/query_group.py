"""A group of queries that read the same streams: inputs, frontier, and shared operators.

The group is the unit that advances. A step moves the rows that the frontier has made final from the
inputs through the joins and the pipelines above them.

Why it is exact: the frontier is the least watermark over the streams of the group, or a promise for
all streams. It depends on the rows of these streams alone, so every query advances as if it were
the only one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.expressions.duck import Duck
from muntin.model.clock import BEFORE_ALL
from muntin.operators.join.schedule import TurnPace
from muntin.operators.pipeline import Drive
from muntin.plan.join import JoinPlan
from muntin.plan.query_plan import QueryPlan
from muntin.planner.strategies import drive_strategy
from muntin.runtime.fault_isolation import Guard
from muntin.runtime.group_inputs import GroupInputs, Promise
from muntin.runtime.join_registry import JoinRegistry
from muntin.runtime.planned_query import PlannedQuery
from muntin.runtime.running_join import RunningJoin, Shared
from muntin.runtime.running_leaf import RunningLeaf
from muntin.runtime.running_pipeline import RunningPipeline
from muntin.runtime.running_query import RunningQuery
from muntin.runtime.shared_subplans import SubPlans
from muntin.runtime.stream_input import StreamInput

Running: TypeAlias = RunningQuery | RunningPipeline
Output: TypeAlias = tuple[str, pa.Table]
"""The name of a query and results of it."""


class QueryGroup(GroupInputs):
    """The queries over one set of streams; without queries, rows of streams that none reads."""

    def __init__(
        self,
        inputs: Iterable[StreamInput],
        duck: Duck,
        tables: Mapping[str, pa.Table],
        promise: Promise,
    ) -> None:
        super().__init__(inputs, promise)
        self.joins = JoinRegistry(duck)
        self.guard = Guard(self.joins)
        self.pipelines: list[RunningPipeline] = []
        self._subplans = SubPlans()
        self._turns = count()
        self._duck = duck
        self._tables = tables

    # -- queries -----------------------------------------------------------------------------------

    def trim(self, *, exactly: bool = False) -> None:
        """Release rows that no window reaches any more: when it pays, or ``exactly`` now."""
        for each in self.inputs.values():
            readers = [join for join in self.joins.running if join.retention.reads(each)]
            first = min((join.retention.needs(each) for join in readers), default=each.log.next)
            keepers = [(join, source) for join in readers for source in join.retention.keeps(each)]
            each.log.trim(
                first, partial(_kept_positions, keepers) if keepers else None, exactly=exactly
            )

    def add(self, planned: PlannedQuery, shared: Shared) -> tuple[Running, list[pa.Table]]:
        """Run a query from the frontier on; return it with its results from before any row."""
        plan = planned.plan
        if isinstance(plan, QueryPlan):
            return self._add_pipeline(plan, shared, isolated=planned.isolated)
        make = partial(self._make_join, plan, shared)
        return self.joins.add(plan.query, shared.settings, make, RunningQuery), []

    def _make_join(self, plan: JoinPlan, shared: Shared) -> RunningJoin:
        streams = {
            source.relation: self.inputs[source.relation]
            for source in plan.query.sources
            if not source.stored
        }
        join = RunningJoin(plan, list(streams.values()), self._tables, shared)
        join.begin(self.frontier[0])
        return join

    def _add_pipeline(
        self, plan: QueryPlan, shared: Shared, *, isolated: bool
    ) -> tuple[RunningPipeline, list[pa.Table]]:
        leaves, settings = [], shared.settings
        for leaf in plan.joins:
            make = partial(
                self.joins.add,
                leaf.query,
                settings,
                partial(self._make_join, leaf, shared),
                RunningLeaf,
            )
            leaves.append(self._subplans.leaf(leaf.query, settings, make, alone=isolated))
        steps = None if isolated else self._subplans.steps
        drive = Drive(drive_strategy(settings), steps, leaves)
        running = RunningPipeline(
            plan.query, leaves, self._tables, self._duck, drive, part=shared.external_quota
        )
        initial = running.begin(self.advanced)
        self.pipelines.append(running)
        return running, initial

    def drop(self, running: Running) -> None:
        """End a query. If it failed and its join cannot shrink, the join's other queries fail."""
        members: Sequence[RunningQuery]
        if isinstance(running, RunningPipeline):
            self.pipelines.remove(running)
            members = self._subplans.drop(running)
        else:
            members = [running]
        for each in members:
            try:
                self.joins.drop(each)
            except Exception as error:
                if running.failure is None:
                    raise
                self.guard.broken(each.join, error)

    def take_failed(self) -> list[Running]:
        """Return the queries that failed since the last call; with a leaf, all pipelines above."""
        failed: list[Running] = []
        for running in self.guard.take():
            if not isinstance(running, RunningLeaf):
                failed.append(running)
                continue
            for pipeline in self.pipelines:
                if running in pipeline.leaves and pipeline.failure is None:
                    pipeline.failure = running.failure
                    failed.append(pipeline)
        return failed

    def is_empty(self) -> bool:
        """Return whether no query is left."""
        return not self.joins.running

    # -- stepping ----------------------------------------------------------------------------------

    def step(self, pace: TurnPace | None = None) -> Iterator[Output]:
        """Process all that is final, yield results, and release rows that no window reaches."""
        for join in list(self.joins.running):
            yield from self._run(join, join.catch_up(self.frontier[0], self.closed, pace))
        yield from self.step_pipelines()
        self.trim()

    def offer(self) -> Iterator[Output]:
        """Give the joins all that is final, to be processed in turns; yield what is done now."""
        for join in list(self.joins.running):
            yield from self._run(join, join.offer(self.frontier[0], self.closed))
        yield from self.step_pipelines()

    def turn(self, join: RunningJoin, pace: TurnPace) -> Iterator[Output]:
        """Run a join for a turn, and yield the results that it has released."""
        return self._run(join, join.turn(pace))

    def _run(
        self, join: RunningJoin, results: Iterator[tuple[RunningQuery, pa.Table]]
    ) -> Iterator[Output]:
        for running, table in self.guard.join(join, results):
            yield running.query.name, table

    def replay(self) -> None:
        """Process rows whose results are known; joins whose state is their windows compute none."""
        for join in list(self.joins.running):
            if any(member.remembers for member in join.members):
                results = join.catch_up(self.frontier[0], self.closed)
            else:
                results = _nothing(join.remember, self.frontier[0], self.closed)
            for _ in self.guard.join(join, results):
                pass
        for _ in self.step_pipelines():
            pass
        self.trim()

    def step_pipelines(self) -> Iterator[Output]:
        """Run the operators above joins over the matches of the joins, and yield results."""
        turn = next(self._turns)
        # An advance to an instant that the rows have passed is no instant of the query.
        advanced = self.advanced if self.advanced >= self.frontier_of_rows[0] else BEFORE_ALL
        for pipeline in list(self.pipelines):
            results = pipeline.catch_up(self.closed, turn, advanced)
            for table in self.guard.pipeline(pipeline, results):
                yield pipeline.query.name, table


def _nothing(work: Callable[[int, int], None], frontier: int, closed: int) -> Iterator[Any]:
    """Run an action without results as an iterator."""
    work(frontier, closed)
    yield from ()


def _kept_positions(keepers: list[tuple[RunningJoin, int]]) -> npt.NDArray[np.int64]:
    """Return the positions that partitioned windows keep."""
    return np.concatenate([join.retention.kept(source) for join, source in keepers])
