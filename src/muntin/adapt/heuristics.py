"""Policies that treat half joins independently [Mukherji11, section 2 and appendix B, Table 4].

They ignore that the output of one join is the input of another. No half join gets more than arrives
at it; the remainder of its share is wasted, except within a join under BestHJP.
"""

from __future__ import annotations

from collections.abc import Sequence

from muntin.adapt.allocation import Allocation, by_half_joins
from muntin.adapt.model import PlanModel


def equal_hj(model: PlanModel, resources: float) -> Allocation:
    """Divide by EqualHJ: the same for all half joins."""
    count = model.shape.count
    return by_half_joins("equal_hj", model, _probes(model, [resources / count] * count))


def global_hjpr(model: PlanModel, resources: float) -> Allocation:
    """Divide by GlobalHJPR: in the ratio of the productivities of all half joins."""
    shares = _in_ratio(resources, model.productivity)
    return by_half_joins("global_hjpr", model, _probes(model, shares))


def ebest_hjp(model: PlanModel, resources: float) -> Allocation:
    """Divide by EBestHJP: the same for all joins, within each the most productive side first."""
    joins = len(model.shape.joins)
    return _local_best("ebest_hjp", model, [resources / joins] * joins)


def sbest_hjp(model: PlanModel, resources: float) -> Allocation:
    """Divide by SBestHJP: in the ratio of selectivities, then the most productive side first."""
    selectivities = [sum(model.selectivity(h) for h in pair) / 2 for pair in model.shape.joins]
    return _local_best("sbest_hjp", model, _in_ratio(resources, selectivities))


def best_hjp(model: PlanModel, resources: float) -> Allocation:
    """Divide by BestHJP: the most productive half join of all first, even if its output is lost."""
    shares = [0.0] * model.shape.count
    for h in sorted(range(model.shape.count), key=lambda h: -model.productivity[h]):
        cost = model.step_costs[h]
        shares[h] = min(resources / cost, model.saturation.arrivals[h])
        resources -= shares[h] * cost
    return by_half_joins("best_hjp", model, shares)


def _local_best(policy: str, model: PlanModel, of_joins: Sequence[float]) -> Allocation:
    """Apply BestHJP within each join, bottom up, so that the arrivals of each join are known."""
    shares = [0.0] * model.shape.count
    for pair, resources in zip(model.shape.joins, of_joins, strict=True):
        arrivals = model.flow(shares).arrivals
        left = resources
        for h in sorted(pair, key=lambda h: -model.productivity[h]):
            shares[h] = min(left / model.step_costs[h], arrivals[h])
            left -= shares[h] * model.step_costs[h]
    return by_half_joins(policy, model, shares)


def _probes(model: PlanModel, shares: Sequence[float]) -> list[float]:
    """Return the probes that each half join can pay from its share of the resources."""
    return [share / cost for share, cost in zip(shares, model.step_costs, strict=True)]


def _in_ratio(resources: float, weights: Sequence[float]) -> list[float]:
    """Return resources in the ratio of weights; equal parts if all are 0."""
    total = sum(weights)
    return (
        [resources * weight / total for weight in weights]
        if total > 0
        else [resources / len(weights)] * len(weights)
    )
