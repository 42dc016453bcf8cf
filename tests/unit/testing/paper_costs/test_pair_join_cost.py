from __future__ import annotations

from math import inf

import pytest

from muntin.model.settings import Expiry
from muntin.planner.lazy_orders import WindowStatistics
from muntin.testing.paper_costs.pair_join import (
    PairCosts,
    expiry_checks,
    half_cost,
    pair_cost,
    pair_work,
    stale_rows,
)

COSTS = PairCosts(invalidate=3, scan=0.5, insert=7)


def test_equal_sides_cost_twice_the_half_and_match_the_printed_equation() -> None:
    side = WindowStatistics(20, 20 * 30, 100, 10)
    assert pair_cost(side, side, COSTS) == 2 * half_cost(side, side, COSTS)
    assert pair_cost(side, side, COSTS) == pytest.approx(
        (20 + 20) * (3 + 7) + 20 * 20 / 10 * (30 + 30) * 0.5
    )


def test_unequal_sides_have_separate_rates_windows_and_buckets() -> None:
    a, b = WindowStatistics(40, 40 * 30, 100, 10), WindowStatistics(15, 15 * 12, 100, 50)
    # rows of A: 15 old rows of B go, 40 look at 180 / 50 each, 40 are inserted
    assert half_cost(a, b, COSTS) == pytest.approx(15 * 3 + 40 * 180 / 50 * 0.5 + 40 * 7)
    assert half_cost(b, a, COSTS) == pytest.approx(40 * 3 + 15 * 1200 / 10 * 0.5 + 15 * 7)
    assert pair_cost(a, b, COSTS) == half_cost(a, b, COSTS) + half_cost(b, a, COSTS)


def test_more_buckets_than_values_gain_nothing() -> None:
    costs = [
        pair_cost(
            WindowStatistics(20, 600, 100, buckets),
            WindowStatistics(20, 600, 100, buckets),
            PairCosts(0, 1, 0),
        )
        for buckets in (50, 100, 200, 10_000)
    ]
    assert costs == [480, 240, 240, 240]


@pytest.mark.parametrize(
    ("strategy", "stale", "checks"),
    [
        (Expiry.PROBE, 50 * 20 / 10, 20 + 10),
        (Expiry.PROBE_INSERT, 50 * 20 / 30, 20 + 10 + 20),
        (Expiry.PROBE_ALL, 20 / 10, 20 + 10 * 50),
        (Expiry.ALL, 20 / 30, 20 + 30 * 50),
    ],
)
def test_strategies_hold_and_compare_as_in_the_table_of_the_module(
    strategy: Expiry, stale: float, checks: float
) -> None:
    own, other = WindowStatistics(20, 20_000, 1000, 50), WindowStatistics(10, 10_000, 1000, 50)
    assert stale_rows(strategy, own, other) == pytest.approx(stale)
    assert expiry_checks(strategy, own, other) == pytest.approx(checks)
    work = pair_work(strategy, own, other)
    assert work.stale_rows == stale_rows(strategy, own, other) + stale_rows(strategy, other, own)
    assert work.comparisons == pytest.approx(20 * 10_000 / 50 + 10 * 20_000 / 50)


def test_an_empty_bucket_is_not_compared() -> None:
    own, other = WindowStatistics(1, 1, 1000, 1000), WindowStatistics(1, 1, 1000, 1000)
    assert expiry_checks(Expiry.PROBE_ALL, own, other) == pytest.approx(1 + 1, rel=0.001)


def test_without_probes_old_rows_accumulate() -> None:
    own, silent = WindowStatistics(5, 50, 10, 10), WindowStatistics(0, 0, 10, 10)
    assert stale_rows(Expiry.PROBE, own, silent) == inf
    assert expiry_checks(Expiry.PROBE, own, silent) == 0
    assert stale_rows(Expiry.PROBE_INSERT, own, silent) == 10
    assert stale_rows(Expiry.PROBE, silent, silent) == 0
