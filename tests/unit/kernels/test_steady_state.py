"""The steady state and its climb, against plain arithmetic and against random budgets."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from muntin.adapt.model import PlanModel
from muntin.adapt.probe_costs import ProbeCosts
from muntin.adapt.steady_state import plan_arrays
from muntin.kernels.steady_state import climb_fractions
from muntin.testing.plan_models import Nested, tree_shape

TREES: list[Nested] = [((0, 1), 2), (((0, 1), 2), 3), ((0, 1), (2, 3)), (((0, 1), (2, 3)), 4)]


def random_model(random: np.random.Generator) -> PlanModel:
    shape = tree_shape(TREES[random.integers(len(TREES))])
    return PlanModel(
        shape,
        tuple(random.uniform(5, 100, shape.leaves)),
        tuple(10 ** random.uniform(-1, 1, shape.count)),
        (100.0,) * shape.count,
        fixed=False,
        costs=ProbeCosts(
            tuple(random.uniform(0.3, 3, shape.count)),
            tuple(random.uniform(0, 0.05, shape.count)),
            tuple(random.uniform(0, 3, shape.count)),
        )
        if random.random() < 0.5
        else None,
    )


def naive(model: PlanModel, fractions: NDArray[np.float64]) -> tuple[float, float]:
    """Return results and probes per second, from the leaves to the root."""
    shape, full = model.shape, model.saturation.arrivals
    arrivals = dict(enumerate(model.rates))
    made = cost = 0.0
    for one, other in shape.joins:
        output = 0.0
        for h, sibling in ((one, other), (other, one)):
            fill = 1.0 if sibling < shape.leaves else arrivals[sibling] / full[sibling]
            probes = fractions[h] * arrivals[h]
            found = probes * model.productivity[h] * fill
            cost += probes * model.probe_costs[h] + found * model.match_costs[h]
            output += found
        if shape.parent[one] < 0:
            made = output
        else:
            arrivals[shape.parent[one]] = output
    return made, cost


def climbed(
    model: PlanModel, resources: float, fractions: NDArray[np.float64], rounds: int
) -> float:
    scratch = np.zeros((3, model.shape.count))
    found = climb_fractions(plan_arrays(model), resources, fractions, scratch, 2.0, rounds)
    return float(found)


def test_results_and_cost_are_those_of_plain_arithmetic() -> None:
    random = np.random.default_rng(1)
    for _ in range(50):
        model = random_model(random)
        resources = float(random.uniform(0.05, 0.9)) * model.saturation.resources
        fractions, leaves = random.random(model.shape.count), model.shape.leaves
        for rounds in (0, 5):
            made = climbed(model, resources, fractions, rounds)
            results, cost = naive(model, fractions)
            assert made == pytest.approx(results)
            assert cost == pytest.approx(resources, rel=1e-4) or np.all(fractions[:leaves] == 1)
            assert cost <= resources * (1 + 1e-9)
            assert np.all((fractions >= 0) & (fractions <= 1))


def test_a_climb_never_ends_below_its_start() -> None:
    random = np.random.default_rng(2)
    for _ in range(50):
        model = random_model(random)
        fractions = random.random(model.shape.count)
        made, cost = naive(model, fractions)
        assert climbed(model, cost * (1 + 1e-12), fractions, 30) >= made * (1 - 1e-5)


def test_no_random_fractions_are_better_than_the_best_of_a_few_climbs() -> None:
    random = np.random.default_rng(3)
    for _ in range(10):
        model = random_model(random)
        resources = float(random.uniform(0.1, 0.6)) * model.saturation.resources
        count = model.shape.count
        best = max(climbed(model, resources, random.random(count), 60) for _ in range(6))
        for _ in range(300):
            made, cost = naive(model, random.random(count) ** random.uniform(0, 3))
            assert cost > resources or made <= best * (1 + 1e-6)
