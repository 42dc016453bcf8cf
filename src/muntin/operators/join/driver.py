"""The driver of a window join: new rows in, matches out ([Golab03], [Kostowski06]).

Finds every combination of rows, one per source, that passes the checks on codes and whose rows are
inside their windows when the newest of them arrives; with retractions also the instant at which
each combination ends. The driver owns the windows, the frontier and the room for matches; a tactic
(:mod:`muntin.operators.join.tactic`) does the looking. The operator sees integers only and yields
matches as stream positions; residual predicates and the select list belong to
:mod:`muntin.operators.result`.

Why it is exact: rows enter in total order, each looks only at rows that came before it, and nothing
inside a window ever expires. Cost: O(1) per row for insert and expiry, plus the rows that the
tactic looks at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from muntin.kernels import layout
from muntin.model.statistics import JoinStatistics
from muntin.operators.join.events import NO_EVENTS, NewRows
from muntin.operators.join.matches import LevelMatches, Matches
from muntin.operators.join.registry import TacticOptions, make_tactic
from muntin.operators.join.released import ReleasedMatches
from muntin.operators.join.result_buffer import ResultBuffer
from muntin.operators.join.schedule import TurnPace
from muntin.operators.join.snapshot import SnapshotTactic
from muntin.operators.join.tactic import KernelRun
from muntin.operators.join.windows import JoinWindows, Tools
from muntin.plan.join import JoinPlan
from muntin.state.join_state import JoinState

_AT_ONCE = TacticOptions()


class JoinOperator:
    """Runs one join plan over the streams it reads, numbered in the order of their declaration."""

    def __init__(
        self,
        plan: JoinPlan,
        streams: Sequence[str],
        tables: Mapping[str, pa.Table],
        tools: Tools,
        options: TacticOptions = _AT_ONCE,
    ) -> None:
        self.windows = JoinWindows(plan, streams, tools.evaluator)
        self.buffer = ResultBuffer(tools.workspace, len(plan.sources))
        self.tactic = make_tactic(self.windows, self.buffer, options)
        for events in self.windows.table_events(tables):
            self.tactic.insert(events)

    @property
    def plan(self) -> JoinPlan:
        """The plan that it follows."""
        return self.windows.plan

    @property
    def state(self) -> JoinState:
        """The rows inside the windows, and what kernels count."""
        return self.windows.state

    @property
    def now(self) -> int:
        """The instant up to which it has joined."""
        return self.windows.now

    # -- rows whose matches are not needed ---------------------------------------------------------

    def fill(self, news: Sequence[NewRows], now: int) -> None:
        """Store rows that came before this operator did; their matches are not made."""
        self.tactic.insert(self.windows.read(news))
        self._advance(news, now)

    def repeat(self, news: Sequence[NewRows], now: int) -> None:
        """Take rows whose matches are known from an earlier run; keep what that run kept."""
        self.tactic.repeat(self.windows.read(news))
        self._advance(news, now)

    # -- joining -----------------------------------------------------------------------------------

    def run(
        self, news: Sequence[NewRows], now: int, pace: TurnPace | None = None
    ) -> Iterator[LevelMatches]:
        """Take new rows, given per stream, and yield their matches in order; move to ``now``.

        With a ``pace``, a tactic that can defer its work does it in turns, in the order of its
        schedule. The yielded arrays are valid until the next ones are asked for.
        """
        if pace is not None and self.tactic.defers_work:
            yield from self._run_in_turns(news, now, pace)
        else:
            yield from self.join(news, now)

    def join(self, news: Sequence[NewRows], now: int) -> Iterator[Matches]:
        """Take new rows and yield their matches, all of them in the fastest order of work."""
        for run in self.tactic.pieces(self.windows.read(news), now):
            for matches in _matches(run):
                self.state.counters[layout.N_RESULTS] += len(matches)
                yield matches
        self._advance(news, now)

    def _advance(self, news: Sequence[NewRows], now: int) -> None:
        self.windows.move_to(news, now)
        self._expire()

    def _expire(self) -> None:
        """Release the rows that have left their windows, and unused memory."""
        limits = self.windows.limits()
        self.windows.expire(self.tactic.before_expiry(limits), self.now)
        self.state.fit(limits)
        self.tactic.fit(limits)

    # -- joining in turns --------------------------------------------------------------------------

    def _run_in_turns(
        self, news: Sequence[NewRows], now: int, pace: TurnPace
    ) -> Iterator[LevelMatches]:
        self.take(news, now)
        while self.tactic.is_busy():
            released = self.tactic.turn(pace)
            if released is not None:
                yield released
        self.rest()

    def take(self, news: Sequence[NewRows], now: int) -> None:
        """Take new rows to work on in turns; move to ``now``."""
        events = self.windows.read(news)
        self.windows.move_to(news, now)
        self.tactic.take(events)

    def absorb(self, news: Sequence[NewRows], now: int) -> Iterator[ReleasedMatches]:
        """Take new rows while others are worked on; yield the matches that are ready."""
        events = self.windows.read(news)
        self.windows.move_to(news, now)
        yield from self.tactic.absorb(events)

    def rest(self) -> None:
        """Release rows and memory after the last turn."""
        self.tactic.rest()
        self._expire()

    # -- the answer now ----------------------------------------------------------------------------

    def answer(self) -> Iterator[Matches]:
        """Yield all combinations of rows inside their windows now, in no particular order."""
        snapshot = SnapshotTactic(self.windows, self.buffer)
        for run in snapshot.pieces(NO_EVENTS, self.now):
            yield from _matches(run)

    # -- planning while it runs --------------------------------------------------------------------

    def rates(self) -> list[float] | None:
        """Return rows per second by source since the last measurement; None if no time passed."""
        return self.windows.meter.rates(self.now)

    def measure(self) -> JoinStatistics | None:
        """Return the measurements since the last call; None if they are too few."""
        return self.windows.meter.read(self.now)

    def reorder(self, plan: JoinPlan) -> None:
        """Continue with the orders of another plan of the same query, over the same state."""
        self.windows.reorder(plan)

    # -- size --------------------------------------------------------------------------------------

    def rows(self) -> list[int]:
        """Return the number of rows inside the window of each source."""
        return self.windows.rows()

    def nbytes(self) -> int:
        """Return the bytes of state, without the rows themselves."""
        return self.windows.nbytes() + self.tactic.nbytes()


def _matches(run: KernelRun) -> Iterator[Matches]:
    """Run a kernel to its end and yield its matches."""
    while not run.is_done:
        if run.resume():
            yield run.tactic.collect(run)
