"""The computed part of ``python -m benchmarks overload``: all policies on random plans.

Plans are drawn with the parameters of [Mukherji11, Table 3].

Two shapes of four streams, the paper's Figures 5.b and 5.c. Resources are shares of what saturation
needs; a policy's throughput is its share of saturation throughput, averaged over plans, as in
Figure 7. Beside it the optimum of linear programming.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean

import numpy as np

from benchmarks.optimum import optimum
from benchmarks.plots import Plot
from benchmarks.report import Claim, Figure
from muntin.adapt.cover import refresh_rates
from muntin.adapt.freshness import RefreshProblem
from muntin.adapt.model import PlanModel
from muntin.adapt.policies import POLICIES, allocate
from muntin.adapt.shape import TreeShape
from muntin.testing.plan_models import model_of_selectivities, tree_shape, with_freshness

SHAPES: Mapping[str, TreeShape] = {
    "linear": tree_shape((((0, 1), 2), 3)),
    "bushy": tree_shape(((0, 1), (2, 3))),
}
HEURISTICS = ("equal_hj", "global_hjpr", "ebest_hjp", "sbest_hjp")
"""The four that the paper compares with."""
LEVELS = tuple(level / 10 for level in range(1, 11))
FACTORS = (1.5, 3.0, 5.0)
INNER_STATES = (0.01, 0.1, 1.0, 10.0, 100.0)
"""How much larger or smaller states of intermediate results are than Table 3's."""
_FRESH = "optimum that keeps freshness"
_FREE = "optimum"
_BOUNDS = {"linear": 2.5, "bushy": 2.0}


@dataclass(frozen=True)
class Ranges:
    """From where parameters are drawn, uniformly."""

    name: str
    selectivities: tuple[float, float]
    rates: tuple[float, float] = (300.0, 1200.0)
    states: tuple[float, float] = (200.0, 5000.0)
    inner: float = 1.0
    """The sizes of states of intermediate results over those of windows."""

    def draw(self, shape: TreeShape, random: np.random.Generator) -> PlanModel:
        """Return a plan; states of intermediate results have independent sizes, as in the paper."""
        rates = random.uniform(*self.rates, shape.leaves).tolist()
        states = random.uniform(*self.states, shape.count)
        states[shape.leaves :] *= self.inner
        return model_of_selectivities(
            shape,
            rates,
            states.tolist(),
            random.uniform(*self.selectivities, len(shape.joins)).tolist(),
        )


TABLE_3 = Ranges("Table 3", (0.01, 0.1))
FEW_MATCHES = Ranges("a tenth of Table 3's selectivities", (0.001, 0.01))


@dataclass(frozen=True)
class Curves:
    """Mean share of saturation throughput per policy and level, for one shape and set of ranges."""

    shape: str
    ranges: str
    shares: Mapping[str, Sequence[float]]
    singly: float
    """JAQPOT over the best heuristic of each plan and level, on average."""

    def over_best(self, *more: str) -> float:
        """Return JAQPOT over the best heuristic at each level, and the mean below saturation.

        The heuristics are those of the paper and ``more`` policies.
        """
        limited = range(len(LEVELS) - 1)
        return mean(
            self.shares["jaqpot"][level]
            / max(self.shares[name][level] for name in (*HEURISTICS, *more))
            for level in limited
        )

    def of_optimum(self, best: str) -> float:
        """JAQPOT's least share of an optimum over the levels."""
        return min(
            found / most
            for found, most in zip(self.shares["jaqpot"], self.shares[best], strict=True)
        )


def measure_curves(ranges: Ranges, shape: str, plans: int, factor: float) -> Curves:
    """Return all policies and the optimum at all levels; freshness is ``factor`` windows."""
    random = np.random.default_rng(11)
    found: dict[str, list[list[float]]] = {
        name: [[] for _ in LEVELS] for name in (*POLICIES, _FRESH, _FREE)
    }
    for _ in range(plans):
        model = with_freshness(ranges.draw(SHAPES[shape], random), factor=factor)
        refresh = needed_refresh(model)
        for place, level in enumerate(LEVELS):
            resources = level * model.saturation.resources
            made = {policy: allocate(policy, model, resources) for policy in POLICIES}
            for policy, allocation in made.items():
                found[policy][place].append(allocation.throughput / model.saturation.throughput)
            best = optimum(model, resources)
            fresh = best if made["jaqpot"].infeasible else optimum(model, resources, refresh)
            found[_FRESH][place].append(fresh / model.saturation.throughput)
            found[_FREE][place].append(best / model.saturation.throughput)
    shares = {name: [mean(numbers) for numbers in levels] for name, levels in found.items()}
    limited = [
        [found[name][level] for name in ("jaqpot", *HEURISTICS)] for level in range(len(LEVELS) - 1)
    ]
    singly = mean(
        mean(mine / max(others) for mine, *others in zip(*at_level, strict=True))
        for at_level in limited
    )
    return Curves(shape, ranges.name, shares, singly)


def needed_refresh(model: PlanModel) -> dict[int, float]:
    """Return the refresh rates that freshness asks for; none when it cannot be kept."""
    task = RefreshProblem.of(model)
    shares = None if task is None else task.least_cost()
    return {} if shares is None else refresh_rates(model, tuple(shares * model.rates))


def measure_freshness(ranges: Ranges, shape: str, plans: int) -> list[dict[str, Figure]]:
    """Return the share of resources spent on freshness, and how often it cannot be kept.

    Resources range from 10 % to 90 % of saturation.
    """
    rows: list[dict[str, Figure]] = []
    for factor in FACTORS:
        random = np.random.default_rng(12)
        shares, infeasible, tried = [], 0, 0
        for _ in range(plans):
            model = with_freshness(ranges.draw(SHAPES[shape], random), factor=factor)
            for level in LEVELS[:-1]:
                tried += 1
                resources = level * model.saturation.resources
                found = allocate("jaqpot", model, resources)
                if found.infeasible is None:
                    shares.append(found.for_freshness / resources)
                else:
                    infeasible += 1
        rows.append(
            {
                "part": "resources for freshness",
                "plan": shape,
                "parameters": ranges.name,
                "freshness": f"{factor:g} windows",
                "share of resources": round(mean(shares), 4) if shares else "none feasible",
                "infeasible": round(infeasible / tried, 4),
            }
        )
    return rows


def run_models(plans: int) -> tuple[list[dict[str, Figure]], list[Claim], list[Plot]]:
    """Return rows, claims and plots of the computed part."""
    rows: list[dict[str, Figure]] = []
    claims: list[Claim] = []
    plots: list[Plot] = []
    for ranges in (TABLE_3, FEW_MATCHES):
        for shape in SHAPES:
            curves = measure_curves(ranges, shape, plans, FACTORS[0])
            rows += _rows(curves)
            if ranges is TABLE_3:
                claims += _claims(curves)
                plots.append(_plot(curves))
    for ranges in (TABLE_3, FEW_MATCHES):
        for shape in SHAPES:
            rows += measure_freshness(ranges, shape, plans)
    return rows, claims, plots


def measure_leaders(plans: int) -> list[dict[str, Figure]]:
    """Return which heuristic makes most, by the sizes of states of intermediate results.

    The paper does not give these sizes. Rows have the mean share of saturation throughput at 20 %
    to 80 % of the resources, and at how many of the four levels GlobalHJPR makes most.
    """
    found: list[dict[str, Figure]] = []
    levels = (0.2, 0.4, 0.6, 0.8)
    for inner in INNER_STATES:
        for shape in SHAPES:
            random = np.random.default_rng(14)
            models = [
                replace(TABLE_3, inner=inner).draw(SHAPES[shape], random) for _ in range(plans)
            ]
            shares = {name: [_mean_share(name, models, at) for at in levels] for name in HEURISTICS}
            leaders = [max(HEURISTICS, key=lambda name: shares[name][at]) for at in range(4)]
            found.append(
                {
                    "part": "leading heuristic",
                    "plan": shape,
                    "parameters": f"inner states {inner:g} times Table 3's",
                    "global_hjpr leads at": leaders.count("global_hjpr"),
                    "leaders": ", ".join(dict.fromkeys(leaders)),
                    **{name: round(mean(shares[name]), 4) for name in HEURISTICS},
                }
            )
    return found


def _mean_share(policy: str, models: Sequence[PlanModel], level: float) -> float:
    return mean(
        allocate(policy, model, level * model.saturation.resources).throughput
        / model.saturation.throughput
        for model in models
    )


def _rows(curves: Curves) -> list[dict[str, Figure]]:
    at_60 = LEVELS.index(0.6)
    rows: list[dict[str, Figure]] = []
    for name, shares in curves.shares.items():
        row: dict[str, Figure] = {
            "part": "models",
            "plan": curves.shape,
            "parameters": curves.ranges,
            "policy": name,
        }
        row |= {
            f"{level:.0%}": round(share, 4) for level, share in zip(LEVELS, shares, strict=True)
        }
        rows.append(row)
    rows.append(
        {
            "part": "models",
            "plan": curves.shape,
            "parameters": curves.ranges,
            "policy": "jaqpot over best heuristic, mean",
            "ratio": round(curves.over_best(), 3),
            "ratio plan by plan": round(curves.singly, 3),
            "ratio with best_hjp": round(curves.over_best("best_hjp"), 3),
            "of optimum": round(curves.of_optimum(_FREE), 4),
            "of optimum that keeps freshness": round(curves.of_optimum(_FRESH), 4),
            "with 60 % of resources": round(curves.shares["jaqpot"][at_60], 4),
            "optimum with 60 %": round(curves.shares[_FREE][at_60], 4),
        }
    )
    return rows


def _claims(curves: Curves) -> list[Claim]:
    plan = f"{curves.shape} plan, {curves.ranges}: throughput of jaqpot over the"
    ratio, least = round(curves.over_best(), 3), round(curves.of_optimum(_FRESH), 4)
    return [
        Claim(
            f"{plan} best heuristic, 10 % to 90 % of saturation",
            ratio,
            _BOUNDS[curves.shape],
            "at least",
        ),
        Claim(
            f"{plan} optimum that keeps the same freshness, least of all levels",
            least,
            0.95,
            "at least",
        ),
    ]


def _plot(curves: Curves) -> Plot:
    series = {
        name: [(100 * level, 100 * share) for level, share in zip(LEVELS, shares, strict=True)]
        for name, shares in curves.shares.items()
    }
    return Plot(
        f"overload-{curves.shape}",
        f"Throughput of a {curves.shape} plan, {curves.ranges}",
        "resources, % of saturation",
        "throughput, % of saturation",
        series,
    )
