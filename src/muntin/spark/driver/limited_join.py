"""A limited join on Spark as the driver sees it, and the report on the limited joins of a query."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from muntin.adapt import Adapter, TreeShape
from muntin.model.settings import Settings
from muntin.plan.join import JoinPlan
from muntin.runtime.overload import ages_in_words, control_of, half_join_names

_RECENT = 4
"""Batches over which the matches of a probe are averaged."""


@dataclass
class LimitedJoin:
    """A join of the query ``owner``: its adapter, the limits sent last, and arrivals by partition.

    ``given`` are its resources, ``seconds`` is the length of a cycle, ``rates`` are the probe
    budgets.
    """

    owner: str
    plan: JoinPlan
    adapter: Adapter
    given: float | None
    seconds: float
    rates: tuple[float | None, ...]
    work: float | None = None
    """Probes and matches per second that its part of a batch may have; None: any."""
    sent: tuple[tuple[float | None, ...], float | None, float | None] = ((), None, None)
    spread: Sequence[Sequence[float]] = ()
    found: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=_RECENT))
    """The probes, and the probes and matches, of the last batches."""
    complete: tuple[float, float] | None = None
    """The rows and the work per second when everything probed last."""
    fits: bool = True
    """Whether everything is predicted to fit, so that only the limit on work remains."""
    unprobed: int = 0
    """Rows and partial matches that could not probe, so far."""
    stale: int = 0
    oldest: Sequence[int] = ()

    @classmethod
    def of(cls, owner: str, plan: JoinPlan, settings: Settings) -> LimitedJoin:
        """Return a planned join without limits."""
        assert plan.tree is not None, "only trees are limited"
        assert plan.limiting is not None, "the plan has limits"
        shape = TreeShape.of(plan.tree)
        # Each partition has other keys, so a slice of them would not be the same part everywhere.
        adapter = Adapter(shape, replace(control_of(plan, settings), by_key=False))
        period, given = plan.limiting.period / 1e6, settings.overload.resources
        return cls(owner, plan, adapter, given, period, (None,) * shape.count)

    def report(self) -> dict[str, Any]:
        """Return its measurements, limits and decisions."""
        tree = self.plan.tree
        assert tree is not None, "only trees are limited"
        names = half_join_names(self.plan, tree) if self.adapter.overloaded else ()
        return {
            "mode": "adapt",
            **self.adapter.report(),
            "budgets": dict(zip(names, self.rates, strict=bool(names))),
            "work_limit": self.work,
            "unprobed": self.unprobed,
            "stale_results": self.stale,
            "oldest_rows": ages_in_words(self.plan, self.oldest),
        }


def report_of(joins: Mapping[str, LimitedJoin]) -> dict[str, Any]:
    """Return the report on a query: that of its limited join, or of all with what they add up to.

    The share of results is the least of any join.
    """
    reports = {name: join.report() for name, join in joins.items()}
    if len(reports) == 1:
        return next(iter(reports.values()))
    found = list(reports.values())
    works = [one["work_limit"] for one in found]
    return {
        "mode": "adapt",
        "overloaded": any(one["overloaded"] for one in found),
        "share_of_results": min(one["share_of_results"] for one in found),
        "work_limit": None if None in works else sum(works),
        "unprobed": sum(one["unprobed"] for one in found),
        "stale_results": sum(one["stale_results"] for one in found),
        "joins": reports,
    }
