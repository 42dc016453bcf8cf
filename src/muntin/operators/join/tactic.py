"""What the driver of a join asks of a tactic, and the loop that resumes kernels.

A tactic finds the matches of new rows in windows that the driver
(:class:`muntin.operators.join.driver.JoinOperator`) owns. All tactics find the same matches in the
same order, except under probe budgets.

A kernel stops when it is done, when it has written enough matches, or when it lacks room. All that
it has to remember between two calls is in a :class:`KernelRun`, so the next call resumes where the
last one stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from muntin.kernels import layout
from muntin.kernels.arrays import Output, Span
from muntin.kernels.nway_join import join_interval
from muntin.kernels.result_order import sort_matches
from muntin.operators.join.events import Events
from muntin.operators.join.matches import Matches
from muntin.operators.join.released import ReleasedMatches
from muntin.operators.join.result_buffer import ResultBuffer
from muntin.operators.join.schedule import Schedule, TurnPace
from muntin.operators.join.windows import JoinWindows
from muntin.schedule.work_queue import WorkQueue

Integers = npt.NDArray[np.int64]

_READY = -1
"""The status of a run before its first call."""


@dataclass
class KernelRun:
    """How far the kernel of a tactic is with events ``start`` to ``stop - 1``, and why it stopped.

    ``silent`` runs store rows and make no matches. ``mark`` is the kernel's place within an event.
    """

    tactic: JoinTactic
    events: Events
    start: int
    stop: int
    now: int
    silent: bool = False
    status: int = field(default=_READY, init=False)
    event: int = field(init=False)
    count: int = field(default=0, init=False)
    need: int = field(default=0, init=False)
    mark: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.event = self.start

    def stopped(self, result: tuple[int, int, int, int, int]) -> None:
        """Note what a kernel returned: status, event, count, need and mark."""
        self.status, self.event, self.count, self.need, self.mark = result

    def span(self, enough: int = 0) -> Span:
        """Return the begin and end of the next call; it stops after about ``enough`` matches."""
        return Span(self.event, self.stop, self.mark, enough)

    @property
    def is_done(self) -> bool:
        """Whether the kernel has nothing left to do."""
        return self.status == layout.DONE

    def resume(self) -> int:
        """Call the kernel until it has matches to hand out or stops; return their number.

        Only this loop makes room and calls a kernel again. Matches are handed out before room is
        made, because a larger buffer is another one.
        """
        self.count = 0
        while True:
            self.tactic.make_room(self)
            self.tactic.call(self)
            if not self.tactic.continues(self):
                return self.count

    def finish_silently(self) -> None:
        """Run to the end where no matches can come."""
        while not self.is_done:
            assert not self.resume(), "a silent run makes no matches"


class TacticStats(NamedTuple):
    """What a tactic holds: partial matches, and waiting rows and matches of deferred work."""

    partial_matches: int = 0
    work_queue: Mapping[str, int] = WorkQueue.nothing()


class JoinTactic:
    """A way to find matches. Subclasses say which kernel to call; the other defaults suit most.

    ``defers_work``: rows can be taken first and worked on later, in turns.
    """

    defers_work: ClassVar[bool] = False
    schedule: Schedule | None = None

    def __init__(self, windows: JoinWindows, buffer: ResultBuffer) -> None:
        self.windows = windows
        self.buffer = buffer
        self._scratch = np.zeros(5 * len(windows.plan.sources) + layout.SCRATCH, np.int64)

    @property
    def output(self) -> Output:
        """Where kernels write; valid for one call, since the buffer is shared."""
        return Output(self.buffer.out, self.windows.state.counters, self._scratch)

    # -- running a kernel --------------------------------------------------------------------------

    def pieces(self, events: Events, now: int) -> Iterator[KernelRun]:
        """Yield the runs that join events, one after the other; time then moves to ``now``."""
        yield KernelRun(self, events, 0, len(events), now)

    def call(self, run: KernelRun) -> None:
        """Call the kernel once and note in ``run`` where and why it stopped."""
        raise NotImplementedError

    def continues(self, run: KernelRun) -> bool:
        """Return whether the kernel can be called again before its matches are handed out."""
        return not run.is_done and not run.count

    def make_room(self, run: KernelRun) -> None:
        """Provide what the last call lacked, if anything."""
        if run.status == layout.GROW:
            self.windows.grow(run.events, run.event)
        elif run.status == layout.OVERFLOW:
            self.buffer.grow(run.need)

    def collect(self, run: KernelRun) -> Matches:
        """Return the matches of the last call, in the order in which queries get them."""
        out = self.buffer.out[:, : run.count]
        if not self.windows.plan.results_in_order:
            sort_matches(out, np.empty(run.count, np.int64), np.empty(run.count, np.int64))
        return Matches(out[1], None, out[2:], arrivals_of(run.events, out[0]))

    # -- rows whose matches are not needed ---------------------------------------------------------

    def insert(self, events: Events) -> None:
        """Store rows that came before the join did; their matches are not made."""
        order = np.empty(self.windows.reserve_all(events), np.int64)
        span = Span(0, len(events), layout.SILENT, 0)
        join_interval(
            self.windows.state.arena, self.windows.program, events.arrays, span, order, self.output
        )

    def repeat(self, events: Events) -> None:
        """Take rows whose matches are known from an earlier run; keep what that run kept."""
        self.insert(events)

    # -- between batches ---------------------------------------------------------------------------

    def before_expiry(self, limits: Integers) -> Integers:
        """Use the rows below ``limits`` for the last time; return the limits to expire by."""
        return limits

    def fit(self, limits: Integers) -> None:
        """Return unused memory."""

    # -- work that is deferred ---------------------------------------------------------------------

    def follow(self, schedule: Schedule | None) -> bool:
        """Work by another schedule from now on; return False if that takes another tactic."""
        return schedule is None

    def take(self, events: Events) -> None:
        """Take rows to work on in turns."""
        raise NotImplementedError("this tactic works at once")

    def absorb(self, events: Events) -> Iterator[ReleasedMatches]:
        """Take rows while others are worked on; yield the matches that are ready."""
        raise NotImplementedError("this tactic works at once")

    def is_busy(self) -> bool:
        """Return whether rows have been taken that are not done."""
        return False

    def turn(self, pace: TurnPace) -> ReleasedMatches | None:
        """Work for a turn; return the matches that are ready, if any."""
        raise NotImplementedError("this tactic works at once")

    def rest(self) -> None:
        """Return the memory of deferred work when there is none left."""

    # -- size --------------------------------------------------------------------------------------

    def first_kept(self, source: int) -> int | None:  # noqa: ARG002
        """Return the position of the first row kept beyond the window of a source, if any."""
        return None

    def nbytes(self) -> int:
        """Return the bytes of state beyond the windows."""
        return 0

    def stats(self) -> TacticStats:
        """Return the state it holds besides the windows."""
        return TacticStats()


def arrivals_of(events: Events, tags: Integers) -> npt.NDArray[np.float64] | float:
    """Return the arrival time of the newest row of each match, given the numbers of events."""
    arrivals = events.arrivals
    if isinstance(arrivals, float):
        return arrivals
    # A retraction at the end of a batch belongs to no event.
    return arrivals[np.minimum(tags, len(arrivals) - 1)] if len(arrivals) else 0.0
