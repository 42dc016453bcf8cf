"""A group of queries that read the same streams: inputs, frontier, and shared operators.

The group is the unit that advances. A step moves the rows that the frontier has made final from the
inputs through the joins and the pipelines above them.

Why it is exact: the frontier is the least watermark over the streams of the group, or a promise for
all streams. It depends on the rows of these streams alone, so every query advances as if it were
the only one.

Failures are isolated: an exception while rows are processed ends up here instead of in ``push``. A
failure in the expressions of a query concerns that query, a failure of a join all queries that
share it. The driver drops them once the step is over. KeyboardInterrupt and SystemExit pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import count
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from muntin.errors import MuntinError
from muntin.expressions.duck import Duck
from muntin.expressions.salvage import first_line
from muntin.model.clock import AFTER_ALL, BEFORE_ALL
from muntin.operators.join.schedule import TurnPace
from muntin.plan.join import JoinPlan
from muntin.plan.query_plan import QueryPlan
from muntin.runtime.join_registry import JoinRegistry
from muntin.runtime.planned_query import PlannedQuery
from muntin.runtime.running_join import RunningJoin, Shared
from muntin.runtime.running_leaf import RunningLeaf
from muntin.runtime.running_pipeline import RunningPipeline
from muntin.runtime.running_query import RunningQuery
from muntin.runtime.shared_subplans import SubPlans
from muntin.runtime.stream_input import (
    Mask,
    Place,
    StreamInput,
    StreamState,
    Times,
    least_watermark,
)
from muntin.runtime.table_change import TableChange
from muntin.state.batch import Batch

Running: TypeAlias = RunningQuery | RunningPipeline
Output: TypeAlias = tuple[str, pa.Table]
"""The name of a query and results of it."""
AnyQuery = TypeVar("AnyQuery", bound=RunningQuery)

NOWHERE: Place = (BEFORE_ALL, -1)
_EVERY_STREAM = 1 << 62


@dataclass(frozen=True)
class Promise:
    """A frontier set from outside: ``advanced`` on all streams, ``final`` in the total order."""

    advanced: int = BEFORE_ALL
    final: Place = NOWHERE


class QueryGroup:
    """The queries over one set of streams; without queries, rows of streams that none reads."""

    def __init__(
        self,
        inputs: Iterable[StreamInput],
        duck: Duck,
        tables: Mapping[str, pa.Table],
        promise: Promise,
    ) -> None:
        self.inputs = {each.stream.name: each for each in inputs}
        self.advanced = promise.advanced
        """The instant to which event time was advanced."""
        self.frontier_of_rows = promise.final
        """The place up to which the total order is final by rows."""
        self.joins = JoinRegistry(duck)
        self.pipelines: list[RunningPipeline] = []
        self.failed: list[Running] = []
        """The queries that failed since they were last taken."""
        self._subplans = SubPlans(tables, duck)
        self._turns = count()
        self._tables = tables

    # -- time --------------------------------------------------------------------------------------

    @property
    def frontier(self) -> Place:
        """Return the place up to which the total order is final."""
        return max(self.frontier_of_rows, (self.advanced, _EVERY_STREAM))

    @property
    def closed(self) -> int:
        """Return the last instant that is complete on all streams."""
        instant, order = self.frontier
        return instant if order == _EVERY_STREAM else instant - 1

    def move(self, final: Place | None = None, advanced: int = BEFORE_ALL) -> None:
        """Move the frontier to the least watermark, or to a place, and final rows into the logs.

        ``advanced`` promises that no earlier row comes on any stream.
        """
        self.advanced = max(self.advanced, advanced)
        if final is None:
            final = least_watermark(each.source for each in self.inputs.values())
        self.frontier_of_rows = max(self.frontier_of_rows, final)
        frontier = self.frontier
        for each in self.inputs.values():
            each.release(frontier)

    def waits_for(self) -> StreamState | None:
        """Return the stream that holds back waiting rows of other streams, if there is one."""
        if not self.inputs:
            return None
        last = min((each.source for each in self.inputs.values()), key=lambda state: state.place)
        waiting = (each for each in self.inputs.values() if each.source is not last)
        return last if any(each.waiting() for each in waiting) else None

    # -- rows --------------------------------------------------------------------------------------

    def take(self, source: StreamState, batch: Batch, own: Times | None) -> Mask | None:
        """Take rows that came at these watermarks of their stream; return a mask of the late ones.

        None: none is late. Rows of exactly the instant that was promised are still taken: only
        earlier ones were excluded.
        """
        floor = max(self.frontier_of_rows, (self.advanced, -1))
        others = [each.source for each in self.inputs.values() if each.source is not source]
        waits = least_watermark(others) if others else (AFTER_ALL, 0)
        return self.inputs[source.stream.name].take(batch, floor, own, waits)

    def rows_late(self) -> int:
        """Return how many rows were late for this group."""
        return sum(each.rows_late for each in self.inputs.values())

    def trim(self, *, exactly: bool = False) -> None:
        """Release rows that no window reaches any more: when it pays, or ``exactly`` now."""
        for each in self.inputs.values():
            readers = [join for join in self.joins.running if join.retention.reads(each)]
            first = min((join.retention.needs(each) for join in readers), default=each.log.next)
            timed = [one for above in self.pipelines for one in above.keepers(each.stream.name)]
            first = min((first, *(each.log.position_after(one.clock) for one in timed)))
            keepers: list[Callable[[], Times]] = [
                *(
                    partial(join.retention.kept, source)
                    for join in readers
                    for source in join.retention.keeps(each)
                ),
                *(one.positions for one in timed),
            ]
            each.log.trim(
                first, partial(_kept_positions, keepers) if keepers else None, exactly=exactly
            )

    # -- queries -----------------------------------------------------------------------------------

    def add(self, planned: PlannedQuery, shared: Shared) -> tuple[Running, list[pa.Table]]:
        """Run a query from the frontier on; return it with its results from before any row."""
        plan = planned.plan
        if not isinstance(plan, QueryPlan):
            return self._run_over(RunningQuery, plan, shared), []
        run_leaf = partial(self._run_over, RunningLeaf, shared=shared)
        running = self._subplans.add(plan, shared, run_leaf, cohort=planned.cohort)
        initial = running.begin(self.advanced)
        self.pipelines.append(running)
        self._reweigh(running.leaves)
        return running, initial

    def _reweigh(self, leaves: Iterable[RunningLeaf]) -> None:
        """Let leaves count with the weights of all pipelines above them."""
        for leaf in dict.fromkeys(leaves):
            above = [each.weight for each in self.pipelines if leaf in each.leaves]
            if above:
                self.joins.reweigh(leaf, sum(above, Fraction(0)))

    def _run_over(self, run: type[AnyQuery], plan: JoinPlan, shared: Shared) -> AnyQuery:
        """Run a query over a join that runs, or over a new one."""

        def make() -> RunningJoin:
            read = dict.fromkeys(
                source.relation for source in plan.query.sources if not source.stored
            )
            join = RunningJoin(plan, [self.inputs[name] for name in read], self._tables, shared)
            join.begin(self.frontier[0])
            join.progress.above = partial(self._run_pipelines, join)
            return join

        return self.joins.add(plan.query, shared.settings, make, run)

    def drop(self, running: Running) -> None:
        """End a query. If it failed and its join cannot shrink, the join's other queries fail."""
        members: Sequence[RunningQuery] = [running] if isinstance(running, RunningQuery) else []
        if isinstance(running, RunningPipeline):
            self.pipelines.remove(running)
            members = self._subplans.drop(running)
        for each in members:
            try:
                self.joins.drop(each)
            except Exception as error:
                if running.failure is None:
                    raise
                self._break(each.join, error)
        if isinstance(running, RunningPipeline):
            self._reweigh(running.leaves)

    def take_failed(self) -> list[Running]:
        """Return the queries that failed since the last call; with a leaf, all pipelines above."""
        failed: list[Running] = []
        taken, self.failed = self.failed, []
        for running in taken:
            if not isinstance(running, RunningLeaf):
                failed.append(running)
                continue
            for pipeline in self.pipelines:
                if running in pipeline.leaves and pipeline.failure is None:
                    pipeline.failure = running.failure
                    failed.append(pipeline)
        return failed

    def change_table(self, change: TableChange) -> Iterator[Output]:
        """Let the queries that read a stored table follow a change of it; yield their results."""
        for pipeline in self.pipelines:
            pipeline.change_table(change, self.closed)
        yield from self._run_pipelines()

    # -- stepping ----------------------------------------------------------------------------------

    def step(self, pace: TurnPace | None = None) -> Iterator[Output]:
        """Process all that is final, yield results, and release rows that no window reaches."""
        for join in list(self.joins.running):
            yield from self._run(join, join.catch_up(self.frontier[0], self.closed, pace))
        yield from self._run_pipelines()
        self.trim()

    def release(self) -> Iterator[Output]:
        """Yield the results that wait for rows to come, where queries are input triggered."""
        for pipeline in self.pipelines:
            pipeline.release()
        for join in self.joins.running:
            for member in join.members:
                member.release()
        yield from self.step()

    def replay(self) -> None:
        """Process rows whose results are known; joins whose state is their windows compute none."""
        for join in list(self.joins.running):
            remembers = any(member.remembers for member in join.members)
            replay = join.catch_up if remembers else join.remember
            for _ in self._run(join, replay(self.frontier[0], self.closed)):
                pass
        for _ in self._run_pipelines():
            pass
        self.trim()

    def offer(self) -> Iterator[Output]:
        """Give the joins all that is final, to be processed in turns; yield what is done now."""
        for join in list(self.joins.running):
            yield from self._run(join, join.offer(self.frontier[0], self.closed))
        yield from self._run_pipelines()

    def turn(self, join: RunningJoin, pace: TurnPace) -> Iterator[Output]:
        """Run a join for a turn, and yield the results that it has released."""
        return self._run(join, join.turn(pace))

    def _run(self, join: RunningJoin, results: Iterator[Output]) -> Iterator[Output]:
        """Yield the results of a join up to their end or its failure."""
        try:
            yield from results
        except Exception as error:  # noqa: BLE001 (whatever it is, other joins continue)
            self._break(join, error)
        if join.failing:
            self.failed += join.failing
            join.failing.clear()

    def _break(self, join: RunningJoin, error: Exception) -> None:
        """Remove a join whose state is no longer sound; its queries fail with it."""
        self.joins.remove(join)
        for member in join.members:
            if member.failure is None:
                member.failure = error
                self.failed.append(member)

    def _run_pipelines(self, join: RunningJoin | None = None) -> Iterator[Output]:
        """Run the operators above joins over the matches of the joins, and yield results.

        With a ``join``, only those over it that have something to do.
        """
        # An advance to an instant that the rows have passed is no instant of the query.
        advanced = self.advanced if self.advanced >= self.frontier_of_rows[0] else BEFORE_ALL
        for together in self._subplans.together(self.pipelines):
            until = together.reached(self.closed)
            if join is None or together.is_behind(join, until):
                together.until = until
                # As a whole: what is common is computed for one turn, and another may come first.
                turn, found = next(self._turns), list[Output]()
                for pipeline in together.pipelines:
                    tables = pipeline.catch_up(until, turn, advanced)
                    found += self._run_pipeline(pipeline, tables)
                yield from found

    def _run_pipeline(
        self, pipeline: RunningPipeline, tables: Iterator[pa.Table]
    ) -> Iterator[Output]:
        """Yield the results of a pipeline up to their end or its failure."""
        below = (leaf.failure for leaf in pipeline.leaves if leaf.failure)
        failure = pipeline.failure or next(below, None)
        if failure is None:
            try:
                for table in tables:
                    yield pipeline.query.name, table
            except Exception as error:  # noqa: BLE001 (other pipelines continue)
                failure = error
        if failure is not None and pipeline.failure is None:
            pipeline.failure = failure
            self.failed.append(pipeline)


def _kept_positions(keepers: Sequence[Callable[[], Times]]) -> Times:
    """Return the positions that partitioned windows and operators keep."""
    return np.concatenate([keep() for keep in keepers])


def reason_of(failure: BaseException) -> str:
    """Return a failure in one line; the type of an unexpected one is part of it."""
    if isinstance(failure, MuntinError):
        return failure.fact
    return f"{type(failure).__name__}: {first_line(failure)}"
