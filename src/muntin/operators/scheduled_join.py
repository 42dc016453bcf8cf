"""A join that several queries share, worked off in the order of a scheduler (paper 1).

Computes what :class:`muntin.operators.join.JoinOperator` computes for the largest windows, and tells for each result which levels, that is
which windows, get it; each level gets its results in the order in which it would get them alone. State besides the stores: the work queue
(:mod:`muntin.schedule.work_queue`). Cost a row: as alone, plus a few nanoseconds for each level; of more than two sources the scans of all
levels.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.kernels import layout
from muntin.kernels import scheduler_state as at
from muntin.kernels.arrays import LevelArrays, Output
from muntin.kernels.jit import prepare_part
from muntin.kernels.result_order import sort_matches
from muntin.kernels.shared_join import find_resumes, results_of_level, run_schedule
from muntin.model.settings import Algorithm, Expiry
from muntin.model.window import PartitionedWindow
from muntin.operators.events import Events, NewRows
from muntin.operators.join import JoinOperator, Matches, Tools
from muntin.plan.join import JoinPlan
from muntin.plan.query import Emit
from muntin.schedule.levels import Levels
from muntin.schedule.work_queue import WorkQueue

Integers = npt.NDArray[np.int64]

_SECOND = 1_000_000_000
_NO_TRACE = np.zeros((0, at.T_COLUMNS), np.int64)
_ARRIVED = np.zeros(1, np.int64)
_NO_TABLE = np.zeros((1, 1), np.int32)
_NO_QUOTIENTS = np.zeros((1, 1), np.float64)
_LONGEST = (1 << 62) - 1
_FEW = 1 << 12
_TWO = 2


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
    """How long a scheduled join works until it hands on what it has released, in nanoseconds, and how many results at the most.

    Turns become longer as work goes on: the first results come soon, and many turns cost little.
    """

    first: int = 500_000
    longest: int = 8_000_000
    results: int = 1 << 18

    def __post_init__(self) -> None:
        self._next = self.first

    def turn(self) -> int:
        """The length of the next turn."""
        turn, self._next = self._next, min(2 * self._next, self.longest)
        return turn


@dataclass
class Timing:
    """How a replay tells the time, and when it lets others go on.

    Parameters
    ----------
    gap : int
        When the machine does something else for more nanoseconds than that, the clock stands still. Work looks at the clock every few
        microseconds.
    costs : tuple of int, optional
        Of looking at a row and of finding a result. With them the clock moves by these alone: a simulation without overheads.
    turn : int
        Nanoseconds on the clock after which a replay yields.
    speed : float
        How fast the clock goes beside the machine's. It may be changed between turns, when the machine has become faster or slower.
    """

    gap: int = _LONGEST
    costs: tuple[int, int] | None = None
    turn: int = _LONGEST
    speed: float = 1.0


@dataclass(frozen=True)
class Released:
    """Results of some work, in the first ``count`` rows, with the levels that get them; valid until the operator goes on."""

    out: Integers
    count: int
    sources: int
    in_order: bool

    def kept(self) -> Released:
        """The same, valid for as long as it is held."""
        return replace(self, out=self.out[: self.count].copy())

    @staticmethod
    def together(pieces: Sequence[Released]) -> Released:
        """Results of several pieces of work, one after the other."""
        if len(pieces) == 1:
            return pieces[0]
        out = np.concatenate([piece.out[: piece.count] for piece in pieces])
        return replace(pieces[0], out=out, count=len(out))

    def of_level(self, level: int) -> Matches:
        """What a level gets."""
        found = self._places(level)
        rows = 2 + self.sources
        chosen = self.out[found]
        mine = np.ascontiguousarray(chosen[:, :rows].T)
        if not self.in_order:
            sort_matches(mine, np.empty(len(found), np.int64), np.empty(len(found), np.int64))
        return Matches(mine[1], None, mine[2:], chosen[:, rows + at.R_ARRIVAL] / _SECOND)

    def response_times(self, level: int) -> npt.NDArray[np.int64]:
        """For each result of a level, nanoseconds from the arrival of its newest row to its release."""
        found, rows = self._places(level), 2 + self.sources
        times: Integers = (
            self.out[found, rows + at.R_RELEASED] - self.out[found, rows + at.R_ARRIVAL]
        )
        return times

    def _places(self, level: int) -> Integers:
        chosen = np.empty(self.count, np.int64)
        return chosen[: results_of_level(self.out, self.count, 2 + self.sources, level, chosen)]


class ScheduledJoin(JoinOperator):
    """Runs one join plan for several levels."""

    def __init__(
        self,
        plan: JoinPlan,
        streams: Sequence[str],
        tables: Mapping[str, pa.Table],
        tools: Tools,
        schedule: Schedule,
    ) -> None:
        super().__init__(plan, streams, tables, tools)
        prepare_part("schedule")
        assert not obstacle(plan), f"such joins are not scheduled: {obstacle(plan)}"
        self._events: Events | None = None
        self._arrivals = _ARRIVED
        self.trace = _NO_TRACE
        self.follow(schedule)

    def follow(self, schedule: Schedule) -> None:
        """Go by other levels or another scheduler from now on; nothing is being worked on."""
        assert self._events is None, "rows are still being worked on"
        assert schedule.scheduler != "lwo" or len(self.plan.sources) == _TWO, (
            "with more sources LWO is the join as it is"
        )
        self.schedule = schedule
        levels = schedule.levels
        counting = any(spec.kind == layout.COUNT for spec in self.state.specs)
        self.work_queue = WorkQueue(
            levels, schedule.scheduler, len(self.plan.sources), counting=counting
        )
        self._level_arrays = LevelArrays(
            np.array(levels.edges, np.int64).reshape(len(levels), -1),
            np.array(levels.sizes, np.int64).reshape(len(levels), -1),
            levels.tables, levels.reach, levels.served, _NO_TABLE, _NO_QUOTIENTS,
        )  # fmt: skip

    # -- work --------------------------------------------------------------------------------------

    def release(self, news: Sequence[NewRows], now: int, pace: Pace) -> Iterator[Released]:
        """Take new rows, given per stream, and yield results until all is done, by a pace."""
        self.take(news, now)
        while self.is_busy():
            released = self.work(pace)
            if released is not None:
                yield released
        self.rest()

    def absorb(self, news: Sequence[NewRows], now: int) -> Iterator[Released]:
        """Take new rows, given per stream, while others are being worked on; nothing is looked for, but what is ready is yielded."""
        self.take(news, now)
        desk = self.work_queue.state
        while self._untaken():
            desk[[at.CLOCK, at.NOW, at.PUNCTUAL, at.UNTIL]] = at.MEASURED, 0, 0, 0
            released = self.go_on(_FEW)
            if released is not None:
                yield released

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
        if self._level_arrays.best is _NO_TABLE and self.schedule.scheduler == "mqt":
            # Not before there is work: queries often come many at a time.
            levels = self.schedule.levels
            self._level_arrays = self._level_arrays._replace(
                best=levels.best, quotients=levels.quotients
            )
        self._events, self._arrivals = events, arrivals
        self.work_queue.state[at.EVENT] = 0
        self.work_queue.reserve(len(events))

    @staticmethod
    def _arrived(events: Events) -> Integers:
        moments = np.atleast_1d(np.asarray(events.arrivals, np.float64))
        return (moments * _SECOND).astype(np.int64)

    def _untaken(self) -> int:
        return (
            len(self._events) - int(self.work_queue.state[at.EVENT])
            if self._events is not None
            else 0
        )

    def is_busy(self) -> bool:
        """Whether there is anything to do."""
        return bool(
            self.work_queue.waiting() or self._untaken() or self.work_queue.state[at.ENDING]
        )

    def work(self, pace: Pace) -> Released | None:
        """Go on for a turn, or until there are many results or all is done; the results, if there are any."""
        desk = self.work_queue.state
        desk[[at.CLOCK, at.NOW, at.PUNCTUAL, at.APART]] = at.MEASURED, 0, 0, 0
        desk[at.UNTIL] = time.monotonic_ns() + pace.turn()
        return self.go_on(pace.results)

    def replay(
        self, news: Sequence[NewRows], arrivals: Integers, now: int, timing: Timing
    ) -> Iterator[Released | None]:
        """Work as if the rows came at their arrivals, given in total order, in nanoseconds from now on; for measurements.

        The clock is put forward to the next arrival when there is nothing to do, and stands still between turns. Results are written for
        each level apart: what an output stream costs is then part of the measurement, as in the paper.
        """
        self.take(news, now)
        desk = self.work_queue.state
        desk[[at.APART, at.PUNCTUAL, at.NOW, at.IDLE, at.LOST]] = 1, 1, 0, 0, 0
        desk[at.CLOCK] = at.MEASURED if timing.costs is None else at.COUNTED
        if timing.costs is not None:
            desk[[at.PROBE_COST, at.RESULT_COST]] = timing.costs
        self._arrivals = arrivals
        while self.is_busy():
            desk[[at.UNTIL, at.GAP]] = min(desk[at.NOW] + timing.turn, _LONGEST), timing.gap
            desk[at.SPEED] = round(timing.speed * (1 << at.EVENLY))
            desk[at.SINCE] = desk[at.SEEN] = time.monotonic_ns()
            released = self.go_on()
            if timing.costs is None:
                desk[at.NOW] += (desk[at.SEEN] - desk[at.SINCE]) * desk[at.SPEED] >> at.EVENLY
            yield released
        desk[at.GAP] = 0
        self.rest()

    def go_on(self, most: int = 1 << 18) -> Released | None:
        """Work by the clock that is set on the desk, until there are about so many results."""
        desk = self.work_queue.state
        desk[at.FOUND] = 0
        while True:
            status = self._call(self._results(most))
            count = int(desk[at.FOUND])
            if status == layout.GROW:
                events = self._events
                assert events is not None, "a row had no room"
                self._make_room(layout.GROW, 0, events, int(desk[at.EVENT]))
                self._find_resumes()
            elif status == at.MORE_ROWS:
                self.work_queue.reserve(len(self.work_queue.outers))
            elif status == at.MORE_PAIRS:
                self.work_queue.widen()
            elif status == layout.OVERFLOW and not count:
                self._room = int(desk[at.NEED])
            else:
                break
        self.state.counters[layout.N_RESULTS] += count
        if not count:
            return None
        return Released(
            self._results(most), count, len(self.plan.sources), self.plan.results_in_order
        )

    def _find_resumes(self) -> None:
        """Let rows that wait go on at the right places in stores that have moved."""
        if len(self.plan.sources) == _TWO:
            find_resumes(self.state.arena, self._program, self.work_queue.arrays, self._scratch)

    def _results(self, most: int) -> Integers:
        """Room for so many results, or for as many as one step gave that did not fit; one step needs as much as there are levels."""
        # A result of two sources is eight words in a line of the cache.
        words = 2 + len(self.plan.sources) + at.R_ROWS
        return self._workspace.exactly(max(most, self._room, len(self.schedule.levels)), words)

    def _call(self, out: Integers) -> int:
        assert self._events is not None, "there is work"
        return int(
            run_schedule(
                self.state.arena, self._program, self._events.arrays, self._arrivals,
                self._level_arrays, self.work_queue.arrays, self.trace,
                Output(out, self.state.counters, self._scratch),
            )
        )  # fmt: skip

    def rest(self) -> None:
        """Let rows go that no window reaches, and give back room; when nothing waits."""
        self._events = None
        self.work_queue.shrink()
        limits = self.limits()
        self._expire(limits, self.now)
        self.state.fit(limits)

    # -- size --------------------------------------------------------------------------------------

    def nbytes(self) -> int:
        """Bytes of state, without the rows themselves."""
        return super().nbytes() + self.work_queue.nbytes()
