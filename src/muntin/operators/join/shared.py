"""A join that queries with different windows share, in the order of a scheduler ([Hammad03]).

Finds the matches of the largest windows and, for each, the levels of windows that get it. Each
level gets its matches in the order in which it would get them alone. LWO works row by row, SWF
serves the smallest windows first, MQT the level with the most queries per row looked at.

State besides the stores: the work queue (:mod:`muntin.schedule.work_queue`). Cost per row: as
alone, plus a few nanoseconds per level; with more than two sources, also per partial match and
level.
Where nobody waits for results, the order of work does not matter and the eager tactic does it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from muntin.kernels import layout
from muntin.kernels import scheduler_state as at
from muntin.kernels.arrays import LevelArrays, Output
from muntin.kernels.jit import prepare_part
from muntin.kernels.shared_join import find_resumes, run_schedule
from muntin.operators.join.driver import DeferredWork, JoinTactic, KernelRun, TacticStats
from muntin.operators.join.events import Events
from muntin.operators.join.matches import Matches
from muntin.operators.join.released import ReleasedMatches
from muntin.operators.join.schedule import Schedule, TurnPace, obstacle
from muntin.operators.join.windows import JoinWindows
from muntin.operators.workspace import ResultBuffer
from muntin.schedule.work_queue import WorkQueue

Integers = npt.NDArray[np.int64]

_SECOND = 1_000_000_000
_ARRIVED = np.zeros(1, np.int64)
_NO_TABLE = np.zeros((1, 1), np.int32)
_NO_QUOTIENTS = np.zeros((1, 1), np.float64)
_FEW = 1 << 12
_KNOWN_RATES = 4
_TWO = 2


class SharedTactic(JoinTactic, DeferredWork):
    """Joins rows for several levels of windows, in turns."""

    def __init__(
        self, windows: JoinWindows, buffer: ResultBuffer, eager: JoinTactic, schedule: Schedule
    ) -> None:
        super().__init__(windows, buffer)
        prepare_part("schedule")
        reason = obstacle(windows.plan)
        assert not reason, f"this join cannot be scheduled: {reason}"
        self._eager = eager
        self._events: Events | None = None
        self.arrivals = _ARRIVED
        """When the rows that were taken arrived, in nanoseconds; one number if together."""
        self.follow(schedule)

    @property
    def deferred(self) -> DeferredWork:
        """Return the tactic itself."""
        return self

    def follow(self, schedule: Schedule | None) -> bool:
        """Work by another schedule from now on.

        Nothing is being worked on, unless rates alone differ: they only decide what comes next.
        """
        if schedule is None:
            return False
        if schedule == self.schedule:
            return True
        before = self.schedule
        if before is not None and schedule == before.having_rates(schedule.levels.rates):
            self._follow_rates(schedule)
            return True
        sources = len(self.windows.plan.sources)
        assert self._events is None or not self.is_busy(), "rows are still being worked on"
        self._events = None  # rows that passed no filter were taken and leave no work
        assert schedule.scheduler != "lwo" or sources == _TWO, (
            "with more sources LWO is the eager join"
        )
        self.schedule = schedule
        levels = schedule.levels
        counting = any(spec.kind == layout.COUNT for spec in self.windows.state.specs)
        self.work_queue = WorkQueue(levels, schedule.scheduler, sources, counting=counting)
        self._levels, self._known = levels, {levels.rates: levels}
        self.level_arrays = LevelArrays(
            np.array(levels.edges, np.int64).reshape(len(levels), -1),
            np.array(levels.sizes, np.int64).reshape(len(levels), -1),
            levels.tables, levels.reach, levels.served, _NO_TABLE, _NO_QUOTIENTS,
        )  # fmt: skip
        return True

    def _follow_rates(self, schedule: Schedule) -> None:
        """Count distances by other rates; the tables of the last ones are kept."""
        if len(self._known) == _KNOWN_RATES:
            self._known = {self._levels.rates: self._levels}
        self._levels = self._known.setdefault(schedule.levels.rates, schedule.levels)
        self.schedule = schedule
        self.work_queue.forget_choices(self._levels)
        self.level_arrays = self.level_arrays._replace(
            tables=self._levels.tables, reach=self._levels.reach,
            best=_NO_TABLE, quotients=_NO_QUOTIENTS,
        )  # fmt: skip

    # -- all at once -------------------------------------------------------------------------------

    def join(self, events: Events, now: int) -> Iterator[Matches]:
        """Yield the matches of the eager tactic, the fastest way where nobody waits."""
        return self._eager.join(events, now)

    # -- in turns ----------------------------------------------------------------------------------

    def take(self, events: Events) -> None:
        """Take rows to work on in turns."""
        assert not self._untaken(), "rows are taken in order"
        moments = np.atleast_1d(np.asarray(events.arrivals, np.float64))
        self.begin(events, (moments * _SECOND).astype(np.int64))

    def begin(self, events: Events, arrivals: Integers) -> None:
        """Begin with events that arrived at these nanoseconds."""
        assert self.schedule is not None, "a shared join is scheduled"
        if self.level_arrays.best is _NO_TABLE and self.schedule.scheduler == "mqt":
            # Not before there is work: queries often come many at a time.
            self.level_arrays = self.level_arrays._replace(
                best=self._levels.best, quotients=self._levels.quotients
            )
        self._events, self.arrivals = events, arrivals
        self.work_queue.state[at.EVENT] = 0
        self.work_queue.reserve(len(events))

    def absorb(self, events: Events) -> Iterator[ReleasedMatches]:
        """Take rows while others are worked on: look for nothing, but yield what is ready."""
        self.take(events)
        while self._untaken():
            self.work_queue.state[at.UNTIL] = 0
            released = self.work(_FEW)
            if released is not None:
                yield released

    def _untaken(self) -> int:
        if self._events is None:
            return 0
        return len(self._events) - int(self.work_queue.state[at.EVENT])

    def is_busy(self) -> bool:
        """Return whether rows have been taken that are not done."""
        queue = self.work_queue
        return bool(queue.waiting() or self._untaken() or queue.state[at.ENDING])

    def turn(self, pace: TurnPace) -> ReleasedMatches | None:
        """Work for a turn, or until there are many matches or all is done."""
        self.work_queue.state[at.UNTIL] = time.monotonic_ns() + pace.turn()
        return self.work(pace.results)

    def reached(self) -> list[int]:
        """Return for each level the instant up to which all its matches have been handed out.

        No row overtakes an older one: the first that has not finished a level is the oldest.
        """
        done, outers = self.work_queue.done, self.work_queue.outers
        end = self.windows.now
        if self._events is not None and self._untaken():
            end = min(end, int(self._events.times[self.work_queue.state[at.EVENT]]) - 1)
        # Under LWO there is one queue for all levels.
        fronts = done[np.minimum(np.arange(1, len(self._levels) + 1), len(done) - 1)]
        before = outers[fronts & len(outers) - 1, at.O_TIME] - 1
        instants: list[int] = np.where(fronts < done[0], before, end).tolist()
        return instants

    def work(self, most: int = 1 << 18) -> ReleasedMatches | None:
        """Work until the time in the scheduler state, or until about ``most`` matches."""
        assert self._events is not None, "there is work"
        self._most = most
        self.work_queue.state[at.FOUND] = 0
        count = self.resume(KernelRun(self._events, 0, len(self._events), self.windows.now))
        self.windows.state.counters[layout.N_RESULTS] += count
        if not count:
            return None
        plan = self.windows.plan
        return ReleasedMatches(self._out(), count, len(plan.sources), plan.results_in_order)

    def _out(self) -> Integers:
        """Return room for the matches of a turn: at least those of one step, one per level."""
        # A match of two sources is eight words in a cache line.
        words = 2 + len(self.windows.plan.sources) + at.R_ROWS
        return self.buffer.workspace.exactly(
            max(self._most, self.buffer.room, len(self._levels)), words
        )

    def call(self, run: KernelRun) -> None:
        """Work on the rows that were taken; the scheduler state holds how far that is."""
        run.status = self.run_schedule(run, self.output._replace(out=self._out()))
        state = self.work_queue.state
        run.event, run.count = int(state[at.EVENT]), int(state[at.FOUND])
        run.need = int(state[at.NEED])

    def run_schedule(self, run: KernelRun, output: Output) -> int:
        """Call the kernel and return why it stopped."""
        return int(
            run_schedule(
                self.windows.state.arena, self.windows.program, run.events.arrays, self.arrivals,
                self.level_arrays, self.work_queue.arrays, output,
            )
        )  # fmt: skip

    def continues(self, run: KernelRun) -> bool:
        """Return whether only room is lacking; matches so far stay where they are."""
        if run.status == layout.OVERFLOW:
            return not run.count
        return run.status in {layout.GROW, at.MORE_ROWS, at.MORE_PLACES}

    def make_room(self, run: KernelRun) -> None:
        """Provide what the last call lacked, if anything."""
        if run.status == layout.GROW:
            self.windows.grow(run.events, run.event)
            self._find_resumes()
        elif run.status == at.MORE_ROWS:
            self.work_queue.reserve(len(self.work_queue.outers))
        elif run.status == at.MORE_PLACES:
            self.work_queue.widen()
        elif run.status == layout.OVERFLOW:
            self.buffer.room = run.need

    def _find_resumes(self) -> None:
        """Let waiting rows continue at the right places in stores that have moved."""
        if len(self.windows.plan.sources) == _TWO:
            state = self.windows.state
            find_resumes(state.arena, self.windows.program, self.work_queue.arrays, self._scratch)
        else:
            self.work_queue.mark_stale()

    def rest(self) -> None:
        """Return the memory of deferred work when there is none left."""
        self._events = None
        self.work_queue.shrink()

    # -- size --------------------------------------------------------------------------------------

    def stats(self) -> TacticStats:
        """Return the state it holds beyond the windows."""
        return TacticStats(self.work_queue.nbytes(), work_queue=self.work_queue.stats())
