"""If input determines how full states are, the best division is not the most productive path."""

from __future__ import annotations

import numpy as np
import pytest

from muntin.adapt.model import PlanModel
from muntin.adapt.policies import POLICIES, allocate
from muntin.adapt.steady_state import nearby_budgets
from muntin.testing.plan_models import Nested, tree_shape

LINEAR = tree_shape((((0, 1), 2), 3))


def model(*, fixed: bool) -> PlanModel:
    return PlanModel(LINEAR, (100, 100, 100, 100), (0.5, 0.5, 2, 8, 2, 2), (1000,) * 6, fixed=fixed)


def test_a_state_without_input_gives_nothing() -> None:
    only_d = (0, 0, 0, 100, 0, 0)
    assert model(fixed=True).throughput(only_d) == 800
    assert model(fixed=False).throughput(only_d) == 0


def test_resources_go_to_paths_that_fill_and_paths_that_probe() -> None:
    plan = model(fixed=False)
    resources = 0.4 * plan.saturation.resources
    found = allocate("jaqpot", plan, resources)
    assert found.budgets[3] > 0
    assert found.budgets[0] + found.budgets[1] > 0
    assert sum(found.budgets) <= resources * (1 + 1e-9)
    alike = plan.sent_up([0.4 * rate for rate in plan.rates])
    assert found.throughput > alike.throughput
    assert plan.throughput(found.budgets) == pytest.approx(found.throughput)


def test_no_random_allocation_is_much_better() -> None:
    random = np.random.default_rng(1)
    for _ in range(20):
        plan = PlanModel(
            LINEAR,
            tuple(random.uniform(10, 100, 4)),
            tuple(10 ** random.uniform(-1, 1, 6)),
            tuple(random.uniform(100, 1000, 6)),
            fixed=False,
        )
        resources = float(random.uniform(0.1, 0.9)) * plan.saturation.resources
        found = allocate("grepp", plan, resources).throughput
        for _ in range(300):
            rows = (random.random(4) * (random.random(4) > 0.3) * plan.rates).tolist()
            flow = plan.sent_up(rows)
            if flow.resources <= resources:
                assert flow.throughput <= found * 1.1


def test_with_saturation_resources_all_results_are_produced() -> None:
    plan = model(fixed=False)
    assert allocate("jaqpot", plan, plan.saturation.resources).throughput == pytest.approx(
        plan.saturation.throughput, rel=1e-3
    )


def test_a_fixed_state_that_freshness_empties_is_fed_too() -> None:
    """D is the most productive path, but 500 results that live for 10 s need 50 per second."""
    plan = PlanModel(
        LINEAR,
        (100,) * 4,
        (0.5, 0.5, 0.1, 8, 1, 2),
        (1000, 1000, 1000, 1000, 10, 500),
        (15,) * 4,
        purged=True,
    )
    assert plan.filling is not None
    assert plan.filling[5] == pytest.approx(500 / (15 - 5))
    assert plan.throughput((0, 0, 0, 100, 0, 0)) == 0
    found = allocate("grepp", plan, 150)
    assert found.budgets[3] > 0
    assert plan.flow(found.budgets).arrivals[5] > 0
    assert found.throughput > 100


@pytest.mark.parametrize("tree", [((0, 1), 2), (((0, 1), 2), 3), ((0, 1), (2, 3))])
def test_jaqpot_is_never_predicted_below_another_policy(tree: Nested) -> None:
    random = np.random.default_rng(7)
    shape = tree_shape(tree)
    ratios = []
    for _ in range(40):
        plan = PlanModel(
            shape,
            tuple(random.uniform(5, 100, shape.leaves)),
            tuple(10 ** random.uniform(-1, 1.5, shape.count)),
            tuple(random.uniform(100, 1000, shape.count)),
            fixed=False,
        )
        resources = float(random.uniform(0.05, 0.6)) * plan.saturation.resources
        found = allocate("jaqpot", plan, resources)
        assert sum(found.budgets) <= resources * (1 + 1e-9)
        others = [
            allocate(policy, plan, resources).throughput
            for policy in POLICIES
            if policy != "jaqpot"
        ]
        ratios.append(found.throughput / max(others))
    assert min(ratios) >= 1 - 1e-9
    assert max(ratios) > 1.02


def test_nearby_budgets_feed_the_same_states() -> None:
    plan = model(fixed=False)
    resources = 0.3 * plan.saturation.resources
    current = (20.0, 0.0, 10.0, 30.0, 10.0, 20.0)
    near = nearby_budgets(plan, resources, current)
    assert sum(near) == pytest.approx(resources, rel=1e-3)
    assert plan.throughput(near) > plan.throughput(current)
