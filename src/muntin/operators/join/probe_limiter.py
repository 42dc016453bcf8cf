"""Which rows of a tree join may probe ([Mukherji11]): probe budgets, what is counted, freshness.

Half joins are numbered by who probes: the sources, then the inner nodes of the tree. Event time is
divided into cycles; in each cycle a half join probes at most as often as its budget allows. Which
rows probe follows from the rows, from the plan's :class:`muntin.plan.probe_limits.Limiting`, and
from the :class:`Budgets` that were set and when. State: a few counts per half join.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from muntin.kernels import layout
from muntin.kernels.arrays import BudgetArrays
from muntin.kernels.budgeted_join import EMPTY_CYCLES, begin_cycle, finish_cycles
from muntin.model.settings import ProbeChoice
from muntin.model.window import TimeWindow
from muntin.operators.join.windows import JoinWindows
from muntin.plan.join import JoinPlan
from muntin.plan.probe_limits import Limiting
from muntin.state.partial_matches import PartialMatches

Integers = npt.NDArray[np.int64]

_SECOND = 1_000_000
_CHOICES = {
    ProbeChoice.OLDEST: layout.OLDEST_FIRST,
    ProbeChoice.NEWEST: layout.NEWEST_FIRST,
    ProbeChoice.RANDOM: layout.RANDOMLY,
    ProbeChoice.KEY: layout.OLDEST_FIRST,
}
_FREE = -1.0
_WINDOWS_PER_TURN = 256
"""The windows in which the slice of keys that may probe turns once."""
_CYCLES_PER_TURN = 4_096
"""The cycles in which it does where no window is one of time."""


@dataclass(frozen=True)
class Budgets:
    """Probes per second of event time: of each half join, and of all together; None: no limit.

    Below 1, ``part`` is the fraction of keys whose rows may probe. ``work`` limits the probes and
    their matches: when a cycle has had as much, nothing probes any more. So it holds however much a
    probe finds.
    """

    rates: tuple[float | None, ...]
    cap: float | None = None
    part: float = 1.0
    work: float | None = None

    @classmethod
    def unlimited(cls, sources: int) -> Budgets:
        """Return budgets under which every row probes, for a tree over ``sources`` sources."""
        return cls((None,) * (2 * sources - 2))


@dataclass(frozen=True)
class CycleSample:
    """Counts of one cycle per half join; ``states`` are the rows in the prober's state after it."""

    cycle: int
    arrivals: tuple[int, ...]
    probes: tuple[int, ...]
    matches: tuple[int, ...]
    states: tuple[int, ...]


class ProbeControl(Protocol):
    """Decides on the budgets of a join."""

    def attach(self, limiter: ProbeLimiter) -> None:
        """Control this limiter from now on."""


class ProbeLimiter:
    """The budgets and counts of one join.

    ``on_sample`` is called with each finished cycle before the next one begins. The budgets that it
    sets apply from then on, so results do not depend on how rows are cut into batches.
    """

    def __init__(
        self, windows: JoinWindows, partial_matches: PartialMatches, limiting: Limiting
    ) -> None:
        self.limiting = limiting
        self._windows = windows
        self._partial_matches = partial_matches
        sources = len(windows.plan.sources)
        joins = 2 * sources - 2
        self._half_joins = np.zeros((joins, layout.H_FIELDS), np.int64)
        self._cycles = np.zeros(layout.P_FIELDS, np.int64)
        self._cycles[layout.P_PERIOD] = limiting.period
        self._cycles[layout.P_CHOICE] = _CHOICES[limiting.choice]
        self._cycles[layout.P_SEED] = limiting.seed
        self._cycles[layout.P_CYCLE] = layout.EVER
        self._cycles[layout.P_MOST] = self._cycles[layout.P_MOST_WORK] = -1
        self._cycles[layout.P_KEEP] = limiting.state_rows or 0
        self._cycles[layout.P_ENFORCE] = int(limiting.enforce)
        self._cycles[layout.P_TURN] = _turn(windows.plan, limiting)
        key = windows.plan.common_key
        self._half_joins[: len(key), layout.H_KEY] = [layout.CODES + code for code in key]
        self.freshness = np.zeros((layout.F_FIELDS, sources), np.int64)
        self.freshness[layout.F_SIZE] = limiting.freshness
        self.freshness[layout.F_PRESENT] = layout.EVER
        self.arrays = BudgetArrays(self._half_joins, self._cycles, self.freshness)
        self._rates = np.full(joins + 4, _FREE)
        self._samples = np.zeros((1 + EMPTY_CYCLES, 1 + layout.SAMPLE_FIELDS * joins), np.int64)
        self._scratch = np.zeros(9 * sources + layout.SCRATCH + 3 * joins, np.int64)
        self._taken: list[CycleSample] = []
        self._reporting: int | None = None
        self.on_sample: Callable[[CycleSample], None] | None = None
        self.budgets = Budgets.unlimited(sources)

    # -- control -----------------------------------------------------------------------------------

    def set_budgets(self, budgets: Budgets) -> None:
        """Limit probes from the next cycle on; while a sample is reported, from its next one."""
        assert len(budgets.rates) == len(self._half_joins), "one rate for each half join"
        seconds = self.limiting.period / _SECOND
        self.budgets = budgets
        scaled = [
            _FREE if rate is None else rate * seconds
            for rate in (*budgets.rates, budgets.cap, budgets.work)
        ]
        self._rates[:-3], self._rates[-2:] = scaled[:-1], (budgets.part, scaled[-1])

    def see(self, time: int, counts: Sequence[int]) -> None:
        """Measure freshness from an instant and from rows per stream, where those are ahead."""
        for source, spec in enumerate(self._windows.state.specs):
            if spec.kind != layout.STORED:
                self.freshness[layout.F_PRESENT, source] = (
                    time if spec.kind == layout.TIME else counts[spec.stream]
                )

    def see_nothing(self) -> None:
        """Measure freshness from the rows that are worked on alone."""
        streams = 1 + max(spec.stream for spec in self._windows.state.specs)
        self.see(layout.EVER, [layout.EVER] * streams)

    @property
    def present(self) -> list[int] | None:
        """From where freshness is measured, by source; None: from the rows that are worked on."""
        present: list[int] = self.freshness[layout.F_PRESENT].tolist()
        return None if max(present) == layout.EVER else present

    # -- cycles ------------------------------------------------------------------------------------

    def begin_cycle(self, instant: int) -> None:
        """Report the cycles that are over at an instant, and begin the one it is in."""
        self.finish_cycles(instant)
        begin_cycle(self.arrays, self._rates, instant)

    def finish_cycles(self, now: int) -> None:
        """Report the samples of the cycles that are over."""
        count = finish_cycles(
            self._windows.state.arena, self._partial_matches.arrays, self.arrays, now,
            self._samples, self._scratch,
        )  # fmt: skip
        for row in self._samples[:count].tolist():
            arrivals, probes, matches, states = (
                tuple(row[1 + field :: layout.SAMPLE_FIELDS])
                for field in range(layout.SAMPLE_FIELDS)
            )
            sample = CycleSample(row[0], arrivals, probes, matches, states)
            self._reporting = sample.cycle
            if self.on_sample is None:
                self._taken.append(sample)
            else:
                self.on_sample(sample)
        self._reporting = None

    def samples(self) -> list[CycleSample]:
        """Return the cycles that finished since the last call, where ``on_sample`` is not set."""
        taken, self._taken = self._taken, []
        return taken

    def stale_limits(self) -> Integers:
        """Return, per store, the coordinate up to which rows are stale now."""
        windows = self._windows
        limits = np.full(len(windows.state.specs), layout.EVER, np.int64)
        for source, spec in enumerate(windows.state.specs):
            size = int(self.freshness[layout.F_SIZE, source])
            present = int(self.freshness[layout.F_PRESENT, source])
            if spec.kind == layout.TIME:
                limits[source] = max(windows.now, present) - size
            elif spec.kind == layout.COUNT:
                limits[source] = max(int(windows.seen[spec.stream]), present) - size - 1
        return limits

    # -- counts ------------------------------------------------------------------------------------

    def counts(self) -> list[npt.NDArray[Any]]:
        """Return copies of what decides, besides the budgets, which of the next rows probe."""
        return [self._half_joins.copy(), self._rates.copy(), self._cycles.copy()]

    def load_counts(self, counts: Sequence[npt.NDArray[Any]]) -> None:
        """Continue from the counts of another limiter of the same plan."""
        for mine, kept in zip((self._half_joins, self._rates, self._cycles), counts, strict=True):
            mine[:] = kept

    def totals(self) -> CycleSample:
        """Return the counts of all cycles so far, and the states as they were last counted."""
        arrivals = self._total(layout.H_ALL_ARRIVED, layout.H_ARRIVED)
        probes = self._total(layout.H_ALL_PROBED, layout.H_PROBED)
        matches = self._total(layout.H_ALL_MATCHED, layout.H_MATCHED)
        inside = tuple(self._half_joins[:, layout.H_INSIDE].tolist())
        return CycleSample(int(self._cycles[layout.P_CYCLE]), arrivals, probes, matches, inside)

    def _total(self, before: int, now: int) -> tuple[int, ...]:
        return tuple((self._half_joins[:, before] + self._half_joins[:, now]).tolist())

    def stale_results(self) -> int:
        """Return the number of results with a row older than its freshness."""
        return int(self._cycles[layout.P_STALE])

    def oldest_rows(self) -> tuple[int, ...]:
        """Return by source the age of the oldest row in any result, in microseconds or rows."""
        return tuple(self.freshness[layout.F_AGE].tolist())


def _turn(plan: JoinPlan, limiting: Limiting) -> int:
    """Return how far a slice of keys moves per cycle, on a circle of 2^32."""
    times = [
        source.window.micros
        for source in plan.query.sources
        if isinstance(source.window, TimeWindow)
    ]
    cycles = _WINDOWS_PER_TURN * max(times) / limiting.period if times else _CYCLES_PER_TURN
    return max(int(2**32 / cycles), 1)
