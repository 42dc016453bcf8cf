"""Policies on random plans: bounds that hold for all, and distance from the optimum.

Linear programming finds the optimum.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.optimum import exact_cover, optimum
from benchmarks.overload_model import TABLE_3
from muntin.adapt.cover import cover_states, refresh_rates
from muntin.adapt.freshness import RefreshProblem, is_fresh
from muntin.adapt.model import PlanModel
from muntin.adapt.policies import POLICIES, allocate
from muntin.adapt.probe_costs import ProbeCosts
from muntin.adapt.shape import TreeShape
from muntin.testing.plan_models import Nested, tree_shape, with_freshness


def random_tree(random: np.random.Generator, leaves: Sequence[int]) -> Nested:
    if len(leaves) == 1:
        return leaves[0]
    cut = int(random.integers(1, len(leaves)))
    return random_tree(random, leaves[:cut]), random_tree(random, leaves[cut:])


def random_model(random: np.random.Generator, streams: int | None = None) -> PlanModel:
    """Draw any shape up to eight streams, with productivities from zero to a hundred."""
    leaves = streams or int(random.integers(2, 9))
    shape = tree_shape(random_tree(random, [int(leaf) for leaf in random.permutation(leaves)]))
    productivity = 10.0 ** random.uniform(-2, 2, shape.count) * (random.random(shape.count) > 0.05)
    rates = 10.0 ** random.uniform(0, 4, leaves) * (random.random(leaves) > 0.03)
    return PlanModel(
        shape, tuple(rates), tuple(productivity), tuple(10.0 ** random.uniform(1, 4, shape.count))
    )


def with_costs(random: np.random.Generator, model: PlanModel) -> PlanModel:
    """Return the model with random costs; some half joins scan their partner's state."""
    count = model.shape.count
    scanned = random.uniform(0.0, 0.01, count) * (random.random(count) < 0.4)
    probe, match = random.uniform(0.3, 3.0, count), random.uniform(0.0, 3.0, count)
    costs = ProbeCosts(*(tuple(numbers.tolist()) for numbers in (probe, scanned, match)))
    return replace(model, costs=costs)


def table_3_model(random: np.random.Generator, shape: TreeShape, factor: float) -> PlanModel:
    """Draw parameters from the ranges of Table 3, including states of intermediate results."""
    return with_freshness(TABLE_3.draw(shape, random), factor=factor)


def test_grepp_is_the_optimum_of_linear_programming_on_a_thousand_plans() -> None:
    random = np.random.default_rng(1)
    for _ in range(1_000):
        model = random_model(random)
        resources = float(random.uniform(0.01, 1.1)) * max(model.saturation.resources, 1.0)
        assert allocate("grepp", model, resources).throughput == pytest.approx(
            optimum(model, resources), rel=1e-6, abs=1e-9
        )


def test_grepp_is_the_optimum_with_any_costs_of_probes_and_matches() -> None:
    random = np.random.default_rng(21)
    for _ in range(200):
        model = with_costs(random, random_model(random))
        resources = float(random.uniform(0.01, 1.1)) * max(model.saturation.resources, 1.0)
        assert allocate("grepp", model, resources).throughput == pytest.approx(
            optimum(model, resources), rel=1e-6, abs=1e-9
        )


@pytest.mark.parametrize("costs", [False, True], ids=["unit", "measured"])
@pytest.mark.parametrize("policy", POLICIES)
def test_no_policy_allocates_more_than_arrives_or_is_available(policy: str, costs: bool) -> None:  # noqa: FBT001
    random = np.random.default_rng(2)
    for _ in range(150):
        model = random_model(random)
        model = with_costs(random, model) if costs else model
        resources = float(random.uniform(0.001, 1.5)) * max(model.saturation.resources, 1.0)
        found = allocate(policy, model, resources)
        flow = model.flow(found.budgets)
        assert all(allowed >= 0 for allowed in found.budgets)
        assert flow.resources <= resources * (1 + 1e-9)
        assert costs or flow.resources == pytest.approx(sum(found.budgets))
        assert flow.probes == pytest.approx(found.budgets, rel=1e-9, abs=1e-9)
        assert found.throughput == pytest.approx(flow.throughput)
        assert found.throughput <= optimum(model, resources) * (1 + 1e-6) + 1e-9
        if found.assigned is not None:
            assert model.budgets(found.assigned) == pytest.approx(found.budgets)


def test_with_saturation_resources_paths_produce_all_results() -> None:
    random = np.random.default_rng(3)
    for _ in range(200):
        model = random_model(random)
        found = allocate("jaqpot", model, model.saturation.resources)
        assert found.throughput == pytest.approx(model.saturation.throughput)


def test_the_greedy_cover_is_near_the_exact_one() -> None:
    """GH-WMSCP needs at most 20 % more than linear programming, 11 % on average, for any rates.

    [Mukherji11] finds 19 %.
    """
    random = np.random.default_rng(4)
    ratios = []
    for _ in range(1_000):
        leaves = int(random.integers(4, 9))
        shape = tree_shape(random_tree(random, range(leaves)))
        productivity = 10.0 ** random.uniform(-1, 1, shape.count)
        model = PlanModel(
            shape,
            tuple(random.uniform(300, 1200, leaves)),
            tuple(productivity),
            (100.0,) * shape.count,
        )
        most = refresh_rates(model, model.rates)
        refresh = {h: rate * float(random.uniform(0.01, 0.9)) for h, rate in most.items()}
        sent = cover_states(model, refresh)
        assert sent is not None
        have = refresh_rates(model, sent)
        assert all(have[h] >= rate * (1 - 1e-9) for h, rate in refresh.items())
        cost = sum(rows * each for rows, each in zip(sent, model.path_costs, strict=True))
        ratios.append(cost / exact_cover(model, refresh))
    print(  # noqa: T201
        f"greedy over exact cover: mean {np.mean(ratios):.4f}, most {max(ratios):.4f} of "
        f"{len(ratios)} plans"
    )
    assert min(ratios) > 1 - 1e-6
    assert max(ratios) <= 1.2
    assert np.mean(ratios) <= 1.11


def test_refresh_rates_keep_lemma_1_and_nothing_cheaper_does() -> None:
    random = np.random.default_rng(5)
    feasible = 0
    for _ in range(60):
        leaves = int(random.integers(3, 7))
        model = table_3_model(
            random, tree_shape(random_tree(random, range(leaves))), float(random.uniform(1.2, 5))
        )
        task = RefreshProblem.of(model)
        assert task is not None
        shares = task.least_cost()
        if shares is None:
            assert not is_fresh(model, model.saturation.probes)
            continue
        feasible += 1
        least = float(task.costs @ shares)
        assert np.all(task.seconds(shares) <= task.allowed * (1 + 1e-6))
        assert task.least_factor(least) == pytest.approx(1.0, rel=1e-3)
        for _ in range(30):
            other = np.clip(shares * 10.0 ** random.normal(0, 0.5, leaves), 1e-12, 1.0)
            slack = task.allowed - task.windows
            concerned = task.on_path.any(axis=1)
            scale = float(
                np.max((task.seconds(other) - task.windows)[concerned] / slack[concerned])
            )
            if np.all(other * scale <= 1.0):
                assert float(task.costs @ other) * scale >= least * (1 - 1e-5)
    assert feasible > 20


def test_jaqpot_keeps_freshness_wherever_possible_and_reports_where_not() -> None:
    random = np.random.default_rng(6)
    said = 0
    for _ in range(60):
        model = table_3_model(
            random,
            tree_shape(random_tree(random, range(int(random.integers(3, 7))))),
            float(random.uniform(1.2, 5)),
        )
        resources = float(10 ** random.uniform(-3, 0)) * model.saturation.resources
        found = allocate("jaqpot", model, resources)
        if found.infeasible is None:
            assert is_fresh(model, found.budgets)
            continue
        said += 1
        assert found.infeasible.factor > 1
        if found.infeasible.resources is not None:
            assert allocate("jaqpot", model, found.infeasible.resources * 1.0001).infeasible is None
    assert 2 < said < 58


def least_seconds(policy: str, model: PlanModel, resources: float) -> float:
    """Return the least CPU time of three runs: another process on the same core inflates it."""
    found = []
    for _ in range(3):
        begin = time.process_time()
        allocate(policy, model, resources)
        found.append(time.process_time() - begin)
    return min(found)


def test_an_analysis_of_ten_streams_takes_less_than_50_milliseconds() -> None:
    """Measure CPU time of the median policy run on plans that must keep a freshness bound."""
    random = np.random.default_rng(7)
    models = [
        table_3_model(random, tree_shape(random_tree(random, range(10))), 3.0) for _ in range(20)
    ]
    for policy in POLICIES:
        seconds = []
        for model in models:
            resources = 0.3 * model.saturation.resources
            seconds.append(least_seconds(policy, model, resources))
        assert float(np.median(seconds)) < 0.05, policy


def test_the_search_in_the_steady_state_of_ten_streams_takes_less_than_50_milliseconds() -> None:
    random = np.random.default_rng(8)
    seconds = []
    for _ in range(20):
        model = replace(random_model(random, 10), fixed=False)
        resources = 0.3 * model.saturation.resources
        seconds.append(least_seconds("jaqpot", model, resources))
    assert float(np.median(seconds)) < 0.05
