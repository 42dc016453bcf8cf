"""A join while it runs: its operator, how far it has read each stream, and the queries it is for.

A join runs for one query or for a sharing group (:mod:`muntin.planner.sharing_groups`). It reads
logs (:mod:`muntin.runtime.log_cursors`), lets its operator find matches, and routes to each query
those inside its windows. How results look is the concern of
:class:`muntin.runtime.running_query.RunningQuery`. A query that fails has no more results and does
not affect the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.model.clock import BEFORE_ALL
from muntin.model.settings import Scheduler, Settings, TreeChoice
from muntin.operators.join import JoinOperator, Matches, NewRows, TacticOptions, Tools, make_join
from muntin.operators.join.matches import LevelMatches
from muntin.operators.join.scan_rates import scan_rates
from muntin.operators.join.schedule import TurnPace
from muntin.operators.workspace import Workspace
from muntin.plan.join import JoinPlan
from muntin.plan.query import Emit
from muntin.planner.draft import Knowledge
from muntin.planner.join_planner import plan_join
from muntin.planner.sharing_groups import SharingGroup
from muntin.runtime.external_quota import ExternalQuota
from muntin.runtime.join_metrics import JoinMetrics
from muntin.runtime.join_scheduling import JoinScheduling, levels_of
from muntin.runtime.level_progress import LevelProgress
from muntin.runtime.log_cursors import LogCursors, Slices
from muntin.runtime.log_retention import LogRetention
from muntin.runtime.overload import Overload
from muntin.runtime.overload_control import OverloadControl
from muntin.runtime.plan_monitor import PlanMonitor, stores_the_same
from muntin.runtime.result_queue import ResultQueue, Results
from muntin.runtime.stream_input import StreamInput
from muntin.runtime.window_distance import WindowDistances
from muntin.state.columns import StoredRows

if TYPE_CHECKING:
    from muntin.runtime.running_query import RunningQuery

_SLICE = 1 << 17
"""Rows of a stream that are joined at once: enough to amortize, few enough for the caches."""

_PACED_SLICE = 1 << 13
"""The same where a caller waits for results and work cannot be deferred."""


@dataclass(frozen=True)
class Shared:
    """What a query gets from its dataflow: resources that all queries use, and its settings."""

    duck: Duck
    workspace: Workspace
    settings: Settings
    known: Knowledge = field(default_factory=Knowledge)
    live: bool = False
    external_quota: bool = False
    """Whether probe budgets come from outside."""


class RunningJoin:
    """Reads the logs of its streams from when it was made on; routes matches to ``members``."""

    def __init__(
        self,
        plan: JoinPlan,
        streams: Sequence[StreamInput],
        tables: Mapping[str, pa.Table],
        shared: Shared,
    ) -> None:
        self.plan, self.query = plan, plan.query
        self.group: SharingGroup | None = None
        self.settings = shared.settings
        self.evaluator = Evaluator(shared.duck)
        self.overload = OverloadControl()
        self.cursors = LogCursors(plan.query, streams)
        self._shared = shared
        self._tables = tables
        self.scheduling = JoinScheduling(shared.settings, shared.live, shared.external_quota)
        self.operator = self._make_operator(plan)
        logs = {state.stream.name: state.log for state in streams}
        self.rows = [
            StoredRows(tables[source.relation]) if source.stored else logs[source.relation]
            for source in plan.query.sources
        ]
        self.distances = WindowDistances(plan.query, self.cursors)
        self.members: list[RunningQuery] = []
        self.failing: list[RunningQuery] = []
        """The queries that failed since the list was last cleared."""
        self.progress = LevelProgress(self)
        self._queue = ResultQueue(self.progress.deliver, self.progress.is_behind)
        self.retention = LogRetention(self)
        self.monitor = PlanMonitor(plan, shared.settings, shared.known)
        self.metrics = JoinMetrics(self)

    @property
    def now(self) -> int:
        """Return the instant up to which it has joined."""
        return self.operator.now

    # -- reading and joining -----------------------------------------------------------------------

    def begin(self, frontier: int) -> None:
        """Take the rows in the logs that are inside the windows, without results for them."""
        starts = [self.retention.first_needed(each, frontier) for each in self.cursors.streams]
        self.operator.fill(_rows_between(self.cursors, starts, self.cursors.read), frontier)

    def catch_up(self, frontier: int, closed: int, pace: TurnPace | None = None) -> Results:
        """Process all that is final, and yield the results of the queries, of each in order.

        With a ``pace`` a caller waits for results: a join whose work can be deferred then works in
        the order of its scheduler and yields released results by that pace; others take fewer
        rows at once. Without it, results are used only when all are there, so the fastest order
        of work is taken.
        """
        operator, progress = self.operator, self.progress
        in_turns = pace is not None and operator.tactic.deferred is not None
        most = _SLICE if pace is None or in_turns else _PACED_SLICE
        for stops, until in self._due(frontier, closed, most):
            self.overload.see(frontier, self.cursors)
            news = self._take(stops)
            with self.overload.working():
                if pace is not None and in_turns:
                    self._follow_rates()
                    yield from progress.work(news, until, pace)
                    continue
                for found in operator.run(news, until):
                    yield from self.route(found)
            if pace is not None:
                yield from progress.emit()
        self._replan()
        for member in self.members:
            yield from self.results(member, member.changes)

    def remember(self, frontier: int, closed: int) -> Results:
        """Take all that is final into the windows, as :meth:`catch_up` does, but yield nothing."""
        self.overload.see(frontier, self.cursors)
        for stops, until in self._due(frontier, closed, _SLICE):
            self.operator.repeat(self._take(stops), until)
        yield from ()

    def _due(self, frontier: int, closed: int, most: int) -> Slices:
        """Return what is to be processed now, in slices of about ``most`` rows.

        Without EVERY, inserts follow the frontier and changes the last closed instant, whose
        changes are complete; with EVERY both follow the last multiple that is closed.
        """
        every, now = self.query.every, closed
        if every is not None:
            now = closed // every * every if closed > BEFORE_ALL else BEFORE_ALL
        elif self.query.emit is Emit.INSERTS:
            return self.cursors.slices_of_all(self.now, frontier, most)
        return self.cursors.slices(self.now, now, most)

    def _take(self, stops: Sequence[int]) -> list[NewRows]:
        """Read the logs up to some positions, and return the new rows of each stream."""
        news = _rows_between(self.cursors, self.cursors.read, stops)
        self.cursors.move(stops)
        self.metrics.see(news)
        return news

    def route(self, found: LevelMatches) -> Results:
        """Yield the results of each query, of the matches inside its windows."""
        levels = enumerate(levels_of(self.query, self.group))
        level_of = {sizes: level for level, sizes in levels}
        narrowing = self.distances.narrowing()
        inside: dict[tuple[int, ...], Matches] = {}
        for member in self.members:
            sizes = member.sizes
            if sizes not in inside:
                narrow = member.narrow
                apply = partial(narrowing.apply, narrow) if narrow else None
                inside[sizes] = found.of_level(level_of.get(sizes, 0), apply)
                if self.progress.is_partial:
                    inside[sizes] = self.progress.complete(sizes, inside[sizes])
            matches = inside[sizes]
            if member.fresher and (present := self.overload.present()) is not None:
                matches = self.distances.fresh(matches, member.fresher, present)
            if len(matches):
                yield from self.results(member, partial(member.taken, matches))

    def results(self, member: RunningQuery, make: Callable[[], pa.Table | None]) -> Results:
        """Yield the results of a query, if there are any and it has not failed."""
        if member.failure is not None:
            return
        try:
            table = make()
        except Exception as error:  # noqa: BLE001 (any error concerns this query alone)
            member.failure = error
            self.failing.append(member)
            return
        if table is not None:
            yield member.query.name, table

    # -- in the background -------------------------------------------------------------------------

    def is_busy(self) -> bool:
        """Return whether rows have been taken that are not done."""
        return bool(self._queue) or self.operator.is_busy()

    def offer(self, frontier: int, closed: int) -> Results:
        """Take all that is final and defer the work to :meth:`turn`, if it can be deferred."""
        if self.operator.tactic.deferred is None:
            yield from self.catch_up(frontier, closed)
            return
        if not self.is_busy():
            self.retention.hold()
        self.progress.begin()
        self._follow_rates()
        for stops, until in self._due(frontier, closed, _SLICE):
            for released in self.operator.absorb(self._take(stops), until):
                self._queue.put(released)

    def turn(self, pace: TurnPace) -> Results:
        """Work for a turn, if there is work, or hand out one query's results of earlier turns."""
        if not self.is_busy():
            return
        if self._queue.is_due() or not self.operator.is_busy():
            yield from self._queue.next()
        else:
            begin = time.monotonic_ns()
            released = self.operator.work.turn(pace)
            self._queue.put(released, time.monotonic_ns() - begin)
        if not self.is_busy():
            self.progress.end()
            self.operator.rest()
            self._replan()

    # -- the operator, exchanged as plans and queries change ---------------------------------------

    def _make_operator(self, plan: JoinPlan) -> JoinOperator:
        """Return an operator for a plan; the control of overload stays where half joins do."""
        if plan.limiting is not None and not self.overload.controls(plan):
            self.overload = (
                ExternalQuota(plan)
                if self._shared.external_quota
                else Overload(plan, self.settings, live=self.scheduling.live)
            )
        return make_join(
            plan,
            self.cursors.names(),
            self._tables,
            Tools(self.evaluator, self._shared.workspace),
            TacticOptions(self.scheduling.schedule(plan, self.group), self.overload),
        )

    def refill(self, plan: JoinPlan, at: int | None = None) -> None:
        """Continue with a new operator, filled from the logs; counts continue.

        ``at`` is a later instant than the one reached, between which nothing was to be joined.
        """
        now, counters = self.now if at is None else at, self.operator.state.counters
        self.plan, self.query = plan, plan.query
        self.operator = self._make_operator(plan)
        self.begin(now)
        self.operator.state.counters[:] = counters

    def set_live(self, *, live: bool) -> None:
        """Note whether the engine works in the background: then work is cut into turns."""
        self.scheduling.live = live
        self.overload.set_live(live=live)
        self._reschedule()

    def adopt(self, group: SharingGroup) -> None:
        """Continue for a group that has changed; refill the state if the join is another one."""
        self.group = group
        settings = self.scheduling.plan_settings(self.plan, group)
        other = group.join.sources != self.query.sources or set(group.join.predicates) != set(
            self.query.predicates
        )
        if self.plan.limiting is not None:
            other = other or self.plan.limiting.freshness != group.freshness
        if not other and (self.plan.tree is None or settings.join.tree is not TreeChoice.OFF):
            self._reschedule()
            return
        self.refill(plan_join(group.join, settings, self._shared.known))
        self.monitor.begin(self.plan, self.scheduling.plan_settings(self.plan, group))
        self.metrics.begin(self.now if self.now > BEFORE_ALL else None)

    def _reschedule(self) -> None:
        """Work by the levels of the group as they are now, over the same state if possible."""
        if not self.operator.tactic.follow(self.scheduling.schedule(self.plan, self.group)):
            self.refill(self.plan)

    def _follow_rates(self) -> None:
        """Let MQT count by the rates of the streams as the windows show them now."""
        schedule = self.operator.tactic.schedule
        if schedule is None or schedule.scheduler != Scheduler.MQT:
            return
        rates = scan_rates(self.operator.windows)
        if rates != self.scheduling.rates:
            self.scheduling.rates = rates
            self._reschedule()

    def _replan(self) -> None:
        """Change the plan if that pays; where it stores the same, only the orders change."""
        better = self.monitor.better_plan(self.operator, self.cursors.rows_in)
        if better is None:
            return
        if stores_the_same(better, self.plan):
            self.operator.windows.reorder(better)
            self.plan = better
        else:
            self.refill(better)
        self.metrics.begin(self.now)

    # -- size --------------------------------------------------------------------------------------

    def state_rows(self) -> dict[str, int]:
        """Return the number of rows inside the window of each source, by alias."""
        aliases = (source.alias for source in self.query.sources)
        return dict(zip(aliases, self.operator.rows(), strict=True))

    def nbytes(self) -> int:
        """Return the bytes of state, without rows in logs, and of results that queries keep."""
        return self.operator.nbytes() + sum(
            member.expiry.nbytes() for member in self.members if member.expiry is not None
        )


def _rows_between(
    cursors: LogCursors, starts: Sequence[int], stops: Sequence[int]
) -> list[NewRows]:
    """Return the rows of each stream between positions; trimmed ones count as earlier rows."""
    news = []
    for each, start, stop in zip(cursors.streams, starts, stops, strict=True):
        positions, batch = each.log.between(start, stop)
        news.append(NewRows(positions, batch, stop - len(batch)))
    return news
