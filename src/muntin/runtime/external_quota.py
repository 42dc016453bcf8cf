"""A limited join whose probe budgets come from outside: in a partition, which sees its own share of the streams only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from muntin.kernels import layout
from muntin.operators.budgeted_tree import Budgets, CycleSample, LimitedTree
from muntin.plan.join import JoinPlan


@dataclass(frozen=True)
class LimitState:
    """What decides which rows of the next ones may probe: probe budgets, and the counts of the cycle that is under way."""

    budgets: Budgets
    counts: Sequence[npt.NDArray[Any]]


class Governed:
    """Counts what a limited join does, and lets it do what it is told."""

    def __init__(self, plan: JoinPlan) -> None:
        assert plan.limiting is not None, "the plan says how it is limited"
        self.plan = plan
        self._joins = 2 * len(plan.query.sources) - 2

    def attach(self, operator: LimitedTree) -> None:
        """Govern this operator."""
        self.operator = operator

    def be_live(self, *, live: bool) -> None:
        """Partitions never run by themselves."""
        assert not live, "somebody else governs"

    @contextmanager
    def working(self) -> Iterator[None]:
        """Time is measured by who governs."""
        yield

    @property
    def is_limited(self) -> bool:
        """Whether not everything may probe."""
        budgets = self.operator.budgets
        return budgets.cap is not None or any(rate is not None for rate in budgets.rates)

    def limit(self, rates: Sequence[float | None], cap: float | None) -> None:
        """Let so many probe from the next cycle on."""
        self.operator.set_budgets(Budgets(tuple(rates), cap))

    def see(self, now: int, counts: Sequence[int]) -> None:
        """Freshness counts from ``now`` while there are limits; without them results are complete, however late a batch is."""
        if self.is_limited:
            self.operator.see(now, counts)
        else:
            self.operator.see(layout.EVER, [layout.EVER] * len(counts))

    def take(self) -> dict[str, Any]:
        """What was counted in the cycles that have ended since this was last asked."""
        samples = self.operator.samples()
        totals = {
            what: np.sum([getattr(sample, what) for sample in samples], axis=0).tolist()
            if samples
            else [0] * self._joins
            for what in ("arrivals", "probes", "matches")
        }
        states = samples[-1].states if samples else (0,) * self._joins
        operator = self.operator
        aged = {"stale": operator.stale_results(), "oldest": list(operator.oldest_rows())}
        return {"cycles": _cycles(samples), **totals, "states": list(states), **aged}

    def state(self) -> LimitState:
        """What has to be kept to make the same choices again."""
        return LimitState(self.operator.budgets, self.operator.counts())

    def load(self, state: LimitState) -> None:
        """Go on from there."""
        self.operator.budgets = state.budgets
        self.operator.load_counts(state.counts)

    def stats(self) -> dict[str, object]:
        """Who governs tells more."""
        return {"stale_results": self.operator.stale_results()}


def _cycles(samples: Sequence[CycleSample]) -> int:
    """How many cycles of event time samples stand for, those between them included."""
    return samples[-1].cycle - samples[0].cycle + 1 if samples else 0
