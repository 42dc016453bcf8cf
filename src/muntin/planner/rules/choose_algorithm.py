"""Rule: choose the algorithm of [Golab03] by predicted cost, unless the settings name one.

Sound because all algorithms find the same results, only later. A query that emits changes needs
every row in its turn, so it is always EAGER. LAZY is an alternative where an interval is given: it
looks up as many rows as EAGER, also looks at those that arrived after the new row, on average for
half an interval, and brings all results into their order. NAIVE and GENERAL LAZY differ from these
two in the order of sources only, which is chosen for each origin in any case.
"""

from __future__ import annotations

from dataclasses import replace

from muntin.model.clock import SECOND
from muntin.model.settings import Algorithm, Expiry
from muntin.plan.query import Emit
from muntin.planner.draft import JoinDraft
from muntin.planner.join_graph import JoinGraph
from muntin.planner.local_orders import JoinCost, best_orders, step_time
from muntin.planner.overload_plan import is_adapting
from muntin.planner.unit_costs import UnitCosts

_NANO = 1e-9
_LAZY_EXPIRES = {None, Expiry.OWN, Expiry.LAZY}


def choose_algorithm(draft: JoinDraft) -> JoinDraft:
    """Choose the algorithm."""
    given, interval = draft.settings.join.algorithm, draft.reevaluation
    if draft.query.emit is Emit.CHANGES:
        return replace(draft, algorithm=Algorithm.EAGER)
    if given is not None:
        return replace(draft, algorithm=given)
    if (
        draft.graph is None
        or interval is None
        or len(draft.query.sources) < 2
        or is_adapting(draft.settings)
        or draft.settings.expiry.policy not in _LAZY_EXPIRES
    ):
        return replace(draft, algorithm=Algorithm.EAGER)
    costs = draft.known.costs
    eager = best_orders(draft.graph, costs)
    times = {
        Algorithm.EAGER: eager.time,
        Algorithm.LAZY: lazy_time(draft.graph, eager, interval / SECOND, costs),
    }
    chosen = min(times, key=lambda each: (times[each], list(times).index(each)))
    figures = ", ".join(f"{each} {time * _NANO:.3g}" for each, time in times.items())
    reason = f"algorithm {chosen}; seconds of work per second predicted: {figures}"
    return replace(draft, algorithm=chosen, algorithm_reason=reason)


def lazy_time(graph: JoinGraph, eager: JoinCost, interval: float, costs: UnitCosts) -> float:
    """Return the nanoseconds per second of LAZY, by the orders of EAGER."""
    time = 0.0
    for origin, order in enumerate(eager.orders):
        partial, row = 1.0, 0.0
        for place, source in enumerate(order[1:], 1):
            step = graph.step(frozenset(order[:place]), source)
            newer = step.looked * graph.rate(source) * interval / 2 / graph.rows(source)
            look = costs.chained if step.indexed else costs.scanned
            row += partial * (step_time(step, costs) + newer * look)
            partial *= step.matched
        time += graph.rate(origin) * (row + partial * costs.sort)
    return time
