from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from muntin.adapt.adapter import Adapter
from muntin.adapt.analysis import AnalysisRequest, analyze
from muntin.adapt.config import AdapterConfig, seconds_of
from muntin.adapt.monitor import Sample
from muntin.adapt.policies import POLICIES, allocate
from muntin.model.window import RowsWindow, TimeWindow, Unbounded
from muntin.testing.plan_models import tree_shape
from tests.unit.adapt.plant import Plant, results, settle

LINEAR = tree_shape((((0, 1), 2), 3))
BUSHY = tree_shape(((0, 1), (2, 3)))
PAIR = tree_shape((0, 1))


def linear(**changes: object) -> Plant:
    plant = Plant(LINEAR, [50.0, 40.0, 30.0, 60.0], [0.004, 0.004, 0.004])
    return replace(plant, **changes)  # type: ignore[arg-type]


def needed(plant: Plant) -> float:
    """Return the probes that all arriving rows need, found without limits."""
    probe = replace(
        plant,
        resources=None,
        fed={},
        rates=list(plant.rates),
        selectivities=list(plant.selectivities),
    )
    adapter = probe.adapter()
    return sum(settle(probe, adapter, 30)[-1].probes)


def test_without_a_limit_nothing_is_done() -> None:
    plant = linear()
    adapter = plant.adapter()
    settle(plant, adapter, 20)
    assert not adapter.overloaded
    assert adapter.budgets is None
    assert adapter.analyses == 0
    assert adapter.share == 1.0
    assert adapter.report()["overloaded"] is False


def test_with_enough_nothing_is_done_either() -> None:
    plant = linear(resources=1.2 * needed(linear()))
    adapter = plant.adapter()
    settle(plant, adapter, 40)
    assert (adapter.overloaded, adapter.analyses) == (False, 0)


@pytest.mark.parametrize("policy", POLICIES)
def test_overload_is_entered_held_within_the_resources_and_left(policy: str) -> None:
    plant = linear(resources=0.3 * needed(linear()))
    adapter = plant.adapter(policy)
    samples = settle(plant, adapter, 60)
    assert adapter.overloaded
    assert adapter.budgets is not None
    assert sum(samples[-1].probes) <= plant.resources * (1 + 1e-9)  # type: ignore[operator]
    assert adapter.share < 1
    plant.rates = [rate / 10 for rate in plant.rates]
    samples = settle(plant, adapter, 60)
    assert adapter.report()["overloaded"] is False
    assert adapter.report()["budgets"] is None
    assert samples[-1].probes == samples[-1].arrivals
    assert [entry["decision"] for entry in adapter.decisions][-1] == "release"


def test_the_fraction_of_results_is_estimated() -> None:
    complete = linear()
    full = results(settle(complete, complete.adapter(), 60)[-1], LINEAR)
    plant = linear(resources=0.5 * needed(linear()))
    adapter = plant.adapter()
    found = results(settle(plant, adapter, 80)[-1], LINEAR)
    assert adapter.share == pytest.approx(found / full, rel=0.2)


def test_under_limits_the_plan_without_them_is_still_known() -> None:
    complete = linear()
    whole = complete.adapter()
    settle(complete, whole, 60)
    plant = linear(resources=0.4 * needed(linear()))
    adapter = plant.adapter()
    settle(plant, adapter, 100)
    assert whole.model is not None
    assert adapter.model is not None
    assert adapter.model.saturation.resources == pytest.approx(
        whole.model.saturation.resources, rel=0.25
    )


def test_a_switch_of_selectivities_is_followed_within_two_cycles() -> None:
    plant = linear(resources=0.3 * needed(linear()), state_rows=100)
    adapter = plant.adapter()
    settle(plant, adapter, 60)
    before = adapter.budgets
    plant.selectivities = [0.012, 0.001, 0.02]
    settle(plant, adapter, 2)
    assert adapter.budgets != before
    assert adapter.model is not None
    assert plant.resources is not None
    best = allocate("jaqpot", adapter.model, plant.resources).throughput
    assert adapter.model.throughput(adapter.budgets or ()) >= 0.9 * best


def test_small_changes_are_neither_analyzed_nor_acted_upon() -> None:
    plant = linear(resources=0.3 * needed(linear()))
    adapter = plant.adapter()
    settle(plant, adapter, 80)
    analyses, actuations = adapter.analyses, adapter.actuations
    plant.rates = [rate * 1.02 for rate in plant.rates]
    settle(plant, adapter, 5)
    assert (adapter.analyses, adapter.actuations) == (analyses, actuations)


@pytest.mark.parametrize("policy", ["equal_hj", "global_hjpr", "ebest_hjp", "sbest_hjp"])
def test_a_division_by_half_joins_follows_the_policy_and_not_the_best_so_far(
    policy: str,
) -> None:
    """While selectivities grow, the division that suited earlier ones may beat the policy's own."""
    plant = linear(resources=0.3 * needed(linear()), state_rows=100)
    adapter = plant.adapter(policy)
    for factor in (0.1, 3.0, 0.3, 1.0):
        plant.selectivities = [factor * 0.004, 0.004 / factor, 0.004]
        settle(plant, adapter, 20)
    assert adapter.model is not None
    assert plant.resources is not None
    wanted = allocate(policy, adapter.model, plant.resources)
    made = adapter.model.flow(
        [inf if allowed < 0 else allowed for allowed in adapter.budgets or ()]
    )
    assert made.probes == pytest.approx(wanted.budgets, rel=0.15, abs=1.0)


def test_resources_allocated_twice_do_not_keep_freshness() -> None:
    """Unused resources are given out again, but freshness depends on what is really available."""
    plant = linear(state_rows=100)
    adapter = plant.adapter(freshness=1.5)
    settle(plant, adapter, 30)
    plant.resources = 0.02 * needed(linear())
    request = adapter.observe(plant.run(None))
    assert request is not None
    said = analyze(request).allocation
    again = analyze(replace(request, boost=64.0)).allocation
    assert said is not None
    assert again is not None
    assert said.infeasible is not None
    assert again.infeasible == said.infeasible
    assert (
        allocate("jaqpot", request.statistics.model, 64 * request.resources).infeasible is None
    ), "or nothing is tested"


def test_a_stream_that_stops_loses_its_allocation() -> None:
    plant = linear(resources=0.3 * needed(linear()), state_rows=50)
    adapter = plant.adapter()
    settle(plant, adapter, 60)
    plant.rates[0] = 0.0
    samples = settle(plant, adapter, 4)
    assert adapter.model is not None
    assert adapter.model.rates[0] == 0
    assert samples[-1].probes[0] == 0
    assert all(np.isfinite(adapter.budgets or ()))
    settle(plant, adapter, 40)
    plant.rates = [0.0] * 4
    settle(plant, adapter, 40)
    assert not adapter.overloaded


def test_a_hundredfold_jump_is_answered_in_its_first_cycle() -> None:
    plant = linear(resources=2.0 * needed(linear()))
    adapter = plant.adapter()
    settle(plant, adapter, 30)
    assert not adapter.overloaded
    plant.rates = [100 * rate for rate in plant.rates]
    sample = plant.run(adapter.budgets)
    request = adapter.observe(sample)
    assert request is not None
    assert adapter.report()["overloaded"] is True
    budgets = adapter.decide(analyze(request))
    assert budgets is not None
    assert plant.resources is not None
    assert 0 < sum(budgets) <= 2 * plant.resources * (1 + 1e-9)
    assert sum(plant.run(budgets).probes) <= plant.resources * (1 + 1e-9)


def test_nothing_is_known_before_rows_come() -> None:
    adapter = Adapter(PAIR, AdapterConfig((TimeWindow(10_000_000),) * 2))
    assert adapter.statistics is None
    assert adapter.share == 1.0
    assert adapter.report()["resources_needed"] is None
    empty = Sample(0, 1.0, (0, 0), (0, 0), (0, 0), (0, 0), 100.0)
    assert adapter.observe(empty) is None
    assert adapter.model is not None
    assert adapter.model.saturation.resources == 0


def test_a_direction_that_never_probes_is_known_from_the_other() -> None:
    adapter = Adapter(PAIR, AdapterConfig((TimeWindow(10_000_000),) * 2))
    for cycle in range(3):
        adapter.observe(Sample(cycle, 1.0, (100, 50), (0, 50), (0, 100), (1000, 500), 50.0))
    assert adapter.model is not None
    assert adapter.model.productivity == pytest.approx((100 / (50 * 1000) * 500, 2.0))


def test_an_unmeasured_join_gets_a_small_budget_to_measure_it() -> None:
    plant = linear(resources=100.0)
    adapter = plant.adapter()
    sample = Sample(
        0,
        1.0,
        (50, 40, 30, 600, 0, 0),
        (0, 0, 0, 600, 0, 0),
        (0, 0, 0, 900, 0, 0),
        (500, 400, 300, 600, 50, 50),
        100.0,
    )
    request = adapter.observe(sample)
    assert request is not None
    assert request.statistics.unmeasured == (0, 1)
    budgets = adapter.decide(analyze(request))
    assert budgets is not None
    assert all(allowed > 0 for allowed in budgets[:3])
    assert sum(budgets[:3]) <= 0.05 * 100


def test_only_one_analysis_runs_at_a_time() -> None:
    plant = linear(resources=0.3 * needed(linear()))
    adapter = plant.adapter()
    requests = [adapter.observe(plant.run(None)) for _ in range(20)]
    found = [request for request in requests if request is not None]
    assert len(found) == 1
    adapter.abandon()
    assert isinstance(adapter.observe(plant.run(None)), AnalysisRequest)


def test_a_recommendation_that_comes_too_late_is_dropped() -> None:
    plant = linear(resources=0.3 * needed(linear()))
    adapter = plant.adapter()
    settle(plant, adapter, 40)
    plant.resources = 0.2 * needed(linear())
    late = None
    while late is None:
        late = adapter.observe(plant.run(adapter.budgets))
    plant.resources = 1e6
    for _ in range(70):
        adapter.observe(plant.run(adapter.budgets))
    assert not adapter.overloaded
    assert adapter.decide(analyze(late)) is None
    settle(plant, adapter, 2)
    assert adapter.budgets is None


def test_decisions_are_bounded_and_readable() -> None:
    plant = linear(resources=0.3 * needed(linear()))
    adapter = plant.adapter()
    for turn in range(250):
        plant.resources = 0.2 * needed(linear()) * (1 + turn % 2)
        settle(plant, adapter, 1)
    assert len(adapter.decisions) == 100
    assert set(adapter.decisions[-1]) >= {
        "cycle",
        "decision",
        "reason",
        "predicted",
        "predicted_before",
        "budgets",
    }


def test_freshness_that_cannot_be_kept_is_reported() -> None:
    plant = linear(resources=20.0, state_rows=400)
    adapter = plant.adapter(freshness=1.01)
    settle(plant, adapter, 40)
    assert adapter.overloaded
    assert adapter.infeasible is not None
    assert "would do" in adapter.infeasible


def test_seconds_of_windows() -> None:
    assert seconds_of(TimeWindow(5_000_000), 0) == 5
    assert seconds_of(RowsWindow(100), 20) == 5
    assert seconds_of(RowsWindow(100), 0) == float("inf")
    assert seconds_of(Unbounded(), 3) == float("inf")


def test_paths_that_use_too_little_get_more_until_they_use_it() -> None:
    """The model assumes ten times the real number of matches."""
    plant = linear(resources=0.3 * needed(linear()), state_rows=100)
    adapter = plant.adapter()
    settle(plant, adapter, 40)
    plant.selectivities = [0.0004, 0.0004, 0.0004]
    used = []
    for _ in range(12):
        sample = plant.run(adapter.budgets)
        lied = replace(sample, matches=[10 * found for found in sample.matches])
        request = adapter.observe(lied)
        if request is not None:
            adapter.decide(analyze(request))
        used.append(sum(sample.probes) / float(plant.resources or 0))
    assert used[-1] > max(0.75, 1.2 * used[1])
    assert any("were used" in str(entry["reason"]) for entry in adapter.decisions)


def test_without_any_result_all_streams_are_treated_alike() -> None:
    plant = linear(resources=20.0, selectivities=[0.0, 0.0, 0.0])
    adapter = plant.adapter()
    samples = settle(plant, adapter, 12)
    assert adapter.overloaded
    shares = [probes / rate for probes, rate in zip(samples[-1].probes, plant.rates, strict=False)]
    assert shares == pytest.approx([20 / sum(plant.rates)] * 4)
