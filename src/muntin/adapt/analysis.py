"""The analysis: divide the resources again [Mukherji11, section 4.4].

A pure function, which the engine may run in another thread: from statistics, resources and the
current probe budgets to a recommendation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Literal

from muntin.adapt.allocation import Allocation
from muntin.adapt.freshness import is_fresh
from muntin.adapt.model import Flow
from muntin.adapt.monitor import Statistics, leaves_below
from muntin.adapt.policies import allocate
from muntin.adapt.steady_state import nearby_budgets

UNLIMITED = -1.0
_HEADROOM = 2.0
"""Budgets of half joins where all rows may probe are this multiple of the average arrivals.

So random bursts are not cut off; the sum of all probes is capped.
"""
_OVERSPENT = 1.03
"""Probe budgets that are predicted to use more than this share of the resources are replaced."""
_LASTING = 16.0
"""New probe budgets are assumed to last for this many lifetimes of intermediate results."""
_EXPLORING = 0.02
"""Share of the resources for paths through joins without statistics."""


@dataclass(frozen=True)
class AnalysisRequest:
    """The input of an analysis: statistics, resources, and the current budgets (None: no limits).

    ``boost`` multiplies the resources to allocate, because less is used than predicted; when it has
    changed, the outcome is ``forced``. The current budgets are for the rows of a ``part`` of the
    keys. Before windows are ``filled``, states hold little that a change could lose.
    """

    cycle: int
    goal: Literal["limit", "release"]
    reason: str
    policy: str
    statistics: Statistics
    resources: float
    tolerance: float
    gain: float
    boost: float
    forced: bool
    current: tuple[float, ...] | None
    part: float = 1.0
    filled: bool = True


@dataclass(frozen=True)
class Recommendation:
    """The outcome of an analysis.

    ``budgets`` is UNLIMITED where all rows may probe; ``predicted`` and ``predicted_now`` are the
    results per second under the recommended and the current budgets.
    """

    request: AnalysisRequest
    budgets: tuple[float, ...]
    allocation: Allocation | None
    predicted: float
    predicted_now: float
    keeps_now: bool


def analyze(request: AnalysisRequest) -> Recommendation:
    """Divide the resources again; pure, may run in any thread."""
    model = request.statistics.model
    if request.goal == "release":
        full = model.saturation.throughput
        return Recommendation(
            request, (UNLIMITED,) * model.shape.count, None, full, full, keeps_now=False
        )
    if model.saturation.throughput <= 0:
        return _blind(request)
    exploring = _explored(request)
    left = max(
        request.resources
        - sum(model.path_limit(leaf) * share for leaf, share in exploring.items()),
        0.0,
    )
    allocation = _divided(request, left)
    if request.current is None:
        given = _with_headroom(request, allocation, exploring)
        predicted = allocation.throughput / request.boost
        return Recommendation(request, given, allocation, predicted, 0.0, keeps_now=False)
    current = [inf if allowed < 0 else allowed for allowed in request.current]
    flow = model.flow_of_part(current, request.part)
    if request.filled and allocation.policy == "jaqpot" and model.filling is not None:
        allocation = _unless_near(request, allocation, flow, left)
    within = flow.resources <= request.resources * _OVERSPENT * request.boost
    makes = flow.throughput * min(request.resources / max(flow.resources, 1e-9), 1.0)
    fresh = is_fresh(model, flow.probes, request.tolerance) or not is_fresh(
        model, allocation.budgets, request.tolerance
    )
    # Policies by half joins do not maximize the prediction: keeping the best budgets seen so far
    # would make them another policy.
    return Recommendation(
        request,
        _with_headroom(request, allocation, exploring),
        allocation,
        allocation.throughput / request.boost,
        makes,
        keeps_now=allocation.maximal and within and fresh and not request.forced,
    )


def _unless_near(
    request: AnalysisRequest, allocation: Allocation, now: Flow, resources: float
) -> Allocation:
    """Return the best budgets near the current ones unless others are worth the change.

    States that others feed are empty at first. Others are assumed to last for a few lifetimes of
    intermediate results; in the first they find what is in the states now.
    """
    model = request.statistics.model
    part = request.part
    budgets = nearby_budgets(model, request.boost * resources, now.probes, part)
    made = model.flow_of_part(budgets, part).throughput
    near = replace(allocation, budgets=budgets, throughput=made, part=part)
    held = replace(model, productivity=now.productivity, fixed=True, purged=False)
    first = held.flow_of_part(allocation.budgets, allocation.part).throughput
    first = min(first, allocation.throughput)
    average = allocation.throughput - (allocation.throughput - first) / _LASTING
    return allocation if average > (1 + request.gain) * near.throughput else near


def _with_headroom(
    request: AnalysisRequest, allocation: Allocation, exploring: Mapping[int, float]
) -> tuple[float, ...]:
    """Add what measures unknown joins; where all rows may probe, allow for random bursts."""
    model = request.statistics.model
    budgets = list(allocation.budgets)
    for leaf, share in exploring.items():
        for h, more in zip(
            model.shape.paths[leaf],
            model.division(leaf, model.path_limit(leaf) * share),
            strict=True,
        ):
            budgets[h] += max(more, model.rates[leaf] * share)
    arrivals = model.flow_of_part(budgets, allocation.part).arrivals
    return tuple(
        _HEADROOM * allowed if allowed >= 0.999 * arrives else allowed
        for allowed, arrives in zip(budgets, arrivals, strict=True)
    )


def _divided(request: AnalysisRequest, resources: float) -> Allocation:
    """Return the allocation of the policy; a boost applies to throughput, not to freshness."""
    model = request.statistics.model
    found = allocate(request.policy, model, resources)
    if request.boost <= 1:
        return found
    if found.infeasible is None:
        return allocate(request.policy, model, request.boost * resources)
    return replace(
        allocate("grepp", model, request.boost * resources),
        policy=request.policy,
        infeasible=found.infeasible,
    )


def _blind(request: AnalysisRequest) -> Recommendation:
    """Return the same share of all streams: before the first result, no path is productive."""
    model = request.statistics.model
    share = min(request.boost * request.resources / max(model.saturation.resources, 1e-9), 1.0)
    given = tuple(share * rate for rate in model.rates) + (UNLIMITED,) * len(
        model.shape.susceptible
    )
    return Recommendation(request, given, None, 0.0, 0.0, keeps_now=request.current == given)


def _explored(request: AnalysisRequest) -> dict[int, float]:
    """Return the share of rows to send up from each leaf below a join that is not measured."""
    model = request.statistics.model
    leaves = {
        leaf for join in request.statistics.unmeasured for leaf in leaves_below(model.shape, join)
    }
    limits = {leaf: model.path_limit(leaf) for leaf in leaves if model.path_limit(leaf) > 0}
    return {
        leaf: min(_EXPLORING * request.resources / len(limits) / limit, 1.0)
        for leaf, limit in limits.items()
    }
