"""Plans that follow the streams: when to search again, and when to switch ([Golab03, section 5.4]).

No I/O and no clock: measured statistics in, a better plan out, or None. A search is made when a
statistic has left the band around its value at the last search; a switch when the plan in use is
predicted to cost a good deal more than the best. Results do not depend on the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt

from muntin.model.clock import format_instant
from muntin.model.settings import Algorithm, Settings
from muntin.model.statistics import JoinStatistics, StreamStatistics
from muntin.plan.join import JoinPlan
from muntin.planner.draft import Knowledge
from muntin.planner.join_planner import compare_work, plan_join
from muntin.planner.unit_costs import UnitCosts
from muntin.runtime.calibration import calibrated_costs

_FEW = 16.0
"""Differences in rows or values up to this count as no change."""
_SCATTER = 3.0
"""A share of equal pairs among n rows is off by chance by up to this over the root of n."""


@dataclass(frozen=True)
class Switch:
    """A change of plan: when, from what to what, and predicted seconds of work per second."""

    at: int
    before: tuple[str, ...]
    after: tuple[str, ...]
    work_before: float
    work_after: float

    def to_dict(self) -> dict[str, object]:
        """Return the change for ``stats``."""
        return {
            "at": format_instant(self.at),
            "from": list(self.before),
            "to": list(self.after),
            "predicted_work": [float(f"{self.work_before:.4g}"), float(f"{self.work_after:.4g}")],
        }


@dataclass(frozen=True)
class Overruled:
    """A declared statistic that the data contradict."""

    stream: str
    statistic: str
    declared: float
    measured: float

    def __str__(self) -> str:
        return (
            f"{self.statistic} of stream {self.stream}: declared {self.declared:,.4g}, "
            f"measured {self.measured:,.4g}, which counts"
        )


def plan_words(plan: JoinPlan) -> tuple[str, ...]:
    """Return a plan's path through its sources in words: the tree, or the order by origin."""
    aliases = [source.alias for source in plan.query.sources]
    if plan.tree is not None:
        return (plan.tree.text,)
    return tuple(
        f"{aliases[origin]}: "
        + ", ".join(aliases[step.source] for step in steps if step.source != origin)
        for origin, steps in enumerate(plan.orders)
    )


@dataclass
class Replanner:
    """Decides for one query; ``searches``, ``switches`` and ``overruled`` record what it did."""

    settings: Settings
    declared: Mapping[str, StreamStatistics] = field(default_factory=dict)
    costs: Callable[[], UnitCosts] = calibrated_costs
    searches: int = 0
    switches: list[Switch] = field(default_factory=list)
    overruled: list[Overruled] = field(default_factory=list)
    last: JoinStatistics | None = None

    @classmethod
    def of(cls, plan: JoinPlan, settings: Settings, known: Knowledge) -> Replanner | None:
        """Return a replanner if there is a choice and the user leaves it to the planner."""
        if (
            not settings.replan.enabled
            or settings.join.order
            or len(plan.sources) < 3
            or plan.algorithm is not Algorithm.EAGER
        ):
            return None
        if plan.limiting is not None:
            return None  # another tree would have other half joins, of which nothing is known
        return cls(settings, known.declared or {})

    def consider(self, plan: JoinPlan, measured: JoinStatistics, at: int) -> JoinPlan | None:
        """Return a plan to continue with, if the measured statistics make it worthwhile."""
        if self.last is None:
            self.overruled = list(self._contradictions(plan, measured))
        elif not self._differs(self.last, measured):
            return None
        self.last = measured
        self.searches += 1
        known = Knowledge(measured=measured, costs=self.costs())
        work, best = compare_work(plan, self.settings, known)
        if work < self.settings.replan.gain * best:
            return None
        found = plan_join(plan.query, self.settings, known)
        if plan_words(found) == plan_words(plan):
            return None
        self.switches.append(Switch(at, plan_words(plan), plan_words(found), work, best))
        return found

    def has_changed(self, rates: Sequence[float] | None) -> bool:
        """Return whether a rate differs from that at the last search."""
        if rates is None or self.last is None:
            return False
        return any(
            self._apart(old.rate, new)
            for old, new in zip(self.last.sources, rates, strict=True)
            if old.rate
        )

    def _differs(self, before: JoinStatistics, after: JoinStatistics) -> bool:
        """Return whether any statistic has changed; numbers of values of small windows vary."""
        for old, new in zip(before.sources, after.sources, strict=True):
            if self._apart(old.rate, new.rate) and (old.rate or new.rate):
                return True
            counts = [(old.rows, new.rows), *zip(old.distinct, new.distinct, strict=True)]
            if any(self._apart(one + _FEW, other + _FEW) for one, other in counts):
                return True
        known = dict(before.edges)
        for edge, share in after.edges:
            rows = min(after.sources[source].rows for source, _ in edge)
            if edge in known and self._apart(
                known[edge], share, 1 + _SCATTER / sqrt(max(rows, 1.0))
            ):
                return True
        return False

    def _apart(self, old: float, new: float, chance: float = 1.0) -> bool:
        """Return whether two numbers differ by the factor that counts, and by more than chance."""
        return max(old, new) >= chance * self.settings.replan.change * min(old, new)

    def _contradictions(self, plan: JoinPlan, measured: JoinStatistics) -> Iterator[Overruled]:
        """Yield declared statistics that are off by more than a change; filters lower rates."""
        for source, planned, found in zip(
            plan.query.sources, plan.sources, measured.sources, strict=True
        ):
            hint = self.declared.get(source.relation)
            if hint is None or source.stored:
                continue
            if self._apart(hint.rate, found.rate) and not (
                planned.filters and found.rate < hint.rate
            ):
                yield Overruled(source.relation, "rate", hint.rate, found.rate)
            most = max(found.distinct, default=hint.distinct)
            # A window that holds fewer rows than there are values cannot show them all.
            if self._apart(hint.distinct, most) and (most > hint.distinct or most < found.rows / 2):
                yield Overruled(source.relation, "distinct", hint.distinct, most)
