"""Monitoring and thresholds that tune themselves: bounds, savings, and reactions to changes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from muntin.adapt.adapter import Adapter
from muntin.adapt.analysis import analyze
from muntin.adapt.monitor import Sample
from muntin.adapt.policies import allocate
from muntin.adapt.sample_period import LONGEST, SamplePeriod
from muntin.adapt.thresholds import LEAST, MOST
from muntin.testing.plan_models import tree_shape
from tests.unit.adapt.plant import Plant, results

LINEAR = tree_shape((((0, 1), 2), 3))
PAIR = tree_shape((0, 1))
SWITCHED = [0.012, 0.001, 0.02]


@dataclass
class PoissonPlant(Plant):
    """A plant whose arrivals vary at random around ``means``."""

    means: tuple[float, ...] = (200.0, 160.0, 120.0, 240.0)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))
    came: list[list[float]] = field(default_factory=list)

    def states(self) -> list[float]:
        found = super().states()
        for leaf in range(self.shape.leaves):
            found[leaf] = sum(rates[leaf] for rates in self.came[-self.window :])
        return found

    def step(self, adapter: Adapter) -> Sample:
        """Run a cycle, with the analysis that it requests."""
        self.rates = [float(self.random.poisson(mean)) for mean in self.means]
        self.came.append(self.rates)
        sample = self.run(adapter.budgets)
        request = adapter.observe(sample)
        if request is not None:
            adapter.decide(analyze(request))
        return sample


def limited(**changes: object) -> tuple[PoissonPlant, Adapter]:
    """Return a plant with a third of the resources that it needs, and its controller."""
    plant = PoissonPlant(LINEAR, [0.0] * 4, [0.001] * 3, resources=700.0)
    made = plant.adapter()
    return plant, Adapter(LINEAR, replace(made.config, **changes))  # type: ignore[arg-type]


def run(plant: PoissonPlant, adapter: Adapter, cycles: int) -> float:
    """Run some cycles and return the results."""
    return sum(results(plant.step(adapter), LINEAR) for _ in range(cycles))


def test_while_nothing_changes_the_period_grows_to_its_bound_and_analyses_become_rare() -> None:
    always, every = limited()
    tuned, seldom = limited(longest_period=LONGEST)
    usual, other = run(always, every, 200), run(tuned, seldom, 200)
    before = seldom.analyses
    periods = []
    for _ in range(100):
        tuned.step(seldom)
        periods.append(seldom.cycles_observed_together)
    assert max(periods) == LONGEST
    assert seldom.overloaded
    assert seldom.analyses - before <= 12
    assert seldom.analyses < 0.7 * every.analyses
    assert other > 0.95 * usual


def test_a_jump_ends_the_period_in_its_first_cycle_and_is_answered_within_two() -> None:
    plant, adapter = limited(longest_period=LONGEST)
    run(plant, adapter, 200)
    while adapter.report()["cycles_observed_together"] != LONGEST:
        run(plant, adapter, 1)
    before = adapter.budgets
    plant.selectivities = SWITCHED
    plant.step(adapter)
    assert adapter.report()["cycles_observed_together"] == 1
    run(plant, adapter, 1)
    assert adapter.budgets != before
    assert adapter.model is not None
    best = allocate("jaqpot", adapter.model, 700.0).throughput
    assert adapter.model.throughput(adapter.budgets or ()) >= 0.8 * best


def test_a_slow_change_is_observed_when_the_longest_period_ends() -> None:
    period = SamplePeriod(PAIR, LONGEST, cycles=LONGEST)
    sample = Sample(0, 1.0, (100, 100), (50, 50), (100, 100), (1000, 1000), 100.0)
    assert period.take(sample) == (sample,), "there is nothing to compare with"
    period.cycles = LONGEST
    taken = [
        period.take(replace(sample, cycle=cycle, arrivals=(100 + cycle, 100)))
        for cycle in range(1, LONGEST + 1)
    ]
    assert not any(taken[:-1])
    (merged,) = taken[-1]
    assert (merged.cycle, merged.seconds) == (LONGEST, float(LONGEST))
    assert list(merged.arrivals) == [100 * LONGEST + sum(range(1, LONGEST + 1)), 100 * LONGEST]
    assert list(merged.matches) == [100 * LONGEST, 100 * LONGEST]
    assert merged.states == sample.states


def test_what_was_gathered_before_a_jump_is_observed_on_its_own() -> None:
    period = SamplePeriod(PAIR, LONGEST)
    sample = Sample(0, 1.0, (100, 100), (50, 50), (100, 100), (1000, 1000), 100.0)
    period.take(sample)
    period.cycles = 4
    assert period.take(replace(sample, cycle=1)) == ()
    jump = replace(sample, cycle=2, arrivals=(900, 100))
    assert period.take(jump) == (replace(sample, cycle=1), jump)
    assert period.cycles == 1


@pytest.mark.parametrize("resources", [50.0, 200.0, None])
def test_other_resources_end_the_period(resources: float | None) -> None:
    period = SamplePeriod(PAIR, LONGEST)
    sample = Sample(0, 1.0, (100, 100), (50, 50), (100, 100), (1000, 1000), 100.0)
    period.take(sample)
    period.cycles = 4
    assert period.take(replace(sample, cycle=1, resources=101.0)) == ()
    assert period.take(replace(sample, cycle=2, resources=resources))[-1].resources == resources


def test_thresholds_stay_within_their_bounds_and_are_the_same_for_the_same_samples() -> None:
    found = []
    for _ in range(2):
        plant, adapter = limited(change=None, gain=None)
        seen = []
        for turn in range(160):
            plant.selectivities = SWITCHED if turn % 40 >= 20 else [0.001] * 3
            plant.step(adapter)
            seen.append((adapter.thresholds.change, adapter.thresholds.gain))
        assert all(LEAST <= share <= MOST for pair in seen for share in pair)
        assert len({change for change, _ in seen}) > 3
        assert len({gain for _, gain in seen}) > 3
        found.append((seen, adapter.budgets, list(adapter.decisions)))
    assert found[0] == found[1]


def test_analyses_in_vain_raise_epsilon_and_given_thresholds_stay() -> None:
    plant, adapter = limited(change=None)
    run(plant, adapter, 30)
    request = None
    while request is None or request.forced or request.current is None:
        plant.rates = list(plant.means)
        plant.came.append(plant.rates)
        plant.selectivities = [share * 1.3 for share in plant.selectivities]
        request = adapter.observe(plant.run(adapter.budgets))
        if request is not None and (request.forced or request.current is None):
            adapter.decide(analyze(request))
    before = adapter.thresholds.change
    vain = replace(analyze(request), predicted=1.0, predicted_now=1.0, keeps_now=True)
    assert adapter.decide(vain) is None
    assert adapter.thresholds.change == pytest.approx(min(1.25 * before, MOST))
    assert adapter.thresholds.gain == 0.05


@pytest.mark.parametrize(("share", "rises"), [(0.2, True), (1.0, False)])
def test_p_rises_if_a_predicted_gain_does_not_come_true_and_falls_if_it_does(
    share: float,
    rises: bool,  # noqa: FBT001
) -> None:
    plant, adapter = limited(gain=None)
    run(plant, adapter, 60)
    adapter.thresholds.gain = 0.1
    plant.selectivities = SWITCHED
    followed = adapter.actuations
    while adapter.actuations == followed:
        run(plant, adapter, 1)
    action = adapter.thresholds._action
    assert action is not None
    model = adapter.model
    assert model is not None
    otherwise = model.flow_of_part(action.before, action.part).throughput
    made = (1 + share * action.gain) * otherwise + 1
    matches = [0.0] * LINEAR.count
    matches[LINEAR.top[0]] = made
    zeros = (0.0,) * LINEAR.count
    for cycle in range(6):
        adapter.thresholds.follow(Sample(cycle, 1.0, zeros, zeros, matches, zeros), model)
    assert (adapter.thresholds.gain > 0.1) == rises
    assert adapter.thresholds._action is None
