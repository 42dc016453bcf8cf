"""The tree join under probe budgets (paper 5): every row is stored, and as many probe as the probe budgets let.

Half joins are numbered by who probes: the sources, then the inner nodes of the tree. Without probe budgets and without a cap the
matches are those of :class:`muntin.operators.join.JoinOperator`; with them they are some of these, in the same order. Which ones
follows from the rows, from the plan's :class:`muntin.plan.probe_limits.Limiting`, and from the :class:`Budgets` that were set and when.

State beyond that of the tree: a few counts for each half join. Cost of a row that may not probe: its insert and its expiry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.kernels import layout
from muntin.kernels.arrays import BudgetArrays, Span
from muntin.kernels.budgeted_join import EMPTY_CYCLES, begin_cycle, finish_cycles, join_limited
from muntin.kernels.jit import prepare_part
from muntin.model.settings import ProbeChoice
from muntin.operators.events import Events, NewRows
from muntin.operators.join import JoinOperator, Matches, Tools
from muntin.operators.join_tree import Tree
from muntin.plan.join import JoinPlan
from muntin.plan.probe_limits import Limiting
from muntin.state.recent_partial_matches import RecentPartialMatches

Integers = npt.NDArray[np.int64]

_SECOND = 1_000_000
_CHOICES = {
    ProbeChoice.OLDEST: layout.OLDEST_FIRST,
    ProbeChoice.NEWEST: layout.NEWEST_FIRST,
    ProbeChoice.RANDOM: layout.RANDOMLY,
}
_FREE = -1.0


@dataclass(frozen=True)
class Budgets:
    """Probes a second of event time: of each half join, and of all together; None: as many as come."""

    rates: tuple[float | None, ...]
    cap: float | None = None

    @classmethod
    def unlimited(cls, sources: int) -> Budgets:
        """Everything may probe, in a tree over so many sources."""
        return cls((None,) * (2 * sources - 2))


@dataclass(frozen=True)
class CycleSample:
    """What was counted in one cycle, for each half join; ``states`` are the rows in the prober's own state at the cycle's end."""

    cycle: int
    arrivals: tuple[int, ...]
    probes: tuple[int, ...]
    matches: tuple[int, ...]
    states: tuple[int, ...]


class LimitedTree(JoinOperator):
    """Runs a plan that is ``limiting`` over the streams it reads.

    ``on_sample`` is called with each finished cycle before the next one begins, so what it sets holds from then on, and results do not
    depend on how rows are cut into batches.
    """

    def __init__(
        self, plan: JoinPlan, streams: Sequence[str], tables: Mapping[str, pa.Table], tools: Tools
    ) -> None:
        prepare_part("overload")
        assert plan.limiting is not None, "the plan says how it is limited"
        assert plan.tree is not None, "only trees have half joins"
        self.limiting: Limiting = plan.limiting
        super().__init__(plan, streams, tables, tools)
        sources = len(plan.sources)
        joins = 2 * sources - 2
        self._half_joins = np.zeros((joins, layout.H_FIELDS), np.int64)
        self._rates = np.full(joins + 2, _FREE)
        self._cycles = np.zeros(layout.P_FIELDS, np.int64)
        self._cycles[layout.P_PERIOD] = self.limiting.period
        self._cycles[layout.P_CHOICE] = _CHOICES[self.limiting.choice]
        self._cycles[[layout.P_SEED, layout.P_CYCLE, layout.P_MOST]] = (
            self.limiting.seed,
            layout.EVER,
            -1,
        )
        self._cycles[[layout.P_KEEP, layout.P_ENFORCE]] = (
            self.limiting.state_rows or 0,
            int(self.limiting.enforce),
        )
        self._freshness = np.zeros((layout.F_FIELDS, sources), np.int64)
        self._freshness[layout.F_SIZE] = self.limiting.freshness
        self._freshness[layout.F_PRESENT] = layout.EVER
        self._budget_arrays = BudgetArrays(self._half_joins, self._cycles, self._freshness)
        self._samples = np.zeros((1 + EMPTY_CYCLES, 1 + layout.SAMPLE_FIELDS * joins), np.int64)
        self._taken: list[CycleSample] = []
        self._handing: int | None = None
        self.on_sample: Callable[[CycleSample], None] | None = None
        self.budgets = Budgets.unlimited(sources)
        self._scratch = np.zeros(9 * sources + layout.SCRATCH + 3 * joins, np.int64)

    def _make_tree(self, plan: JoinPlan) -> Tree | None:
        tree = super()._make_tree(plan)
        if tree is not None and self.limiting.state_rows:
            tree.partial_matches = RecentPartialMatches(
                self.state, tree.partial_matches.specs, self.limiting.state_rows
            )
        return tree

    # -- control -----------------------------------------------------------------------------------

    def set_budgets(self, budgets: Budgets) -> None:
        """Let so many probe from the next cycle on; where a sample is being handed over, that is the one after it."""
        assert len(budgets.rates) == len(self._half_joins), "one rate for each half join"
        seconds = self.limiting.period / _SECOND
        self.budgets = budgets
        self._rates[:-1] = [
            _FREE if rate is None else rate * seconds for rate in (*budgets.rates, budgets.cap)
        ]
        self._cycles[layout.P_BASE] = (
            self._cycles[layout.P_NEXT] + int(self._is_inside())
            if self._handing is None
            else self._handing + 1
        )

    def _is_inside(self) -> bool:
        """Whether a cycle has begun that has no sample yet."""
        return bool(self._cycles[layout.P_NEXT] == self._cycles[layout.P_CYCLE])

    def see(self, time: int, counts: Sequence[int]) -> None:
        """Say where the engine is, if that is ahead of the rows that are worked on: an instant, and rows of each stream so far.

        Freshness is measured from there.
        """
        for source, spec in enumerate(self.state.specs):
            if spec.kind != layout.STORED:
                self._freshness[layout.F_PRESENT, source] = (
                    time if spec.kind == layout.TIME else counts[spec.stream]
                )

    def samples(self) -> list[CycleSample]:
        """The cycles that were finished since this was last asked, where nobody is called with them."""
        taken, self._taken = self._taken, []
        return taken

    def _finish_cycles(self, tree: Tree, now: int) -> None:
        """Hand over the samples of the cycles that are over."""
        count = finish_cycles(
            self.state.arena, tree.partial_matches.arrays, self._budget_arrays, now,
            self._samples, self._scratch,
        )  # fmt: skip
        for row in self._samples[:count].tolist():
            arrivals, probes, matches, states = (
                tuple(row[1 + field :: layout.SAMPLE_FIELDS])
                for field in range(layout.SAMPLE_FIELDS)
            )
            sample = CycleSample(row[0], arrivals, probes, matches, states)
            self._handing = sample.cycle
            if self.on_sample is None:
                self._taken.append(sample)
            else:
                self.on_sample(sample)
        self._handing = None

    # -- rows --------------------------------------------------------------------------------------

    def repeat(self, news: Sequence[NewRows], now: int) -> None:
        """Take rows again whose results are known: the same ones probe, and nothing is handed on."""
        events = self._maker.make(news)
        self._refer_to(news)
        assert self._tree is not None, "only trees are limited"
        assert not list(self._run_limited(self._tree, events, silent=True)), (
            "a silent run makes no results"
        )
        self._advance(news, now)

    def _run_tree(self, tree: Tree, events: Events, *, silent: bool) -> Iterator[Matches]:
        # What was there before the operator was, it is to know in full.
        return (
            super()._run_tree(tree, events, silent=True)
            if silent
            else self._run_limited(tree, events, silent=False)
        )

    def _run_limited(self, tree: Tree, events: Events, *, silent: bool) -> Iterator[Matches]:
        event, resume, count = 0, 0, 0
        partial_matches = tree.partial_matches
        self._hold(partial_matches, self.limits())
        while True:
            span = Span(event, len(events), resume, self._enough())
            status, event, count, need, resume = join_limited(
                self.state.arena, tree.climbs, partial_matches.arrays, self._budget_arrays,
                events.arrays, span, count, int(silent), self._output(),
            )  # fmt: skip
            if status == layout.WIDEN:
                counts = events.counts[event] if len(events.counts) > event else events.counts[0]
                partial_matches.make_room(need, self._limits(int(events.times[event]), counts))
                continue
            if status == layout.CYCLE:
                self._finish_cycles(tree, int(events.times[event]))
                begin_cycle(self._budget_arrays, self._rates, int(events.times[event]))
                continue
            if count:
                yield self._matches(events, count)
                count = 0
            if status == layout.DONE:
                return
            counts = events.counts[event] if len(events.counts) > event else events.counts[0]
            self._hold(partial_matches, self._limits(int(events.times[event]), counts))
            self._make_room(status, need, events, event)

    def _advance(self, news: Sequence[NewRows], now: int) -> None:
        assert self._tree is not None, "only trees are limited"
        self._finish_cycles(
            self._tree, max(self.now, now)
        )  # while the rows are there that were inside at a cycle's end
        super()._advance(news, now)

    def _hold(self, partial_matches: object, limits: Integers) -> None:
        """Note up to where rows may go whatever their age: no partial match refers to them, nor will one from the instant of ``limits`` on."""
        if self.limiting.enforce or not isinstance(partial_matches, RecentPartialMatches):
            return
        for source in range(len(self.plan.sources)):
            oldest = partial_matches.oldest(source)
            needed = layout.NEVER if oldest is None else self._coordinate(source, oldest) - 1
            self._freshness[layout.F_HOLD, source] = min(needed, int(limits[source]))

    def _coordinate(self, source: int, number: int) -> int:
        store = self.state.stores[source]
        slot = int(store[layout.TAIL_SLOT]) + number - int(store[layout.TAIL])
        slot -= int(store[layout.CAP]) if slot >= store[layout.CAP] else 0
        return int(
            self.state.words[
                int(store[layout.ROWS]) + slot * int(store[layout.WIDTH]) + layout.COORD
            ]
        )

    def _expire(self, limits: Integers, instant: int) -> None:
        if self.limiting.state_rows:
            assert self._tree is not None, "only trees are limited"
            self._hold(self._tree.partial_matches, limits)
            limits = np.minimum(
                limits, self._stale() if self.limiting.enforce else self._freshness[layout.F_HOLD]
            )
        super()._expire(limits, instant)

    def _stale(self) -> Integers:
        """What rows must be above not to be stale now."""
        limits = np.full(len(self.state.specs), layout.EVER, np.int64)
        for source, spec in enumerate(self.state.specs):
            size, present = (
                int(self._freshness[field, source]) for field in (layout.F_SIZE, layout.F_PRESENT)
            )
            if spec.kind == layout.TIME:
                limits[source] = max(self.now, present) - size
            elif spec.kind == layout.COUNT:
                limits[source] = max(int(self._seen[spec.stream]), present) - size - 1
        return limits

    def first_kept(self, source: int) -> int | None:
        """The position of the first row of a source that partial matches may refer to beyond its window; None if none does."""
        store = self.state.stores[source]
        if not self.limiting.state_rows or store[layout.TAIL] == store[layout.NEXT]:
            return None
        address = int(store[layout.ROWS] + store[layout.TAIL_SLOT] * store[layout.WIDTH])
        last = int(store[layout.LAST])
        return last - ((last - int(self.state.halves[2 * address + layout.POSITION])) & 0xFFFFFFFF)

    def counts(self) -> list[npt.NDArray[Any]]:
        """What decides which of the next rows may probe, besides the probe budgets."""
        return [self._half_joins.copy(), self._rates.copy(), self._cycles.copy()]

    def load_counts(self, counts: Sequence[npt.NDArray[Any]]) -> None:
        """Go on from the counts of another operator of this plan."""
        for mine, kept in zip((self._half_joins, self._rates, self._cycles), counts, strict=True):
            mine[:] = kept

    # -- what it counts ----------------------------------------------------------------------------

    def totals(self) -> CycleSample:
        """All arrivals, probes and matches of each half join so far, and the states as they were last counted."""
        arrivals = self._total(layout.H_ALL_ARRIVED, layout.H_ARRIVED)
        probes, matches = (
            self._total(layout.H_ALL_PROBED, layout.H_PROBED),
            self._total(layout.H_ALL_MATCHED, layout.H_MATCHED),
        )
        inside = tuple(self._half_joins[:, layout.H_INSIDE].tolist())
        return CycleSample(int(self._cycles[layout.P_CYCLE]), arrivals, probes, matches, inside)

    def _total(self, before: int, now: int) -> tuple[int, ...]:
        return tuple((self._half_joins[:, before] + self._half_joins[:, now]).tolist())

    def stale_results(self) -> int:
        """Results with a row that was older than its freshness when they were made."""
        return int(self._cycles[layout.P_STALE])

    def oldest_rows(self) -> tuple[int, ...]:
        """For each source how old the oldest row in any result was, in microseconds or in rows."""
        return tuple(self._freshness[layout.F_AGE].tolist())
