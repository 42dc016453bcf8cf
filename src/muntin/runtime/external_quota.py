"""Probe budgets set from outside, since a partition sees only its part of the streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from muntin.operators.join.probe_limiter import Budgets, CycleSample, ProbeLimiter
from muntin.plan.join import JoinPlan
from muntin.runtime.log_cursors import LogCursors
from muntin.runtime.overload_control import OverloadControl, same_half_joins


@dataclass(frozen=True)
class LimitState:
    """The state that decides which rows probe next: the budgets, and the counts of the cycle."""

    budgets: Budgets
    counts: Sequence[npt.NDArray[Any]]


class ExternalQuota(OverloadControl):
    """Counts the work of a limited join, and applies the budgets that are set from outside."""

    mode = "adapt"

    def __init__(self, plan: JoinPlan) -> None:
        assert plan.limiting is not None, "only limited joins have probe budgets"
        self.plan = plan
        self._joins = 2 * len(plan.query.sources) - 2
        self._worked = 0
        self.is_late = False
        """Whether the rows that come next have waited for too long."""

    def controls(self, plan: JoinPlan) -> bool:
        """Return whether it can continue with a plan."""
        return same_half_joins(self.plan, plan)

    def attach(self, limiter: ProbeLimiter) -> None:
        """Control this limiter from now on."""
        self._limiter = limiter

    def set_live(self, *, live: bool) -> None:
        """Do nothing: partitions never work in the background."""
        assert not live, "budgets are set from outside"

    @property
    def is_limited(self) -> bool:
        """True if some rows may not probe; a limit on work alone only contains a sudden load."""
        budgets = self._limiter.budgets
        return budgets.cap is not None or any(rate is not None for rate in budgets.rates)

    def limit(self, budgets: Budgets) -> None:
        """Limit probes from the next cycle on."""
        if budgets != self._limiter.budgets:
            self._limiter.set_budgets(budgets)

    def see(self, frontier: int, cursors: LogCursors) -> None:
        """Measure freshness from the frontier while there are limits, or rows come late.

        Otherwise results are complete.
        """
        if self.is_limited or self.is_late:
            self._limiter.see(frontier, cursors.counts())
        else:
            self._limiter.see_nothing()

    def take(self) -> dict[str, Any]:
        """Return the counts of the cycles that have ended since the last call."""
        samples = self._limiter.samples()
        totals = {
            what: np.sum([getattr(sample, what) for sample in samples], axis=0).tolist()
            if samples
            else [0] * self._joins
            for what in ("arrivals", "probes", "matches")
        }
        states = samples[-1].states if samples else (0,) * self._joins
        limiter = self._limiter
        worked, self._worked = self._work() - self._worked, self._work()
        others = {
            "work": worked,
            "stale": limiter.stale_results(),
            "oldest": list(limiter.oldest_rows()),
        }
        return {"cycles": _cycles(samples), **totals, "states": list(states), **others}

    def _work(self) -> int:
        """Return the probes and matches so far."""
        totals = self._limiter.totals()
        return sum(totals.probes) + sum(totals.matches)

    def state(self) -> LimitState:
        """Return the state that is needed to make the same choices again."""
        return LimitState(self._limiter.budgets, self._limiter.counts())

    def load(self, state: LimitState) -> None:
        """Continue from a state."""
        self._limiter.budgets = state.budgets
        self._limiter.load_counts(state.counts)
        self._worked = self._work()

    def stats(self) -> dict[str, object]:
        """Return the counts of a partition; the driver counts everything else."""
        return {"stale_results": self._limiter.stale_results()}


def _cycles(samples: Sequence[CycleSample]) -> int:
    """Return how many cycles of event time samples span, those between them included."""
    return samples[-1].cycle - samples[0].cycle + 1 if samples else 0
