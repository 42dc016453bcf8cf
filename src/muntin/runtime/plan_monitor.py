"""Decide when a running join is measured and when it changes its plan ([Golab03, section 5.4]).

Once as many rows have come as the windows hold, rates are compared. Distinct values and
selectivities, which require a scan of the windows, are measured when a rate has changed, or else
after ever longer stretches: O(1) per row.
"""

from __future__ import annotations

import logging

from muntin.kernels import layout
from muntin.model.settings import Settings
from muntin.operators.join import JoinOperator
from muntin.plan.join import JoinPlan
from muntin.planner.draft import Knowledge
from muntin.runtime.replanner import Replanner

_log = logging.getLogger("muntin")

_LEAST_MEASURED = 2_000
"""Rows before a query's streams are first measured, for each source beyond two."""

_LONGEST_STRETCH = 64
"""Windows' worth of rows after which streams of steady rates are measured again at the latest."""

_TWO = 2


def stores_the_same(one: JoinPlan, other: JoinPlan) -> bool:
    """Return whether two plans differ in nothing but their join orders."""
    return one.sources == other.sources and one.tree == other.tree


class PlanMonitor:
    """Decides for one join; without a replanner there is nothing to choose."""

    def __init__(self, plan: JoinPlan, settings: Settings, known: Knowledge) -> None:
        self._known = known
        self.begin(plan, settings)
        # A search takes longer with each source; so do the rows that have to come for it.
        self._least = _LEAST_MEASURED * max(len(plan.query.sources) - _TWO, 1)
        self._until_compared = self._until_measured = self._stretch = self._least

    def begin(self, plan: JoinPlan, settings: Settings) -> None:
        """Begin again with the plan of another join."""
        self.replanner = Replanner.of(plan, settings, self._known)

    def better_plan(self, operator: JoinOperator, rows_in: int) -> JoinPlan | None:
        """Return a plan to change to, if it is time to look for one and it pays."""
        replanner, plan = self.replanner, operator.plan
        if replanner is None or rows_in < self._until_compared:
            return None
        held = max(int(operator.state.stores[:, layout.HELD].sum()), self._least)
        self._until_compared = rows_in + held
        if rows_in < self._until_measured and not replanner.has_changed(
            operator.windows.meter.rates(operator.now)
        ):
            return None
        measured = operator.measure()
        if measured is None:
            return None
        self._stretch = min(2 * self._stretch, _LONGEST_STRETCH * held)
        self._until_measured = rows_in + self._stretch
        known = len(replanner.overruled)
        better = replanner.consider(plan, measured, operator.now)
        for hint in replanner.overruled[known:]:
            _log.warning("query %s: %s", plan.query.name, hint)
        if better is None:
            return None
        if not _can_change(operator, better):
            replanner.switches.pop()
            return None
        self._stretch = self._least
        _log.info(
            "query %s continues with another plan: %s",
            plan.query.name,
            replanner.switches[-1].to_dict(),
        )
        return better

    def stats(self) -> dict[str, object]:
        """Return the searches, changes and overruled hints."""
        replanner = self.replanner
        return {
            "order_searches": replanner.searches if replanner else 0,
            "order_switches": [each.to_dict() for each in replanner.switches] if replanner else [],
            "hints_overruled": [str(hint) for hint in replanner.overruled] if replanner else [],
        }

    def measured(self, plan: JoinPlan) -> dict[str, dict[str, object]]:
        """Return the statistics at the last search, by alias."""
        if self.replanner is None or self.replanner.last is None:
            return {}
        pairs = zip(plan.query.sources, self.replanner.last.sources, strict=True)
        return {
            source.alias: {
                "rate": found.rate,
                "rows": found.rows,
                "distinct": [round(number) for number in found.distinct],
            }
            for source, found in pairs
        }


def _can_change(operator: JoinOperator, plan: JoinPlan) -> bool:
    """Return whether the state of a plan is there or can be filled.

    The logs do not show what partitioned windows have pushed out.
    """
    partitioned = any(spec.kind == layout.PARTITIONED for spec in operator.state.specs)
    return not partitioned or stores_the_same(plan, operator.plan)
