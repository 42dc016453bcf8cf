"""Join orders that follow the streams: when to look again, and when to switch (paper 3, section 5.4).

No I/O and no clock: measured statistics in, a better plan out, or None. A search is made when a statistic has left the
band around the value it had at the last search; a switch when the order in use would cost a good deal more than the best.
Results do not depend on the order, and what is stored is the same for all orders of a join on one attribute, so a switch
exchanges the orders and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from muntin.model.clock import format_instant
from muntin.model.settings import Settings
from muntin.model.statistics import StreamStatistics
from muntin.plan.join import Algorithm, JoinPlan
from muntin.planner.join_planner import order_cost, plan_join


@dataclass(frozen=True)
class Switch:
    """A change of the join order: when, from where to where, and the predicted costs."""

    at: int
    before: tuple[str, ...]
    after: tuple[str, ...]
    cost_before: float
    cost_after: float

    def to_dict(self) -> dict[str, object]:
        """For ``stats``."""
        return {
            "at": format_instant(self.at),
            "from": list(self.before),
            "to": list(self.after),
            "predicted_comparisons_a_second": [round(self.cost_before), round(self.cost_after)],
        }


@dataclass
class Replanner:
    """Decides for one query; ``searches`` and ``switches`` tell what it did."""

    settings: Settings
    order: tuple[int, ...] | None
    searches: int = 0
    switches: list[Switch] = field(default_factory=list)
    _last: list[StreamStatistics] | None = None

    @classmethod
    def of(cls, plan: JoinPlan, settings: Settings) -> Replanner | None:
        """A replanner, where the order matters and is ours to choose."""
        if settings.replan == "off" or settings.order or len(plan.sources) < 3 or plan.algorithm is not Algorithm.EAGER:
            return None
        return cls(settings, plan.prediction.order if plan.prediction else None)

    def consider(self, plan: JoinPlan, measured: Sequence[StreamStatistics], at: int) -> JoinPlan | None:
        """A plan to go on with, if the measured statistics (one per source) make it worth while."""
        if self._last is not None and not self._changed(self._last, measured):
            return None
        self._last = list(measured)
        self.searches += 1
        # Two aliases of one stream may have seen different shares of it: the larger window knows better.
        known: dict[str, StreamStatistics] = {}
        for source, statistics in zip(plan.query.sources, measured, strict=True):
            known.setdefault(source.relation, statistics)
        found = plan_join(plan.query, self.settings, known)
        if found.prediction is None or found.sources != plan.sources:
            return None
        current = self.order or tuple(range(len(plan.sources)))
        cost = order_cost(plan.query, self.settings, known, current)
        if cost < self.settings.factor("replan_gain") * found.prediction.cost:
            return None
        aliases = [source.alias for source in plan.query.sources]
        self.switches.append(
            Switch(at, tuple(aliases[s] for s in current), tuple(aliases[s] for s in found.prediction.order), cost, found.prediction.cost)
        )
        self.order = found.prediction.order
        return found

    def _changed(self, before: Sequence[StreamStatistics], after: Sequence[StreamStatistics]) -> bool:
        factor = self.settings.factor("replan_change")
        pairs = [(old.rate, new.rate) for old, new in zip(before, after, strict=True)]
        pairs += [(old.distinct, new.distinct) for old, new in zip(before, after, strict=True)]
        return any(max(old, new) >= factor * min(old, new) for old, new in pairs)
