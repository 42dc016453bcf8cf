"""A join that several queries share, worked off in the order of a scheduler (paper 1).

Computes what :class:`muntin.operators.join.JoinOperator` computes for the largest windows, and tells for each result which levels, that is
which windows, get it; each level gets its results in the order in which it would get them alone. State besides the stores: the agenda
(:mod:`muntin.schedule.agenda`). Cost a row: as alone, plus a few nanoseconds for each level; of more than two sources the scans of all
levels.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.kernels import agenda as at
from muntin.kernels import layout
from muntin.kernels.scheduling import results_of_level, run_schedule
from muntin.kernels.sorting import sort_matches
from muntin.model.window import PartitionedWindow
from muntin.operators.events import Events, NewRows
from muntin.operators.join import JoinOperator, Matches, Tools
from muntin.plan.join import Algorithm, Expiry, JoinPlan
from muntin.plan.query import Emit
from muntin.schedule.agenda import Agenda
from muntin.schedule.levels import Levels

Integers = npt.NDArray[np.int64]

_SECOND = 1_000_000_000
_NO_TRACE = np.zeros((0, at.T_COLUMNS), np.int64)
_ARRIVED = np.zeros(1, np.int64)
_LONGEST = (1 << 62) - 1
_TWO = 2
_RESULT = 8
"""What a result costs, in candidates looked at, where work is counted."""


def obstacle(plan: JoinPlan) -> str:
    """What keeps a join from being scheduled; empty if nothing does."""
    if plan.query.emit is not Emit.INSERTS or plan.query.every is not None:
        return "its results do not come with rows"
    if plan.algorithm is not Algorithm.EAGER:
        return f"the algorithm is {plan.algorithm}"
    if plan.tree is not None:
        return "it keeps intermediate results in a tree"
    if plan.expiry is not Expiry.OWN:
        return f"expiry is {plan.expiry}"
    if any(isinstance(source.window, PartitionedWindow) for source in plan.query.sources):
        return "it counts rows by partition"
    return "" if len(plan.sources) > 1 else "it has one source"


@dataclass(frozen=True)
class Schedule:
    """Levels, and the scheduler that orders the work on them."""

    levels: Levels
    scheduler: str


@dataclass
class Pace:
    """How long a scheduled join works until it hands on what it has released.

    ``measured`` in nanoseconds of the machine's clock; else in candidates looked at (a result counts as some of them), which is the same
    whenever the same work is done again. Turns become longer as work goes on: the first results come soon, and many turns cost little.
    """

    measured: bool
    first: int
    longest: int

    def __post_init__(self) -> None:
        self._next = self.first

    def turn(self) -> int:
        """The length of the next turn."""
        turn, self._next = self._next, min(2 * self._next, self.longest)
        return turn


@dataclass(frozen=True)
class Released:
    """Results of some work, with the levels that get them; valid until the operator goes on."""

    out: Integers
    sources: int
    in_order: bool

    def __len__(self) -> int:
        return int(self.out.shape[1])

    def of_level(self, level: int) -> Matches:
        """What a level gets."""
        chosen = np.empty(len(self), np.int64)
        rows = 2 + self.sources
        found = chosen[: results_of_level(self.out, len(self), rows, level, chosen)]
        mine = self.out[:rows, found]
        if not self.in_order:
            sort_matches(mine, np.empty(len(found), np.int64), np.empty(len(found), np.int64))
        arrivals = self.out[rows + at.R_ARRIVAL, found] / _SECOND
        return Matches(mine[1], None, mine[2:], arrivals)


class ScheduledJoin(JoinOperator):
    """Runs one join plan for several levels."""

    def __init__(self, plan: JoinPlan, streams: Sequence[str], tables: Mapping[str, pa.Table], tools: Tools, schedule: Schedule) -> None:
        super().__init__(plan, streams, tables, tools)
        assert not obstacle(plan), f"such joins are not scheduled: {obstacle(plan)}"
        self._events: Events | None = None
        self._arrivals = _ARRIVED
        self.trace = _NO_TRACE
        self.follow(schedule)

    def follow(self, schedule: Schedule) -> None:
        """Go by other levels or another scheduler from now on; nothing is being worked on."""
        assert self._events is None, "rows are still being worked on"
        assert schedule.scheduler != "lwo" or len(self.plan.sources) == _TWO, "with more sources LWO is the join as it is"
        self.schedule = schedule
        levels = schedule.levels
        counting = any(spec.kind == layout.COUNT for spec in self.state.specs)
        self.agenda = Agenda(levels, schedule.scheduler, len(self.plan.sources), counting=counting)
        self._sizes = np.array(levels.sizes, np.int64).reshape(len(levels), -1)
        self._edges = np.array(levels.edges, np.int64).reshape(len(levels), -1)
        self._best = levels.best if schedule.scheduler == "mqt" else np.zeros((1, 1), np.int32)

    # -- work --------------------------------------------------------------------------------------

    def release(self, news: Sequence[NewRows], now: int, pace: Pace) -> Iterator[Released]:
        """Take new rows, given per stream, and yield results until all is done, by a pace."""
        self.take(news, now)
        while self.is_busy():
            released = self.work(pace)
            if released is not None:
                yield released
        self.rest()

    def take(self, news: Sequence[NewRows], now: int) -> None:
        """Take new rows, given per stream; time moves on to ``now``."""
        assert self._events is None or not self._untaken(), "rows are taken in order"
        events = self._maker.make(news)
        self._refer_to(news)
        self.now = max(self.now, now)
        self._seen[:] = [new.before + len(new.batch) for new in news]
        self._meter.start(self.now)
        self._begin(events, self._arrived(events))

    def _begin(self, events: Events, arrivals: Integers) -> None:
        self._events, self._arrivals = events, arrivals
        self.agenda.desk[at.EVENT] = 0
        self.agenda.reserve(len(events))

    @staticmethod
    def _arrived(events: Events) -> Integers:
        moments = np.atleast_1d(np.asarray(events.arrivals, np.float64))
        return (moments * _SECOND).astype(np.int64)

    def _untaken(self) -> int:
        return len(self._events) - int(self.agenda.desk[at.EVENT]) if self._events is not None else 0

    def is_busy(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.agenda.waiting() or self._untaken() or self.agenda.desk[at.ENDING])

    def work(self, pace: Pace) -> Released | None:
        """Go on for a turn, or until there are many results or all is done; the results, if there are any."""
        desk = self.agenda.desk
        desk[[at.CLOCK, at.PROBE_COST, at.RESULT_COST]] = at.MEASURED if pace.measured else at.COUNTED, 1, _RESULT
        desk[at.NOW] = 0
        desk[at.UNTIL] = pace.turn() + (time.monotonic_ns() if pace.measured else 0)
        return self.go_on()

    def go_on(self) -> Released | None:
        """Work by the clock that is set on the desk."""
        desk = self.agenda.desk
        desk[at.FOUND] = 0
        while True:
            out = self._workspace.results(2 + len(self.plan.sources) + at.R_ROWS, self._room)
            status = self._call(out)
            count = int(desk[at.FOUND])
            if status == layout.GROW:
                events = self._events
                assert events is not None, "a row had no room"
                event = int(desk[at.EVENT])
                self._make_room(layout.GROW, 0, events, event)
            elif status == at.MORE_ROWS:
                self.agenda.reserve(len(self.agenda.outers))
            elif status == at.MORE_PAIRS:
                self.agenda.widen()
            elif status == layout.OVERFLOW and not count:
                self._room = max(int(desk[at.NEED]), self._room) + 1
            else:
                break
        self.state.counters[layout.N_RESULTS] += count
        if not count:
            return None
        return Released(out[:, :count], len(self.plan.sources), self.plan.results_in_order)

    def _call(self, out: Integers) -> int:
        events, agenda, levels = self._events, self.agenda, self.schedule.levels
        assert events is not None, "there is work"
        return int(
            run_schedule(
                *self._arrays(), self._program.flat, self._program.stride,
                events.sources, events.offsets, events.times, events.counts, events.incoming, self._arrivals,
                self._edges, self._sizes, levels.tables, levels.reach, levels.served, self._best,
                agenda.desk, agenda.done, agenda.links, agenda.given, agenda.outers, agenda.bases, agenda.bounds, agenda.pairs,
                out, self.trace, self.state.counters, self._scratch,
            )
        )  # fmt: skip

    def rest(self) -> None:
        """Let rows go that no window reaches, and give back room; when nothing waits."""
        self._events = None
        self.agenda.shrink()
        limits = self.limits()
        self._expire(limits)
        self.state.fit(limits)

    # -- size --------------------------------------------------------------------------------------

    def nbytes(self) -> int:
        """Bytes of state, without the rows themselves."""
        return super().nbytes() + self.agenda.nbytes()
