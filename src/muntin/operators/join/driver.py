"""The driver of a window join: new rows in, matches out ([Golab03], [Kostowski06]).

Finds every combination of rows, one per source, that passes the checks on codes and whose rows are
inside their windows when the newest of them arrives; with retractions also the instant at which
each combination ends. :class:`JoinOperator` owns the windows, the frontier and the room for
matches; a :class:`JoinTactic` does the looking. The operator sees integers only and yields matches
as stream positions; residual predicates and the select list belong to
:mod:`muntin.runtime.running_query`.

Why it is exact: rows enter in total order, each looks only at rows that came before it, and nothing
inside a window ever expires. Cost: O(1) per row for insert and expiry, plus the rows that the
tactic looks at.

A kernel stops when it is done, when it has written enough matches, or when it lacks room. All that
it has to remember between two calls is in a :class:`KernelRun`, so the next call resumes where the
last one stopped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.expressions.evaluator import Evaluator
from muntin.kernels import layout
from muntin.kernels.arrays import Output, Span
from muntin.kernels.equi_join import join_pair
from muntin.kernels.nway_join import join_arrivals, join_interval
from muntin.kernels.result_order import sort_matches
from muntin.model.settings import Algorithm
from muntin.model.statistics import JoinStatistics
from muntin.operators.join.events import EventMaker, Events, NewRows
from muntin.operators.join.matches import LevelMatches, Matches
from muntin.operators.join.released import ReleasedMatches
from muntin.operators.join.schedule import Schedule, TurnPace
from muntin.operators.join.windows import JoinWindows
from muntin.operators.workspace import ResultBuffer
from muntin.plan.join import JoinPlan
from muntin.schedule.work_queue import WorkQueue
from muntin.state.join_state import JoinState

Integers = npt.NDArray[np.int64]

_READY = -1
"""The status of a run before its first call."""


@dataclass
class KernelRun:
    """How far a kernel is with events ``start`` to ``stop - 1``, and why it stopped.

    ``silent`` runs store rows and make no matches. ``mark`` is the kernel's place within an event.
    """

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
        """Return whether the kernel has nothing left to do."""
        return self.status == layout.DONE


class TacticStats(NamedTuple):
    """What a tactic holds beyond the windows: bytes, partial matches, and deferred work."""

    nbytes: int = 0
    partial_matches: int = 0
    work_queue: Mapping[str, int] = WorkQueue.nothing()


class DeferredWork(ABC):
    """The work of a tactic that takes rows first and joins them later, in turns."""

    @abstractmethod
    def take(self, events: Events) -> None:
        """Take rows to work on in turns."""

    @abstractmethod
    def absorb(self, events: Events) -> Iterator[ReleasedMatches]:
        """Take rows while others are worked on; yield the matches that are ready."""

    @abstractmethod
    def is_busy(self) -> bool:
        """Return whether rows have been taken that are not done."""

    @abstractmethod
    def turn(self, pace: TurnPace) -> ReleasedMatches | None:
        """Work for a turn; return the matches that are ready, if any."""

    @abstractmethod
    def reached(self) -> Sequence[int]:
        """Return for each level the instant up to which all its matches have been handed out."""

    @abstractmethod
    def rest(self) -> None:
        """Return the memory of deferred work when there is none left."""


class JoinTactic:
    """A way to find matches: here a row after the other, as they arrive ([Golab03, section 3.1]).

    Each new row looks into the windows of the other sources in the order of the plan, then enters
    its own. Under ``algorithm = 'naive'`` all rows follow one order [Golab03, section 3]: the new
    row takes part at its source's place in it, so the steps before it look at rows that cannot
    match. Two windows with one equality, the common case, have a separate kernel: ``is_pair``.

    Other tactics override the call of the kernel and what differs around it. All find the same
    matches in the same order, except under probe budgets.
    """

    schedule: Schedule | None = None

    def __init__(
        self, windows: JoinWindows, buffer: ResultBuffer, *, is_pair: bool = False
    ) -> None:
        self.windows = windows
        self.buffer = buffer
        self._scratch = np.zeros(5 * len(windows.plan.sources) + layout.SCRATCH, np.int64)
        self._is_pair = is_pair
        self._is_naive = int(windows.plan.algorithm is Algorithm.NAIVE)

    @property
    def output(self) -> Output:
        """Return the buffer that kernels write to; valid for one call, since joins share it."""
        return Output(self.buffer.out, self.windows.state.counters, self._scratch)

    # -- running a kernel --------------------------------------------------------------------------

    def join(self, events: Events, now: int) -> Iterator[Matches]:
        """Yield the matches of events, in order; time then moves to ``now``."""
        return self.finish(KernelRun(events, 0, len(events), now))

    def finish(self, run: KernelRun) -> Iterator[Matches]:
        """Run the kernel to its end and yield its matches."""
        while run.status != layout.DONE:
            if self.resume(run):
                yield self.collect(run)

    def resume(self, run: KernelRun) -> int:
        """Call the kernel until it has matches to hand out or stops; return their number.

        Only this loop makes room and calls a kernel again. Matches are handed out before room is
        made, because a larger buffer is another one.
        """
        run.count = 0
        while True:
            self.make_room(run)
            self.call(run)
            if not self.continues(run):
                return run.count

    def call(self, run: KernelRun) -> None:
        """Call the kernel once and note in ``run`` where and why it stopped."""
        windows, span = self.windows, run.span(self.buffer.enough)
        arena, arrays, output = windows.state.arena, run.events.arrays, self.output
        if self._is_pair:
            run.stopped(join_pair(arena, arrays, span, output))
            return
        expiry = windows.expiry
        run.stopped(
            join_arrivals(
                arena, windows.program, arrays, self._is_naive, expiry.code, expiry.timer, span,
                output,
            )
        )  # fmt: skip

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
        return Matches(out[1], None, out[2:], run.events.arrived(out[0]))

    def insert(self, events: Events, *, repeated: bool = False) -> None:  # noqa: ARG002
        """Store rows whose matches are not needed.

        They came before the join did or, when ``repeated``, to an earlier run of it: then what that
        run kept is kept.
        """
        order = np.empty(self.windows.reserve_all(events), np.int64)
        span = Span(0, len(events), layout.SILENT, 0)
        join_interval(
            self.windows.state.arena, self.windows.program, events.arrays, span, order, self.output
        )

    # -- between batches ---------------------------------------------------------------------------

    def before_expiry(self, limits: Integers) -> Integers:
        """Use the rows below ``limits`` for the last time; return the limits to expire by."""
        return limits

    def fit(self, limits: Integers) -> None:
        """Return unused memory."""

    # -- work that is deferred ---------------------------------------------------------------------

    @property
    def deferred(self) -> DeferredWork | None:
        """Return the work on rows that are joined later than taken; None if joined at once."""
        return None

    def follow(self, schedule: Schedule | None) -> bool:
        """Work by another schedule from now on; return False if that takes another tactic."""
        return schedule is None

    # -- size --------------------------------------------------------------------------------------

    def first_kept(self, source: int) -> int | None:  # noqa: ARG002
        """Return the position of the first row kept beyond the window of a source, if any."""
        return None

    def stats(self) -> TacticStats:
        """Return the state it holds beyond the windows."""
        return TacticStats()


class JoinOperator:
    """Runs one join plan by a tactic; ``tables`` are the stored tables that it may read."""

    def __init__(
        self, tactic: JoinTactic, evaluator: Evaluator, tables: Mapping[str, pa.Table]
    ) -> None:
        self.tactic = tactic
        self.windows = tactic.windows
        self.events = EventMaker(self.plan, self.state, evaluator)
        for number, source in enumerate(self.plan.query.sources):
            if source.stored:
                tactic.insert(self.events.of_table(number, tables[source.relation]))

    @property
    def plan(self) -> JoinPlan:
        """Return the plan that it follows."""
        return self.windows.plan

    @property
    def state(self) -> JoinState:
        """Return the rows inside the windows, and what kernels count."""
        return self.windows.state

    @property
    def now(self) -> int:
        """Return the instant up to which it has joined."""
        return self.windows.now

    # -- rows whose matches are not needed ---------------------------------------------------------

    def fill(self, news: Sequence[NewRows], now: int) -> None:
        """Store rows that came before this operator did; their matches are not made."""
        self.tactic.insert(self.events.make(news))
        self._advance(news, now)

    def repeat(self, news: Sequence[NewRows], now: int) -> None:
        """Take rows whose matches are known from an earlier run; keep what that run kept."""
        self.tactic.insert(self.events.make(news), repeated=True)
        self._advance(news, now)

    # -- joining -----------------------------------------------------------------------------------

    def run(
        self, news: Sequence[NewRows], now: int, pace: TurnPace | None = None
    ) -> Iterator[LevelMatches]:
        """Take new rows, given per stream, and yield their matches in order; move to ``now``.

        With a ``pace``, a tactic that can defer its work does it in turns, in the order of its
        schedule. The yielded arrays are valid until the next ones are asked for.
        """
        work = self.tactic.deferred
        if pace is None or work is None:
            yield from self.join(news, now)
            return
        self.take(news, now)
        while work.is_busy():
            released = work.turn(pace)
            if released is not None:
                yield released
        self.rest()

    def join(self, news: Sequence[NewRows], now: int) -> Iterator[Matches]:
        """Take new rows and yield their matches, all of them in the fastest order of work."""
        for matches in self.tactic.join(self.events.make(news), now):
            self.state.counters[layout.N_RESULTS] += len(matches)
            yield matches
        self._advance(news, now)

    def _advance(self, news: Sequence[NewRows], now: int) -> None:
        self.windows.move_to([new.after for new in news], now)
        self._expire()

    def _expire(self) -> None:
        """Release the rows that have left their windows, and unused memory."""
        limits = self.windows.limits()
        self.windows.expire(self.tactic.before_expiry(limits), self.now)
        self.state.fit(limits)
        self.tactic.fit(limits)

    # -- joining in turns --------------------------------------------------------------------------

    @property
    def work(self) -> DeferredWork:
        """Return the deferred work of the tactic; only for tactics that defer theirs."""
        work = self.tactic.deferred
        assert work is not None, "the tactic defers its work"
        return work

    def is_busy(self) -> bool:
        """Return whether rows have been taken that are not done."""
        work = self.tactic.deferred
        return work is not None and work.is_busy()

    def take(self, news: Sequence[NewRows], now: int) -> None:
        """Take new rows to work on in turns; move to ``now``."""
        events = self.events.make(news)
        self.windows.move_to([new.after for new in news], now)
        self.work.take(events)

    def absorb(self, news: Sequence[NewRows], now: int) -> Iterator[ReleasedMatches]:
        """Take new rows while others are worked on; yield the matches that are ready."""
        events = self.events.make(news)
        self.windows.move_to([new.after for new in news], now)
        yield from self.work.absorb(events)

    def rest(self) -> None:
        """Release rows and memory after the last turn."""
        self.work.rest()
        self._expire()

    # -- size, and what the planner measures -------------------------------------------------------

    def measure(self) -> JoinStatistics | None:
        """Return the measurements since the last call; None if they are too few."""
        return self.windows.meter.read(self.now)

    def rows(self) -> list[int]:
        """Return the number of rows inside the window of each source."""
        return self.windows.rows()

    def nbytes(self) -> int:
        """Return the bytes of state, without the rows themselves."""
        return self.state.nbytes() + self.events.nbytes() + self.tactic.stats().nbytes
