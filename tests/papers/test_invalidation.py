"""[Kostowski06]: WNL and WHJ, four invalidation strategies, counts against its formulas."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest

import muntin
from muntin.model.settings import Expiry
from muntin.planner.lazy_orders import WindowStatistics
from muntin.testing.generators import uniform_stream
from muntin.testing.paper_costs.pair_join import PairCosts, pair_cost, pair_work, stale_rows

STRATEGIES = ["probe", "probe_insert", "probe_all", "all"]
KEYS = 100
WINDOW = 30
ONLY_SCANS = PairCosts(invalidate=0, scan=1, insert=0)


def run(
    rate_a: int, rate_b: int, seconds: int, **settings: str
) -> tuple[dict[str, int], float, pa.Table]:
    """Return counted work, the average number of stale rows held, and results.

    Stale rows are sampled every second once windows are full.
    """
    return run_sides({"A": Side(rate_a, WINDOW), "B": Side(rate_b, WINDOW)}, seconds, **settings)


@dataclass(frozen=True)
class Side:
    """One side of a join: rows per second, seconds of its window, buckets."""

    rate: int
    window: int
    buckets: int = KEYS

    @property
    def statistics(self) -> WindowStatistics:
        return WindowStatistics(self.rate, self.rate * self.window, KEYS, self.buckets)


def run_sides(
    sides: dict[str, Side], seconds: int, **settings: str
) -> tuple[dict[str, int], float, pa.Table]:
    engine = muntin.Engine(**settings)
    for name in "AB":
        engine.stream(name, {"k": "bigint", "v": "double", "ts": "timestamp"}, time="ts")
    froms = ", ".join(f"{name} [RANGE {side.window} SECONDS]" for name, side in sides.items())
    q = engine.query(f"SELECT A.k, A.v AS av, B.v AS bv FROM {froms} WHERE A.k = B.k")
    streams = {
        name: uniform_stream(side.rate * seconds, side.rate, KEYS, seed)
        for seed, (name, side) in enumerate(sides.items(), 1)
    }
    stale = []
    for second in range(seconds):
        for name, rows in streams.items():
            engine.push(name, rows.slice(second * sides[name].rate, sides[name].rate))
        engine.advance((second + 1) * 1_000_000 - 1)
        if second >= WINDOW:
            held = q.stats()["stale_rows_held"]
            assert isinstance(held, int)
            stale.append(held)
    work = q.stats()["work"]
    assert isinstance(work, dict)
    return work, sum(stale) / len(stale), q.poll()


def work_a_second(sides: dict[str, Side], **settings: str) -> dict[str, float]:
    """Return the counted work per second with full windows."""
    full, filling = (
        run_sides(sides, seconds, **settings)[0] for seconds in (3 * WINDOW, 2 * WINDOW)
    )
    return {name: (full[name] - filling[name]) / WINDOW for name in full}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_strategies_give_the_results_of_our_own_expiry(strategy: str) -> None:
    expected = run(20, 10, 60)[2]
    assert len(expected) > 1_000
    for settings in ({"buckets": str(KEYS)}, {"buckets": "7"}, {"join": "nested_loop"}):
        assert run(20, 10, 60, expiry=strategy, **settings)[2].equals(expected)


def test_nested_loops_are_a_hash_join_of_one_bucket() -> None:
    nested, _, _ = run(20, 10, 60, join="nested_loop", expiry="probe_insert")
    hashed, _, _ = run(20, 10, 60, join="hash", buckets="1", expiry="probe_insert")
    assert nested == hashed


@pytest.mark.parametrize("buckets", [1, 10, 100])
def test_scans_follow_equations_1_and_2(buckets: int) -> None:
    """Scan rate A * rate B * (window A + window B) / buckets rows per second with full windows."""
    sides = {"A": Side(40, WINDOW, buckets), "B": Side(20, WINDOW, buckets)}
    settings = {"join": "nested_loop"} if buckets == 1 else {"buckets": str(buckets)}
    left, right = (side.statistics for side in sides.values())
    predicted = pair_cost(left, right, ONLY_SCANS)
    assert predicted == pytest.approx(40 * 20 * 2 * WINDOW / buckets)
    assert work_a_second(sides, expiry="probe_insert", **settings)["comparisons"] == pytest.approx(
        predicted, rel=0.1
    )


UNEQUAL = {"A": Side(40, 30, 10), "B": Side(15, 12, 50)}


@pytest.mark.parametrize(
    "sides",
    [UNEQUAL, {"A": UNEQUAL["B"], "B": UNEQUAL["A"]}, {"A": Side(10, 30), "B": Side(10, 30)}],
)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_strategy_compares_as_often_as_predicted_on_unequal_sides(
    strategy: str, sides: dict[str, Side]
) -> None:
    buckets = ", ".join(f"{name} = {side.buckets}" for name, side in sides.items())
    counted = work_a_second(sides, expiry=strategy, buckets=buckets)
    predicted = pair_work(Expiry(strategy), *(side.statistics for side in sides.values()))
    assert counted["comparisons"] == pytest.approx(predicted.comparisons, rel=0.1)
    assert counted["expiry_checks"] == pytest.approx(predicted.expiry_checks, rel=0.1)


@pytest.mark.parametrize("strategy", ["probe", "probe_insert"])
def test_invalidation_needs_one_comparison_more_than_it_finds_stale_rows(strategy: str) -> None:
    work, _, _ = run(20, 20, 60, expiry=strategy, buckets=str(KEYS))
    cleanings = work["expiry_checks"] - work["rows_expired"]
    arrivals = work["rows_inserted"]
    # One final comparison per cleaning, unless the bucket was or became empty.
    assert 0 < cleanings <= arrivals * (2 if strategy == "probe_insert" else 1)
    assert work["rows_expired"] > 0


def test_stale_rows_accumulate_as_the_formulas_predict() -> None:
    """Expect N * rate B / rate A stale rows in all buckets of B under probe.

    Under probe and insert it is N * rate B / (rate A + rate B).
    """
    sides = {"A": Side(4, WINDOW), "B": Side(40, WINDOW)}
    a, b = (side.statistics for side in sides.values())
    held = {
        strategy: run_sides(sides, 150, expiry=strategy, buckets=str(KEYS))[1]
        for strategy in STRATEGIES
    }
    assert stale_rows(Expiry.PROBE, b, a) == KEYS * 40 / 4
    assert stale_rows(Expiry.PROBE_INSERT, b, a) == pytest.approx(KEYS * 40 / 44)
    for strategy in (Expiry.PROBE, Expiry.PROBE_INSERT):
        assert held[strategy] == pytest.approx(pair_work(strategy, a, b).stale_rows, rel=0.25)
    assert held["all"] <= held["probe_all"] < held["probe_insert"] < held["probe"]


def test_greedy_strategies_pay_a_comparison_for_every_bucket() -> None:
    work = {
        strategy: run(10, 10, 60, expiry=strategy, buckets=str(KEYS))[0]["expiry_checks"]
        for strategy in STRATEGIES
    }
    assert work["probe"] < work["probe_insert"] < work["probe_all"] < work["all"]
    assert work["all"] > 10 * work["probe_insert"]
