"""The policies that look at half joins one by one (paper 5, section 2 and appendix B, Table 4).

None of them sees that what one join produces another has to consume. No half join gets more than arrives at it; what is
left over of its share is wasted, except within a join that is served by BestHJP.
"""

from __future__ import annotations

from collections.abc import Sequence

from muntin.adapt.allocation import Allocation, by_half_way_joins
from muntin.adapt.model import PlanModel


def equal_hj(model: PlanModel, resources: float) -> Allocation:
    """EqualHJ: the same for all half joins."""
    count = model.shape.count
    return by_half_way_joins("equal_hj", model, [resources / count] * count)


def global_hjpr(model: PlanModel, resources: float) -> Allocation:
    """GlobalHJPR: in the ratio of the productivities of all half joins."""
    return by_half_way_joins("global_hjpr", model, _in_ratio(resources, model.productivity))


def ebest_hjp(model: PlanModel, resources: float) -> Allocation:
    """EBestHJP: the same for all joins, and within each to the most productive half join first."""
    joins = len(model.shape.joins)
    return _local_best("ebest_hjp", model, [resources / joins] * joins)


def sbest_hjp(model: PlanModel, resources: float) -> Allocation:
    """SBestHJP: in the ratio of the selectivities of the joins, and within each to the most productive half join first."""
    selectivities = [sum(model.selectivity(h) for h in pair) / 2 for pair in model.shape.joins]
    return _local_best("sbest_hjp", model, _in_ratio(resources, selectivities))


def best_hjp(model: PlanModel, resources: float) -> Allocation:
    """BestHJP: to the most productive half join of all first, however little of what it makes is used."""
    shares = [0.0] * model.shape.count
    for h in sorted(range(model.shape.count), key=lambda h: -model.productivity[h]):
        shares[h] = min(resources, model.saturation.arrivals[h])
        resources -= shares[h]
    return by_half_way_joins("best_hjp", model, shares)


def _local_best(policy: str, model: PlanModel, of_joins: Sequence[float]) -> Allocation:
    """BestHJP within each join, from below, so that what arrives at a join is known when its turn comes."""
    shares = [0.0] * model.shape.count
    for pair, resources in zip(model.shape.joins, of_joins, strict=True):
        arrivals = model.flow(shares).arrivals
        left = resources
        for h in sorted(pair, key=lambda h: -model.productivity[h]):
            shares[h] = min(left, arrivals[h])
            left -= shares[h]
    return by_half_way_joins(policy, model, shares)


def _in_ratio(resources: float, weights: Sequence[float]) -> list[float]:
    """Resources in the ratio of weights; equal parts where there are none."""
    total = sum(weights)
    return (
        [resources * weight / total for weight in weights]
        if total > 0
        else [resources / len(weights)] * len(weights)
    )
