"""The pace of batches: a state machine over measured batches, and machines that are simulated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from muntin.spark.driver.batch_costs import BatchCosts, MeasuredBatch
from muntin.spark.driver.batch_pacer import BatchPacer

INTERVAL, WINDOW, KEYS = 2.0, 4.0, 200


@dataclass(frozen=True)
class Machine:
    """A machine whose batches take a fixed time, a time per row and unit of work, and noise."""

    fixed: float
    per_row: float
    per_unit: float
    noise: float

    @classmethod
    def drawn(cls, seed: int) -> Machine:
        """Draw a machine: units from 0.1 to 3 microseconds, noise of up to a fifth."""
        drawn = np.random.default_rng(seed)
        return cls(
            drawn.uniform(0.1, 0.8),
            drawn.uniform(0.5e-6, 6e-6),
            10 ** drawn.uniform(-7, -5.5),
            drawn.uniform(0.05, 0.2),
        )

    def seconds(self, rows: float, work: float) -> float:
        return self.fixed + self.per_row * rows + self.per_unit * work

    def capacity(self) -> float:
        """Return the rows per second of each stream at which a batch takes an interval."""
        low, high = 1.0, 1e6
        for _ in range(50):
            middle = float(np.sqrt(low * high))
            fits = self.seconds(3 * middle * INTERVAL, demand(middle, INTERVAL)) < INTERVAL
            low, high = (middle, high) if fits else (low, middle)
        return low


def demand(rate: float, span: float) -> float:
    """Return the work of a three-way join: it grows with the cube of the rate."""
    found = rate * WINDOW / KEYS
    return 3 * rate * span * (1 + 2 * found + found**2)


@dataclass(frozen=True)
class Ran:
    """A simulated batch: when it began, its duration, and the share of the work that it did."""

    began: float
    seconds: float
    share: float


def simulate(machine: Machine, load: Callable[[float], float], seed: int) -> list[Ran]:
    """Run batches for 110 seconds under a load, which is a multiple of the capacity."""
    drawn, capacity = np.random.default_rng(seed), machine.capacity()
    pacer, ran = BatchPacer(INTERVAL), list[Ran]()
    now, before = 0.0, -INTERVAL
    while now < 110:
        span, rate = now - before, capacity * load(now)
        limit, wanted = pacer.work(), demand(rate, span)
        assert limit is not None
        done = min(wanted, limit * span)
        rows = 3 * rate * span
        seconds = machine.seconds(rows, done) * (1 + drawn.uniform(-1, 1) * machine.noise)
        pacer.learn(MeasuredBatch(seconds, rows, done, span, span if ran else 0.0))
        ran.append(Ran(now, seconds, done / wanted))
        before, now = now, max(now + seconds, (now // INTERVAL + 1) * INTERVAL)
    return ran


@pytest.mark.parametrize("rise", [0.0, 20.0], ids=["jump", "ramp"])
@pytest.mark.parametrize("over", [1.5, 2.0, 3.0, 5.0])
def test_every_batch_ends_within_the_interval_whatever_the_load(over: float, rise: float) -> None:
    def load(second: float) -> float:
        inside = min(second - 16, 76 - second)
        risen = min(max(inside / rise, 0.0), 1.0) if rise else float(inside >= 0)
        return 0.5 + (over - 0.5) * risen

    for seed in range(40):
        ran = simulate(Machine.drawn(seed), load, seed)
        assert max(batch.seconds for batch in ran) <= INTERVAL, f"machine {seed}"
        calm = [batch.share for batch in ran if 8 <= batch.began < 16 or batch.began >= 80]
        assert min(calm) == 1, "all is done before, and at once after"
        during = [batch.share for batch in ran if 40 <= batch.began < 50]
        assert 0 < max(during) < 1


def test_costs_are_found_from_batches_that_differ() -> None:
    drawn, costs = np.random.default_rng(1), BatchCosts()
    for _ in range(12):
        rows, work = drawn.uniform(1e3, 1e5), drawn.uniform(1e4, 1e6)
        costs.learn(MeasuredBatch(0.4 + 3e-6 * rows + 1e-6 * work, rows, work))
    assert costs.costs == pytest.approx((0.4, 3e-6, 1e-6), rel=0.1)
    assert costs.margin() == 1.4, "there is always some"


def test_batches_that_are_alike_do_not_make_a_cost_negative_or_work_free() -> None:
    costs = BatchCosts()
    for _ in range(12):
        costs.learn(MeasuredBatch(1.0, 5_000, 100_000))
    assert min(costs.costs) >= 0
    assert costs.seconds(5_000, 100_000) == pytest.approx(1.0, rel=0.05)
    assert costs.costs[2] > 1e-7


def test_a_batch_that_took_longer_than_predicted_leaves_a_margin_for_the_next_ones() -> None:
    costs = BatchCosts()
    for _ in range(6):
        costs.learn(MeasuredBatch(1.0, 5_000, 500_000))
    before = costs.work_in(1.8, 5_000)
    costs.learn(MeasuredBatch(2.5, 5_000, 500_000))
    assert costs.margin() > 1.8
    assert costs.work_in(1.8, 5_000) < before / 2


def test_the_limit_is_for_the_event_time_that_the_next_batch_covers() -> None:
    limits = {}
    for speed in (1.0, 100.0):
        pacer = BatchPacer(INTERVAL)
        for _ in range(4):
            pacer.learn(MeasuredBatch(1.0, 5_000, 500_000, 2 * speed, 2.0))
        pacer.learn(MeasuredBatch(1.0, 5_000, 500_000, 3_600.0, 2.0))
        limits[speed] = pacer.work() or 0.0
    assert limits[1.0] == pytest.approx(100 * limits[100.0]), "silence does not count"


def test_work_is_never_stopped_although_rows_take_all_the_time() -> None:
    pacer = BatchPacer(INTERVAL)
    for seconds in (3.0, 4.0, 5.0):
        pacer.learn(MeasuredBatch(seconds, 1e6 * seconds, 10.0, 2.0, 2.0))
    assert (pacer.work() or 0.0) > 0


def test_without_an_interval_there_is_no_limit_and_empty_batches_teach_nothing() -> None:
    assert BatchPacer(0.0).work() is None
    pacer = BatchPacer(INTERVAL)
    before = pacer.work()
    for batch in (MeasuredBatch(9.0, 0, 0), MeasuredBatch(0.0, 10, 10)):
        pacer.learn(batch)
    assert pacer.work() == before
