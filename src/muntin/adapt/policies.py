"""All policies by name: functions from a model and resources to an allocation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from muntin.adapt.allocation import Allocation, Infeasible, by_paths
from muntin.adapt.cover import cover_states, refresh_rates, take_back
from muntin.adapt.freshness import RefreshProblem
from muntin.adapt.grepp import grepp
from muntin.adapt.heuristics import best_hjp, ebest_hjp, equal_hj, global_hjpr, sbest_hjp
from muntin.adapt.knapsack import (
    PARTS,
    TableEntry,
    best_multiples,
    greedy_multiples,
    path_table,
)
from muntin.adapt.model import PlanModel
from muntin.adapt.steady_state import best_budgets, best_part, fill_and_probe

_WORTH = 1e-9
"""A division is better only if it produces this share more."""
_WORTH_OTHERS = 1.05
"""Budgets that no other policy has must be predicted to produce this many times as much."""

Policy = Callable[[PlanModel, float], Allocation]
Solver = Callable[[Sequence[TableEntry], float], Sequence[int]]


def jaqpot(model: PlanModel, resources: float) -> Allocation:
    """Divide by JAQPOT: first the needs of freshness, then GrePP with the rest (Algorithm 1).

    If freshness cannot be kept by refreshing, not even on average, all resources go to throughput
    and the allocation is marked ``infeasible``. Where states are only as full as they are fed,
    throughput is maximized over all half joins.
    """
    task = RefreshProblem.of(model)
    if task is None:
        return _most_results(model, resources)
    shares = task.least_cost()
    least = None if shares is None else float(task.costs @ shares)
    if (shares is None or least is None or least > resources * (1 + 1e-9)) and model.chance:
        return jaqpot(replace(model, chance=0.0), resources)
    if shares is None or least is None or least > resources * (1 + 1e-9):
        infeasible = Infeasible(task.least_factor(resources), least)
        return replace(_most_results(model, resources), infeasible=infeasible)
    exact = tuple(float(rate) for rate in np.array(model.rates) * shares)
    refresh = refresh_rates(model, exact)
    sent = cover_states(model, refresh)
    if sent is None or _cost(model, sent) > resources:
        sent = exact
    taken = tuple(rows * cost for rows, cost in zip(sent, model.path_costs, strict=True))
    found = grepp(model, resources - sum(taken), taken)
    return by_paths("jaqpot", model, _without_superfluous(model, refresh, taken, found), sum(taken))


def _most_results(model: PlanModel, resources: float) -> Allocation:
    """Maximize results: by GrePP where states are always full, else from all other divisions."""
    if model.filling is None:
        return replace(_grepp(model, resources), policy="jaqpot")
    others = [divide(model, resources) for name, divide in POLICIES.items() if name != "jaqpot"]
    best = max(others, key=lambda other: other.throughput)
    budgets = best_budgets(model, resources, [other.budgets for other in others])
    if model.throughput(budgets) <= _WORTH_OTHERS * best.throughput:
        budgets = best.budgets
    part, budgets = best_part(model, resources, budgets)
    made = model.flow_of_part(budgets, part).throughput
    return Allocation("jaqpot", budgets, made, maximal=True, part=part)


def _without_superfluous(
    model: PlanModel,
    refresh: Mapping[int, float],
    taken: tuple[float, ...],
    found: tuple[float, ...],
) -> tuple[float, ...]:
    """Move resources from freshness to GrePP where productive paths refresh the same states."""
    resources = sum(found)
    for _ in range(model.shape.leaves):
        rows = [share / cost for share, cost in zip(found, model.path_costs, strict=True)]
        least = take_back(
            model,
            refresh,
            rows,
            [share / cost for share, cost in zip(taken, model.path_costs, strict=True)],
        )
        left = tuple(
            max(number, 0.0) * cost for number, cost in zip(least, model.path_costs, strict=True)
        )
        better = grepp(model, resources - sum(left), left)
        if model.throughput(_allowed(model, better)) <= model.throughput(_allowed(model, found)) * (
            1 + _WORTH
        ):
            break
        found = better
    return found


def _allowed(model: PlanModel, resources: Sequence[float]) -> tuple[float, ...]:
    return model.budgets([model.division(path, share) for path, share in enumerate(resources)])


def _cost(model: PlanModel, sent: Sequence[float]) -> float:
    return sum(rows * cost for rows, cost in zip(sent, model.path_costs, strict=True))


def _grepp(model: PlanModel, resources: float) -> Allocation:
    """Divide by GrePP: the most productive path first, considering how full the states are."""
    if model.filling is None:
        return by_paths("grepp", model, grepp(model, resources))
    sent = fill_and_probe(model, resources)
    found = replace(model, productivity=model.sent_up(sent).productivity, fixed=True, purged=False)
    return by_paths(
        "grepp", found, [rows * cost for rows, cost in zip(sent, found.path_costs, strict=True)]
    )


def _discrete(policy: str, solve: Solver) -> Policy:
    """Return the policy that divides by the discrete model with a solver."""

    def divide(model: PlanModel, resources: float) -> Allocation:
        table = path_table(model, [rate / PARTS for rate in model.rates])
        multiples = solve(table, resources)
        shares = [count * entry.resources for count, entry in zip(multiples, table, strict=True)]
        return by_paths(policy, model, shares)

    return divide


POLICIES: Mapping[str, Policy] = {
    "jaqpot": jaqpot,
    "grepp": _grepp,
    "greedy": _discrete("greedy", greedy_multiples),
    "knapsack": _discrete("knapsack", best_multiples),
    "equal_hj": equal_hj,
    "global_hjpr": global_hjpr,
    "ebest_hjp": ebest_hjp,
    "sbest_hjp": sbest_hjp,
    "best_hjp": best_hjp,
}
"""The policies that the setting ``policy`` can name."""


def allocate(policy: str, model: PlanModel, resources: float) -> Allocation:
    """Divide resources, in probes per second, by the named policy.

    >>> from muntin.adapt.shape import ROOT, TreeShape
    >>> pair = TreeShape(2, parent=(ROOT, ROOT), partner=(1, 0))
    >>> model = PlanModel(pair, (500, 700), productivity=(0.5, 5.0), own=(5000, 500))
    >>> allocate("best_hjp", model, 300).budgets
    (0.0, 300.0)
    """
    return POLICIES[policy](model, float(resources))
