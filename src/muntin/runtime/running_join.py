"""A join while it runs: its operator, how far it has read each stream, and the queries that its matches are for.

A join runs for one query or for a sharing group (:mod:`muntin.planner.sharing_groups`). It knows windows, conditions and plans; what of its
matches is a result of which query, and how results look, is the business of :class:`muntin.runtime.running_query.RunningQuery`.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.kernels import layout
from muntin.model.clock import BEFORE_ALL, format_instant
from muntin.model.settings import Scheduler, Settings, TreeChoice
from muntin.model.window import RowsWindow, TimeWindow
from muntin.operators.budgeted_tree import LimitedTree
from muntin.operators.events import NewRows
from muntin.operators.join import JoinOperator, Matches, Tools
from muntin.operators.result import StoredRows
from muntin.operators.scheduled_join import Pace, Released, Schedule, ScheduledJoin, obstacle
from muntin.operators.workspace import Workspace
from muntin.plan.join import JoinPlan
from muntin.plan.query import Emit
from muntin.planner.join_planner import Knowledge, plan_join
from muntin.planner.sharing_groups import SharingGroup, window_size
from muntin.runtime.external_quota import Governed
from muntin.runtime.metrics import Measured, WorkMark, measured_between
from muntin.runtime.overload import Overload
from muntin.runtime.replanner import Replanner
from muntin.runtime.result_queue import InFlight
from muntin.runtime.stream_input import StreamInput
from muntin.schedule.levels import Levels
from muntin.schedule.work_queue import WorkQueue

if TYPE_CHECKING:
    from muntin.runtime.running_query import RunningQuery

Integers = npt.NDArray[np.int64]

_log = logging.getLogger("muntin")

_SLICE = 1 << 17
"""Rows of a stream that are worked off at once: enough to amortise, few enough to stay near the processor."""

_PACED_SLICE = 1 << 13
"""The same where somebody waits for results and the order of work is that of the rows."""

_LEAST_MEASURED = 2_000
"""Rows before a query's streams are measured for the first time, for each source beyond two."""

_LONGEST_STRETCH = 64
"""Values and selectivities of streams whose rates are steady are measured at least once in so many windows' worth of rows."""

_TWO = 2
_SECOND = 1_000_000
_COUNTERS = {
    "probes": layout.N_PROBES,
    "rows_scanned": layout.N_SCANNED,
    "comparisons": layout.N_COMPARED,
    "stale_rows_met": layout.N_STALE,
    "rows_inserted": layout.N_INSERTED,
    "rows_expired": layout.N_EXPIRED,
    "expiry_checks": layout.N_EXPIRY_CHECKS,
    "matches": layout.N_RESULTS,
    "retractions": layout.N_RETRACTED,
    "intermediate_results": layout.N_PARTIAL_MATCHES,
}


@dataclass(frozen=True)
class Shared:
    """What a query has from its engine: what all of them use, one after the other, and its settings."""

    duck: Duck
    workspace: Workspace
    settings: Settings
    known: Knowledge = field(default_factory=Knowledge)
    live: bool = False
    governed: bool = False
    """Whether somebody outside says what limited joins may do."""


class Found:
    """Matches of a join, and how far behind the rows of each source are; masks of windows are made once for all queries that have them."""

    def __init__(self, matches: Matches, distances: Callable[[int], Integers]) -> None:
        self.matches = matches
        self._distances = cache(distances)
        self._masks: dict[tuple[tuple[int, int], ...], Matches] = {}

    def inside(self, narrow: tuple[tuple[int, int], ...]) -> Matches:
        """Those whose rows are inside windows of other sizes than the join's, given as pairs of source and size."""
        if not narrow:
            return self.matches
        if narrow not in self._masks:
            mask = np.logical_and.reduce(
                [self._distances(source) < size for source, size in narrow]
            )
            self._masks[narrow] = self.matches.where(mask)
        return self._masks[narrow]


class RunningJoin:
    """Reads the logs of its streams from where it was made on, and hands what it finds to its ``members``."""

    def __init__(
        self,
        plan: JoinPlan,
        streams: Sequence[StreamInput],
        tables: Mapping[str, pa.Table],
        shared: Shared,
    ) -> None:
        self.plan = plan
        self.query = plan.query
        self.members: list[RunningQuery] = []
        self.failing: list[RunningQuery] = []
        """Members that failed since this was last looked at."""
        self.group: SharingGroup | None = None
        self._live = shared.live
        self.overload: Overload | Governed | None = None
        self._governed = shared.governed
        self._floor: list[int] = []
        self._in_flight = InFlight(self._handed_out)
        self.settings = shared.settings
        self._known = shared.known
        self._streams = sorted(streams, key=lambda state: state.stream.order)
        by_name = {state.stream.name: state for state in self._streams}
        self.evaluator = evaluator = Evaluator(shared.duck)
        self._tables = tables
        self._tools = Tools(evaluator, shared.workspace)
        self._operator = self._make_operator(plan)
        self.rows = [
            StoredRows(tables[source.relation]) if source.stored else by_name[source.relation].log
            for source in self.query.sources
        ]
        self._read = [state.log.next for state in self._streams]
        stream_of = {state.stream.name: number for number, state in enumerate(self._streams)}
        self._stream_of = [
            None if source.stored else stream_of[source.relation] for source in self.query.sources
        ]
        self._replanner = Replanner.of(plan, shared.settings, shared.known)
        # A search takes longer with each source; so do the rows that have to come for it.
        self._least = _LEAST_MEASURED * max(len(self.query.sources) - 2, 1)
        self._until_looked = self._until_measured = self._stretch = self._least
        self._rows_in = 0
        self._by_this_plan: WorkMark | None = None

    def _make_operator(self, plan: JoinPlan) -> JoinOperator:
        names = [state.stream.name for state in self._streams]
        if plan.limiting is not None:
            limited = LimitedTree(plan, names, self._tables, self._tools)
            self._control(limited)
            return limited
        schedule = self._schedule(plan)
        if schedule is None:
            return JoinOperator(plan, names, self._tables, self._tools)
        return ScheduledJoin(plan, names, self._tables, self._tools, schedule)

    def _control(self, operator: LimitedTree) -> None:
        """Let the overload of a limited join be watched; where its tree stays, so does what is known of it."""
        if (
            self.overload is None
            or self.overload.plan.tree != operator.plan.tree
            or self.overload.plan.query != operator.plan.query
        ):
            if self._governed:
                self.overload = Governed(operator.plan)
            else:
                self.overload = Overload(operator.plan, self.settings, live=self._live)
        self.overload.attach(operator)

    # -- scheduling --------------------------------------------------------------------------------

    @property
    def scheduler(self) -> str:
        """The scheduler that orders the work; LWO where there is only one window or the join cannot be scheduled."""
        return (
            self._operator.schedule.scheduler
            if isinstance(self._operator, ScheduledJoin)
            else "lwo"
        )

    def be_live(self, *, live: bool) -> None:
        """Whether the engine runs by itself: then work is cut into turns also where there is only one window."""
        self._live = live
        if self.overload is not None:
            self.overload.be_live(live=live)
        self._reschedule()

    def _windows(self) -> tuple[tuple[int, ...], ...]:
        """The different windows of the queries, from small to large, as lengths for each source."""
        if self.group is not None:
            return self.group.levels
        return (tuple(window_size(source.window) for source in self.query.sources),)

    def _scheduler(self) -> str | None:
        """The scheduler to work by; None: a row after the other, all there is."""
        if self.query.emit is Emit.CHANGES or self.plan.limiting is not None:
            return None
        levels = len(self._windows())
        if levels > 1 and self.settings.sharing.scheduler is not Scheduler.LWO:
            return self.settings.sharing.scheduler
        if not self._live:
            return None
        # With one window all three are the same. Of more than two sources LWO is the join as it is.
        return "lwo" if len(self.query.sources) == _TWO else "swf" if levels == 1 else None

    def _schedule(self, plan: JoinPlan) -> Schedule | None:
        """How the work is ordered; None: a row after the other with the largest windows."""
        scheduler = self._scheduler()
        if scheduler is None or obstacle(plan):
            return None
        windows = self._windows()
        queries = (
            Counter(member.sizes for member in self.group.members)
            if self.group
            else Counter(windows)
        )
        sizes = tuple(tuple(size or 1 for size in level) for level in windows)
        looks = tuple(steps[0].source for steps in plan.orders)
        return Schedule(
            Levels(sizes, tuple(map(queries.__getitem__, windows)), looks, (1,) * len(looks)),
            scheduler,
        )

    @property
    def _plan_settings(self) -> Settings:
        """What plans are made by. A join that is scheduled keeps no intermediate results, unless the user said so."""
        scheduled = self._scheduler() is not None and self.settings.join.tree is TreeChoice.AUTO
        return self.settings.having("tree", "off") if scheduled else self.settings

    # -- reading -----------------------------------------------------------------------------------

    def begin(self, frontier: int) -> None:
        """Take what the logs still hold of rows inside the windows, without results for it."""
        self._operator.fill(self._inside(frontier), frontier)

    def _inside(self, now: int) -> list[NewRows]:
        """The rows read so far that time and count windows still reach."""
        news = []
        for number, (state, read) in enumerate(zip(self._streams, self._read, strict=True)):
            positions, batch = state.log.between(self._needed(number, now), read)
            news.append(NewRows(positions, batch, read - len(batch)))
        return news

    def catch_up(
        self, frontier: int, closed: int, pace: Pace | None = None
    ) -> Iterator[tuple[RunningQuery, pa.Table]]:
        """Process all that is final, and yield the results of the queries, of each in order.

        With a ``pace`` a join for several windows works in the order of its scheduler, and yields by that pace what it has released;
        others take fewer rows at once. Without, nobody sees results before all are there; then the order of work is of no matter,
        and the fastest is taken.
        """
        scheduled = isinstance(self._operator, ScheduledJoin)
        for stops, until in self._due(
            frontier, closed, _SLICE if scheduled or pace is None else _PACED_SLICE
        ):
            if isinstance(self._operator, ScheduledJoin) and pace is not None:
                for released in self._operator.release(self._take(stops), until, pace):
                    yield from self._handed_out(released)
            else:
                yield from self._joined(stops, until, frontier)
        self._replan()
        for member in self.members:
            table = self._made(member, member.changes)
            if table is not None:
                yield member, table

    def _made(
        self, member: RunningQuery, make: Callable[..., pa.Table | None], *matches: Matches
    ) -> pa.Table | None:
        """Return what a member makes of matches; one that fails makes nothing more and leaves the others alone."""
        if member.failure is not None:
            return None
        try:
            return make(*matches)
        except Exception as error:  # noqa: BLE001 (whatever it is, it is this member's own)
            member.failure = error
            self.failing.append(member)
            return None

    def _joined(
        self, stops: Sequence[int], until: int, frontier: int
    ) -> Iterator[tuple[RunningQuery, pa.Table]]:
        """Join the rows up to some positions, a row after the other; live, what is stale is so as of all that has come."""
        overload = self.overload
        self._see(frontier)
        with overload.working() if overload is not None else nullcontext():
            for matches in self._operator.run(self._take(stops), until):
                yield from self._routed(Found(matches, self._distances_at_newest(matches)))

    def _see(self, frontier: int) -> None:
        """Tell a limited join where the engine is: what is older than its freshness there is stale."""
        if isinstance(self.overload, Governed):
            self.overload.see(frontier, [state.log.next for state in self._streams])
        elif self.overload is not None and self._live:
            newest = max(state.newest for state in self._streams)
            self.overload.see(min(newest, frontier), [state.log.next for state in self._streams])

    def _routed(self, found: Found) -> Iterator[tuple[RunningQuery, pa.Table]]:
        """What the join found, to every query that has it inside its windows."""
        for member in self.members:
            table = self._made(member, member.taken, found.inside(member.narrow))
            if table is not None:
                yield member, table

    def _handed_out(self, released: Released) -> Iterator[tuple[RunningQuery, pa.Table]]:
        """What a scheduled join released, to the queries of each level."""
        by_windows: dict[tuple[int, ...], list[RunningQuery]] = {}
        for member in self.members:
            by_windows.setdefault(member.sizes, []).append(member)
        for level, sizes in enumerate(self._windows()):
            matches = released.of_level(level)
            for member in by_windows[sizes if self.group else ()] if len(matches) else ():
                table = self._made(member, member.taken, matches)
                if table is not None:
                    yield member, table

    # -- live --------------------------------------------------------------------------------------

    def is_busy(self) -> bool:
        """Whether rows have been taken that are not done."""
        return isinstance(self._operator, ScheduledJoin) and (
            bool(self._in_flight) or self._operator.is_busy()
        )

    def offer(self, frontier: int, closed: int) -> Iterator[tuple[RunningQuery, pa.Table]]:
        """Take all that is final and leave the work to :meth:`turn`; a join that cannot be scheduled works it off at once."""
        operator = self._operator
        if not isinstance(operator, ScheduledJoin):
            yield from self.catch_up(frontier, closed)
            return
        if not self.is_busy():
            self._floor = [
                self._needed(number, operator.now) for number in range(len(self._streams))
            ]
        for stops, until in self._due(frontier, closed):
            for released in operator.absorb(self._take(stops), until):
                self._in_flight.put(released)

    def turn(self, pace: Pace) -> Iterator[tuple[RunningQuery, pa.Table]]:
        """Work for a turn, if there is anything to do, or hand out what a query gets of earlier turns."""
        operator = self._operator
        if not isinstance(operator, ScheduledJoin) or not self.is_busy():
            return
        if self._in_flight.is_due() or not operator.is_busy():
            yield from self._in_flight.next()
        else:
            begin = time.monotonic_ns()
            released = operator.work(pace)
            self._in_flight.put(released, time.monotonic_ns() - begin)
        if not self.is_busy():
            operator.rest()
            self._replan()

    def answer(self) -> Iterator[Found]:
        """All combinations inside the windows now."""
        for matches in self._operator.answer():
            yield Found(matches, self._distances_now(matches))

    def remember(self, frontier: int, closed: int) -> None:
        """Take all that is final into the windows, as :meth:`catch_up` does, without results for it."""
        self._see(frontier)
        for stops, until in self._due(frontier, closed):
            self._operator.repeat(self._take(stops), until)

    def _due(
        self, frontier: int, closed: int, most: int = _SLICE
    ) -> Iterator[tuple[list[int], int]]:
        """What is to be processed now, in slices of so many rows.

        Without EVERY, inserts follow the frontier and changes the last closed instant (an instant's changes are
        consolidated, so it must be complete); with EVERY both follow the last multiple that is closed.
        """
        now = frontier
        if self.query.every is not None:
            now = (
                closed // self.query.every * self.query.every if closed > BEFORE_ALL else BEFORE_ALL
            )
        elif self.query.emit is Emit.CHANGES:
            now = closed
        follows_log = (
            now == frontier and self.query.every is None and self.query.emit is Emit.INSERTS
        )
        return self._slices(now, most, follows_log=follows_log)

    def _replan(self) -> None:
        """Measure when it is due, and change the plan if that pays.

        Once as many rows have come as the windows hold, rates are looked at. Values and selectivities, which cost a look at the
        windows, are measured when a rate has changed, or else after ever longer stretches.
        """
        if self._replanner is None or self._rows_in < self._until_looked:
            return
        held = int(self._operator.state.stores[:, layout.HELD].sum())
        self._until_looked = self._rows_in + max(held, self._least)
        if self._rows_in < self._until_measured and not self._replanner.has_changed(
            self._operator.rates()
        ):
            return
        measured = self._operator.measure()
        if measured is None:
            return
        self._stretch = min(2 * self._stretch, _LONGEST_STRETCH * max(held, self._least))
        self._until_measured = self._rows_in + self._stretch
        known = len(self._replanner.overruled)
        better = self._replanner.consider(self.plan, measured, self._operator.now)
        for hint in self._replanner.overruled[known:]:
            _log.warning("query %s: %s", self.query.name, hint)
        if better is None:
            return
        if not self._can_switch_to(better):
            self._replanner.switches.pop()
            return
        self._switch_to(better)
        self._stretch = self._least
        _log.info(
            "query %s goes on with another plan: %s",
            self.query.name,
            self._replanner.switches[-1].to_dict(),
        )

    def _can_switch_to(self, plan: JoinPlan) -> bool:
        """Whether the state is there or can be filled: the logs do not tell what partitioned windows have pushed out."""
        partitioned = any(spec.kind == layout.PARTITIONED for spec in self._operator.state.specs)
        return not partitioned or (
            plan.sources == self.plan.sources and plan.tree == self.plan.tree
        )

    def _switch_to(self, plan: JoinPlan) -> None:
        """Go on with another plan: where it stores the same, only the orders change, else its state is filled from the logs."""
        before = self._operator
        if plan.sources == self.plan.sources and plan.tree == self.plan.tree:
            before.reorder(plan)
        else:
            self._operator = self._make_operator(plan)
            self._operator.fill(self._inside(before.now), before.now)
            self._operator.state.counters[:] = before.state.counters
        self.plan = plan
        self._by_this_plan = self._work_at(self._operator.now)

    def adopt(self, group: SharingGroup) -> None:
        """Go on for a group that has changed; the state is filled anew where the join is another one than before."""
        self.group = group
        plan = self.plan
        other = group.join.sources != self.query.sources or set(group.join.predicates) != set(
            self.query.predicates
        )
        if other or (plan.tree is not None and self._plan_settings.join.tree is TreeChoice.OFF):
            plan = plan_join(group.join, self._plan_settings, self._known)
        if plan is self.plan:
            self._reschedule()
            return
        now, counters = self._operator.now, self._operator.state.counters
        self.plan, self.query = plan, plan.query
        self._operator = self._make_operator(plan)
        self._operator.fill(self._inside(now), now)
        self._operator.state.counters[:] = counters
        self._replanner = Replanner.of(plan, self._plan_settings, self._known)
        self._by_this_plan = self._work_at(now) if now > BEFORE_ALL else None

    def _reschedule(self) -> None:
        """Go by the levels of the group as they are now, over the same stores."""
        schedule = self._schedule(self.plan)
        if isinstance(self._operator, ScheduledJoin) and schedule is not None:
            if schedule != self._operator.schedule:
                self._operator.follow(schedule)
        elif isinstance(self._operator, ScheduledJoin) or schedule is not None:
            now, counters = self._operator.now, self._operator.state.counters
            self._operator = self._make_operator(self.plan)
            self._operator.fill(self._inside(now), now)
            self._operator.state.counters[:] = counters

    # -- how far apart the members of a match are ----------------------------------------------------

    @property
    def now(self) -> int:
        """The instant it has come to."""
        return self._operator.now

    def ends(self, matches: Matches, sizes: Sequence[int]) -> Integers:
        """When matches end under time windows of these sizes: when the first row of each leaves; rows of tables never do."""
        streams = [
            (source, size)
            for source, size in enumerate(sizes)
            if self._stream_of[source] is not None
        ]
        # With one stream the time of a match is that of its row.
        times = (
            [matches.times]
            if len(streams) == 1
            else [self._times(source, matches.positions[source]) for source, _ in streams]
        )
        found: Integers = np.minimum.reduce(
            [own + size for own, (_, size) in zip(times, streams, strict=True)]
        )
        return found

    def _distances_at_newest(self, matches: Matches) -> Callable[[int], Integers]:
        return partial(self._distance, matches, None)

    def _distances_now(self, matches: Matches) -> Callable[[int], Integers]:
        return partial(self._distance, matches, self._operator.now)

    def _distance(self, matches: Matches, now: int | None, source: int) -> Integers:
        """How far each row of a source is behind: in microseconds, or in rows of its stream. A window has those with less than its size.

        Behind the newest row of its match; with ``now`` behind that instant.
        """
        positions = matches.positions[source]
        stream = self._stream_of[source]
        assert stream is not None, "stored tables have no windows"
        if isinstance(self.query.sources[source].window, TimeWindow):
            instants = matches.times if now is None else np.full(len(matches), now)
            age: Integers = np.subtract(instants, self._times(source, positions))
            return age
        there = (
            self._counted(matches, stream)
            if now is None
            else np.full(len(matches), self._read[stream])
        )
        behind: Integers = np.subtract(there, positions + 1)
        return behind

    def _times(self, source: int, positions: Integers) -> Integers:
        return self._streams[self._stream_of[source] or 0].log.times(positions)

    def _counted(self, matches: Matches, stream: int) -> Integers:
        """How many rows of a stream there were when the newest row of each match came, itself included.

        Streams are numbered in the order in which rows of one instant stand.
        """
        newest = np.full(len(matches), -1, np.int64)
        place = np.full(len(matches), -1, np.int64)
        for source, number in enumerate(self._stream_of):
            if number is None:
                continue
            own = matches.positions[source]
            latest = (self._times(source, own) == matches.times) & (number >= newest)
            place = np.where(latest, np.where(number > newest, own, np.maximum(place, own)), place)
            newest = np.where(latest, number, newest)
        log = self._streams[stream].log
        there = np.where(
            newest > stream, log.count_until(matches.times), log.count_until(matches.times - 1)
        )
        return np.where(newest == stream, place + 1, there)

    def _slices(self, now: int, most: int, *, follows_log: bool) -> Iterator[tuple[list[int], int]]:
        """Up to which positions to read next, and the time this brings us to; cut where times change."""
        ends = [
            state.log.next if follows_log else state.log.position_after(now, read)
            for read, state in zip(self._read, self._streams, strict=True)
        ]  # fmt: skip
        if now <= self._operator.now and ends == self._read:
            return
        while True:
            left = [end - read for end, read in zip(ends, self._read, strict=True)]
            widest = int(np.argmax(left))
            if left[widest] <= most:
                yield ends, max(now, self._operator.now)
                return
            until = self._streams[widest].log.time_at(self._read[widest] + most - 1)
            cut = [
                state.log.position_after(until, read)
                for read, state in zip(self._read, self._streams, strict=True)
            ]
            yield [min(stop, end) for stop, end in zip(cut, ends, strict=True)], until

    def _take(self, stops: Sequence[int]) -> list[NewRows]:
        news = []
        for number, (state, stop) in enumerate(zip(self._streams, stops, strict=True)):
            positions, batch = state.log.between(self._read[number], stop)
            news.append(NewRows(positions, batch, self._read[number]))
            self._read[number] = stop
            self._rows_in += len(batch)
        if self._by_this_plan is None and any(len(new.batch) for new in news):
            self._by_this_plan = self._work_at(
                min(int(new.batch.times[0]) for new in news if len(new.batch))
            )
        return news

    # -- what it needs and holds --------------------------------------------------------------------

    def reads(self, state: StreamInput) -> bool:
        """Whether it reads a stream."""
        return state in self._streams

    def _needed(self, number: int, now: int) -> int:
        """The first position of a stream that a time or count window still reaches."""
        state = self._streams[number]
        needed = self._read[number]
        for place, (source, stream) in enumerate(
            zip(self.query.sources, self._stream_of, strict=True)
        ):
            if stream != number:
                continue
            kept = self._operator.first_kept(place)
            needed = needed if kept is None else min(needed, kept)
            if isinstance(source.window, TimeWindow):
                needed = min(needed, state.log.position_after(now - source.window.micros))
            elif isinstance(source.window, RowsWindow):
                needed = min(needed, max(self._read[number] - source.window.rows, 0))
            elif self._operator.now == BEFORE_ALL:
                needed = 0
        return needed

    def needs(self, state: StreamInput) -> int:
        """From which position on it needs a stream's rows; rows that are not done may need what was needed when they came."""
        number = self._streams.index(state)
        needed = self._needed(number, self._operator.now)
        return min(needed, self._floor[number]) if self.is_busy() else needed

    def keeps(self, state: StreamInput) -> list[int]:
        """The sources whose partitioned windows may keep single rows of a stream before that."""
        number = self._streams.index(state)
        return [
            s
            for s, spec in enumerate(self._operator.state.specs)
            if spec.stream == number and spec.kind == layout.PARTITIONED
        ]

    def kept(self, source: int) -> npt.NDArray[np.int64]:
        """The positions that the partitioned window of a source keeps."""
        return self._operator.kept(source)

    def read_so_far(self) -> list[tuple[StreamInput, int]]:
        """Its streams, and up to which position it has read each."""
        return list(zip(self._streams, self._read, strict=True))

    def state_rows(self) -> dict[str, int]:
        """Rows inside the window of each source, by alias."""
        return dict(
            zip((source.alias for source in self.query.sources), self._operator.rows(), strict=True)
        )

    def nbytes(self) -> int:
        """Bytes of state, without the rows themselves, and of the results that its queries remember."""
        return self._operator.nbytes() + sum(member.remembered_bytes() for member in self.members)

    def _work_at(self, instant: int) -> WorkMark:
        counters = self._operator.state.counters
        names = ("comparisons", "rows_scanned", "matches")
        work = {name: int(counters[_COUNTERS[name]]) for name in names}
        return WorkMark(
            instant, {**work, "results": sum(member.rows_out for member in self.members)}
        )

    def measured(self) -> Measured | None:
        """The work since it runs by its present plan; None while no event time has passed."""
        if self._by_this_plan is None:
            return None
        return measured_between(self._by_this_plan, self._work_at(self._operator.now))

    def stats(self) -> dict[str, object]:
        """What it counts."""
        rows = self.state_rows()
        counters = self._operator.state.counters
        held = int(self._operator.state.stores[:, layout.HELD].sum())
        return {
            "processed_until": None
            if self._operator.now <= BEFORE_ALL
            else format_instant(self._operator.now),
            "rows_in": self._rows_in,
            "state_rows": rows,
            "stale_rows_held": held - sum(rows.values()),
            "state_bytes": self._operator.nbytes(),
            "state_bytes_per_row": self._operator.nbytes() / max(sum(rows.values()), 1),
            "expression_failures": self.evaluator.failures,
            "last_expression_failure": self.evaluator.last_failure,
            "intermediate_rows": self._operator.partial_matches(),
            "order_searches": self._replanner.searches if self._replanner else 0,
            "order_switches": [switch.to_dict() for switch in self._replanner.switches]
            if self._replanner
            else [],
            "hints_overruled": [str(hint) for hint in self._replanner.overruled]
            if self._replanner
            else [],
            "measured": self._measured(),
            "scheduler": self.scheduler,
            "overload": self._overload_stats(),
            "work": {name: int(counters[place]) for name, place in _COUNTERS.items()},
        }

    def _overload_stats(self) -> dict[str, object]:
        """How it stands between what comes and what can be done; the lag is that of event time."""
        newest = max((state.newest for state in self._streams), default=BEFORE_ALL)
        behind = newest > BEFORE_ALL and self._operator.now > BEFORE_ALL
        lag = max(newest - self._operator.now, 0) / _SECOND if behind else 0.0
        mode = "adapt" if self.overload is not None else "queue"
        return {
            "mode": mode,
            "lag_seconds": lag,
            **(self.overload.stats() if self.overload is not None else {}),
        }

    def work_queue(self) -> dict[str, int]:
        """Rows that wait for their turn and results that wait for older ones, where the join is scheduled."""
        return (
            self._operator.work_queue.stats()
            if isinstance(self._operator, ScheduledJoin)
            else WorkQueue.nothing()
        )

    def _measured(self) -> dict[str, dict[str, object]]:
        """The statistics at the last search, by alias."""
        if self._replanner is None or self._replanner.last is None:
            return {}
        pairs = zip(self.query.sources, self._replanner.last.sources, strict=True)
        return {
            source.alias: {
                "rate": found.rate,
                "rows": found.rows,
                "distinct": [round(number) for number in found.distinct],
            }
            for source, found in pairs
        }
