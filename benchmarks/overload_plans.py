"""The part of ``python -m benchmarks overload`` that runs random plans.

Selectivities are those of [Mukherji11, Table 3], with a tenth of its rates and states.

So a probe finds a tenth of what it finds with Table 3's own parameters, 0.2 to 50 rows, which is
the second set of the models; some plans still make a million results per second without limits.
States of intermediate results are drawn for each plan; the two of a plan are of the same size, as
``state_rows`` is. What is computed on the same plans stands beside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from statistics import mean

import numpy as np

from benchmarks.overload_model import HEURISTICS, SHAPES
from benchmarks.overload_run import Run, Setup, run
from benchmarks.overload_workload import TREES, Chain
from benchmarks.plots import Plot
from benchmarks.report import Claim, Figure
from muntin.adapt.model import PlanModel
from muntin.adapt.policies import allocate
from muntin.testing.plan_models import model_of_selectivities, with_freshness

_RATES, _STATES, _SELECTIVITIES = (30.0, 120.0), (20, 500), (0.01, 0.1)
_POLICIES = ("jaqpot", *HEURISTICS)
_BOUND = 2.0
"""Of the ratio to the best heuristic at such productivities; the models have 2.5 and 2.3."""
_WINDOWS = 3
"""Windows of its slowest stream that a plan runs; the first of them is not counted."""


@dataclass(frozen=True)
class Drawn:
    """A random plan: its streams, the intermediate results per state, and intended statistics."""

    load: Chain
    state_rows: int
    model: PlanModel
    begin: int

    @classmethod
    def at_random(cls, shape: str, random: np.random.Generator, seed: int) -> Drawn:
        """Draw rates, states and selectivities."""
        rates = random.uniform(*_RATES, 4)
        states = random.integers(*_STATES, 5, endpoint=True).tolist()
        # A value is one of a whole number of them, so that is what the selectivity is drawn from.
        joins = [1 / round(1 / s) for s in random.uniform(*_SELECTIVITIES, 3)]
        windows = (states[0], states[1], states[2], states[3])
        filled = ceil(max(window / rate for window, rate in zip(windows, rates, strict=True)))
        load = Chain(
            _WINDOWS * filled,
            ((0, (joins[0], joins[1], joins[2])),),
            tuple(rates.tolist()),
            windows,
            seed,
        )
        # The joins of a chain are AB, BC, CD; those of the bushy tree AB, CD and BC at the root.
        ordered = joins if shape == "linear" else [joins[0], joins[2], joins[1]]
        model = model_of_selectivities(
            SHAPES[shape], rates.tolist(), [*states[:4], states[4], states[4]], ordered
        )
        return cls(load, states[4], model, filled)


def run_plans(
    shape: str, plans: int, levels: Sequence[float], factor: float
) -> tuple[list[dict[str, Figure]], list[Claim], list[Plot]]:
    """Return the mean share of saturation throughput of each policy at each level below saturation.

    Both as executed and as computed.
    """
    levels = [level for level in levels if level < 1]
    random = np.random.default_rng(31)
    executed: dict[str, list[list[float]]] = {policy: [[] for _ in levels] for policy in _POLICIES}
    computed: dict[str, list[list[float]]] = {policy: [[] for _ in levels] for policy in _POLICIES}
    for number in range(plans):
        drawn = Drawn.at_random(shape, random, number)
        setup = Setup(TREES[shape], freshness=factor, state_rows=drawn.state_rows)
        full = run(drawn.load, setup)
        model = with_freshness(drawn.model, factor=factor)
        for place, level in enumerate(levels):
            for policy in _POLICIES:
                executed[policy][place].append(
                    _share(drawn, full, replace(setup, policy=policy), level)
                )
                made = allocate(policy, model, level * model.saturation.resources).throughput
                computed[policy][place].append(made / model.saturation.throughput)
    base: dict[str, Figure] = {
        "part": "random plans",
        "plan": shape,
        "parameters": "a tenth of Table 3's rates and states",
    }
    rows = [
        base
        | {"policy": f"{policy}, {kind}"}
        | {
            f"{level:.0%}": round(mean(at), 4)
            for level, at in zip(levels, shares[policy], strict=True)
        }
        for kind, shares in (("executed", executed), ("computed", computed))
        for policy in _POLICIES
    ]
    ratios = [_ratio(executed), _ratio(computed)]
    rows.append(
        base
        | {
            "policy": "jaqpot over best heuristic, mean",
            "ratio": round(ratios[0], 3),
            "ratio computed": round(ratios[1], 3),
        }
    )
    text = (
        f"{shape} plan, {plans} random ones, executed: throughput of jaqpot over the best "
        "heuristic, 10 % to 80 % of saturation"
    )
    series = {
        policy: [
            (100 * level, 100 * mean(at))
            for level, at in zip(levels, executed[policy], strict=True)
        ]
        for policy in _POLICIES
    }
    title, name = (
        f"Throughput of {shape} plans, {plans} random ones, executed",
        f"overload-plans-{shape}",
    )
    plot = Plot(name, title, "resources, % of saturation", "throughput, % of saturation", series)
    return rows, [Claim(text, round(ratios[0], 3), _BOUND, "at least")], [plot]


def _share(drawn: Drawn, full: Run, setup: Setup, level: float) -> float:
    ran = run(drawn.load, replace(setup, resources=level * full.probes(drawn.begin)))
    return ran.results(drawn.begin) / max(full.results(drawn.begin), 1)


def _ratio(shares: Mapping[str, list[list[float]]]) -> float:
    """Return JAQPOT over the best heuristic, averaged over plans, at each level, and the mean."""
    levels = range(len(shares["jaqpot"]))
    return mean(
        mean(shares["jaqpot"][place]) / max(mean(shares[policy][place]) for policy in HEURISTICS)
        for place in levels
    )
