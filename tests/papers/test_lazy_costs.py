"""[Golab03, section 4.2]: Figures 2 and 3 against the cost model of the paper and against ours."""

from __future__ import annotations

from itertools import permutations

import pytest

from muntin.planner.lazy_orders import WindowStatistics, local_orders
from muntin.testing.join_counts import TABLE_5, TABLE_7, statistics_of
from muntin.testing.paper_costs.lazy_join import (
    general_lazy_work,
    lazy_work,
    naive_work,
    origin_first,
    paper_general_cost,
    paper_interval_cost,
)
from muntin.testing.paper_costs.multi_join import eager_cost

ORDERS = list(permutations(range(4)))
EQUAL = [WindowStatistics(1, 100, 50)] * 4
ONE_FAST = [*[WindowStatistics(1, 100, 50)] * 3, WindowStatistics(10, 1000, 50)]
INTERVALS = [1, 5, 10, 20, 30, 40, 50]


def paper_best(windows: list[WindowStatistics], interval: float) -> tuple[float, float, float]:
    """Return the cost of the best orders of NAIVE, LAZY and GENERAL LAZY."""
    naive = min(paper_general_cost([order] * 4, windows, interval) for order in ORDERS)
    lazy = min(paper_general_cost(origin_first(order, 4), windows, interval) for order in ORDERS)
    general = sum(
        min(paper_interval_cost(origin, order, windows, interval) for order in ORDERS)
        for origin in range(4)
    )
    return naive, lazy, general


def test_figure_2_naive_costs_many_times_as_much_from_three_windows_on_and_the_gap_widens() -> None:
    gaps = []
    for count in range(2, 9):
        windows = [WindowStatistics(1, 100, 50)] * count
        order = tuple(range(count))
        eager, naive = eager_cost(order, windows), paper_general_cost([order] * count, windows, 0)
        assert paper_general_cost(origin_first(order, count), windows, 0) == pytest.approx(eager)
        assert naive == pytest.approx(eager) if count == 2 else naive > 10 * eager
        gaps.append(naive - eager)
    assert gaps == sorted(gaps)


def test_figure_3a_with_equal_streams_the_new_rows_always_come_first_and_cost_grows() -> None:
    found = [paper_best(EQUAL, interval) for interval in INTERVALS]
    assert all(lazy == pytest.approx(general) for _, lazy, general in found)
    assert all(naive > lazy for naive, lazy, _ in found)
    lazies = [lazy for _, lazy, _ in found]
    assert lazies == sorted(lazies)
    ratios = [naive / lazy for naive, lazy, _ in found]
    assert ratios == sorted(ratios, reverse=True)


def test_figure_3b_with_one_fast_stream_lazy_loses_at_long_intervals() -> None:
    found = dict(
        zip(INTERVALS, (paper_best(ONE_FAST, interval) for interval in INTERVALS), strict=True)
    )
    for naive, lazy, general in found.values():
        assert general <= min(naive, lazy) * (1 + 1e-9)
    naive, lazy, general = found[1]
    assert lazy == pytest.approx(general)
    assert naive > 2 * lazy
    assert found[10][0] > found[10][1]
    assert found[20][0] < found[20][1]
    naive, lazy, general = found[50]
    assert naive < lazy
    assert naive == pytest.approx(general, rel=0.01)
    last = min(ORDERS, key=lambda order: paper_interval_cost(3, order, ONE_FAST, 50))
    assert last[-1] == 3


@pytest.mark.parametrize("windows", [statistics_of(TABLE_5), statistics_of(TABLE_7, 5), ONE_FAST])
def test_in_our_model_lazy_compares_as_eager_does_and_scans_more_rows_at_longer_intervals(
    windows: list[WindowStatistics],
) -> None:
    outermost = sum(window.rate for window in windows)
    for order in ORDERS:
        works = [lazy_work(order, windows, interval) for interval in (0, *INTERVALS)]
        assert [work.comparisons for work in works] == pytest.approx(
            [eager_cost(order, windows) + outermost] * len(works)
        )
        scanned = [work.scanned for work in works]
        assert scanned == sorted(set(scanned))


@pytest.mark.parametrize("windows", [statistics_of(TABLE_5), statistics_of(TABLE_7), ONE_FAST])
@pytest.mark.parametrize("interval", [0, 1, 10, 100])
def test_independent_local_orders_cost_no_more_than_any_other_algorithm(
    windows: list[WindowStatistics], interval: float
) -> None:
    orders = local_orders(windows, interval)
    general = general_lazy_work(orders, windows, interval).comparisons
    for order in ORDERS:
        assert general <= lazy_work(order, windows, interval).comparisons * (1 + 1e-9)
        assert general <= naive_work(order, windows, interval).comparisons * (1 + 1e-9)


def test_naive_row_by_row_is_the_limit_of_naive_as_the_interval_goes_to_zero() -> None:
    windows = statistics_of(TABLE_5)
    costs = [
        naive_work((0, 1, 2, 3), windows, interval).comparisons
        for interval in (0, 1e-9, 0.01, 1, 10)
    ]
    assert costs[1] == pytest.approx(costs[0])
    assert costs[1:] == sorted(costs[1:], reverse=True)
