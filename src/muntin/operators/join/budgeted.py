"""The tree join under probe budgets ([Mukherji11]): every row is stored, and some of them probe.

Without budgets the matches are those of :class:`muntin.operators.join.tree.TreeTactic`; with
budgets they are some of these, in the same order. Cost of a row that may not probe: its insert and
its expiry.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from muntin.kernels import layout
from muntin.kernels.budgeted_join import join_limited
from muntin.kernels.jit import prepare_part
from muntin.operators.join.driver import JoinTactic, KernelRun, TacticStats
from muntin.operators.join.events import Events
from muntin.operators.join.matches import Matches
from muntin.operators.join.probe_limiter import ProbeLimiter
from muntin.operators.join.tree import JoinTree, TreeTactic
from muntin.operators.join.windows import JoinWindows
from muntin.operators.workspace import ResultBuffer
from muntin.state.recent_partial_matches import RecentPartialMatches

Integers = npt.NDArray[np.int64]

_LOW_HALF = 0xFFFFFFFF


class BudgetedTactic(JoinTactic):
    """Joins the rows that may probe, from their leaf to the root of a tree."""

    def __init__(self, windows: JoinWindows, buffer: ResultBuffer) -> None:
        super().__init__(windows, buffer)
        prepare_part("overload")
        plan = windows.plan
        assert plan.limiting is not None, "a budgeted plan has limits"
        assert plan.tree is not None, "only trees have half joins"
        self._limiting = plan.limiting
        self._tree = JoinTree(plan.tree, windows.state)
        self._recent: RecentPartialMatches | None = None
        if plan.limiting.state_rows:
            self._recent = RecentPartialMatches(
                windows.state, self._tree.partial_matches.specs, plan.limiting.state_rows
            )
            self._tree.partial_matches = self._recent
        self._unlimited = TreeTactic(windows, buffer, self._tree)
        self.limiter = ProbeLimiter(windows, self._tree.partial_matches, plan.limiting)
        sources = len(plan.sources)
        joins = 2 * sources - 2
        self._scratch = np.zeros(9 * sources + layout.SCRATCH + 3 * joins, np.int64)

    # -- running the kernel ------------------------------------------------------------------------

    def join(self, events: Events, now: int) -> Iterator[Matches]:
        """Yield the matches of events that may probe, in order."""
        self._hold(self.windows.limits())
        yield from super().join(events, now)

    def call(self, run: KernelRun) -> None:
        """Join the next rows of the cycle."""
        run.stopped(
            join_limited(
                self.windows.state.arena, self._tree.climbs, self._tree.partial_matches.arrays,
                self.limiter.arrays, run.events.arrays, run.span(self.buffer.enough),
                run.count, int(run.silent), self.output,
            )
        )  # fmt: skip

    def continues(self, run: KernelRun) -> bool:
        """Return whether the kernel can be called again before its matches are handed out."""
        return run.status == layout.CYCLE or self._unlimited.continues(run)

    def make_room(self, run: KernelRun) -> None:
        """Provide what the last call lacked, if anything; begin the next cycle."""
        if run.status == layout.CYCLE:
            self.limiter.begin_cycle(int(run.events.times[run.event]))
            return
        if run.status in {layout.GROW, layout.OVERFLOW, layout.FULL}:
            self._hold(self.windows.limits_before(run.events, run.event))
        self._unlimited.make_room(run)

    # -- rows whose matches are not needed ---------------------------------------------------------

    def insert(self, events: Events, *, repeated: bool = False) -> None:
        """Store rows: all of them make partial matches; ``repeated``, the same ones probe again."""
        if not repeated:
            self._unlimited.insert(events)
            return
        self._hold(self.windows.limits())
        for _ in self.finish(KernelRun(events, 0, len(events), self.windows.now, silent=True)):
            raise AssertionError("a silent run makes no matches")

    # -- rows that partial matches refer to --------------------------------------------------------

    def before_expiry(self, limits: Integers) -> Integers:
        """Count the rows inside at the end of each cycle; keep what partial matches refer to."""
        self.limiter.finish_cycles(self.windows.now)
        if self._recent is None:
            return limits
        self._hold(limits)
        kept = self.limiter.freshness[layout.F_HOLD]
        if self._limiting.enforce:
            kept = self.limiter.stale_limits()
        lower: Integers = np.minimum(limits, kept)
        return lower

    def _hold(self, limits: Integers) -> None:
        """Note up to where rows may go whatever their age.

        No partial match refers to them, nor will one from the instant of ``limits`` on.
        """
        if self._limiting.enforce or self._recent is None:
            return
        for source in range(len(limits)):
            oldest = self._recent.oldest(source)
            needed = layout.NEVER if oldest is None else self._coordinate(source, oldest) - 1
            self.limiter.freshness[layout.F_HOLD, source] = min(needed, int(limits[source]))

    def _coordinate(self, source: int, number: int) -> int:
        store = self.windows.state.stores[source]
        slot = int(store[layout.TAIL_SLOT]) + number - int(store[layout.TAIL])
        slot -= int(store[layout.CAP]) if slot >= store[layout.CAP] else 0
        address = int(store[layout.ROWS]) + slot * int(store[layout.WIDTH])
        return int(self.windows.state.words[address + layout.COORD])

    def first_kept(self, source: int) -> int | None:
        """Return the position of the first row that partial matches may refer to, if any."""
        state = self.windows.state
        store = state.stores[source]
        if self._recent is None or store[layout.TAIL] == store[layout.NEXT]:
            return None
        address = int(store[layout.ROWS] + store[layout.TAIL_SLOT] * store[layout.WIDTH])
        last = int(store[layout.LAST])
        return last - ((last - int(state.halves[2 * address + layout.POSITION])) & _LOW_HALF)

    # -- size --------------------------------------------------------------------------------------

    def fit(self, limits: Integers) -> None:
        """Return unused memory."""
        self._unlimited.fit(limits)

    def stats(self) -> TacticStats:
        """Return the state it holds beyond the windows."""
        return self._unlimited.stats()
