from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.planner.lazy_orders import (
    WindowStatistics,
    Work,
    batches_a_second,
    interval_work,
    local_orders,
)
from muntin.testing.paper_costs.lazy_join import (
    general_lazy_work,
    lazy_work,
    naive_work,
    paper_interval_cost,
)

NUMBERS = st.sampled_from([0.5, 2.0, 10.0, 500.0])
WINDOWS = st.lists(
    st.builds(WindowStatistics, NUMBERS, NUMBERS, NUMBERS, st.sampled_from([1, 5])),
    min_size=1,
    max_size=5,
)
INTERVALS = st.sampled_from([0.0, 0.1, 5.0, 1000.0])


def test_each_loop_runs_over_what_is_stored_above_and_what_is_inside_below() -> None:
    windows = [
        WindowStatistics(100, 1000, 10),
        WindowStatistics(2, 20, 5),
        WindowStatistics(3, 30, 10),
    ]
    # Every 10 seconds 1000 new rows of stream 0 meet 20 + 2 * 10 rows of stream 1 and, inside the
    # window, 30 rows of stream 2.
    pairs = 40 * 1000
    matched = pairs / 10 * (20 / 40)
    compared = 40 + pairs + matched * 30
    looked_at = compared + matched * (3 * 10 / 2)
    work = interval_work(0, [1, 0, 2], windows, 10)
    assert (work.comparisons, work.scanned) == pytest.approx((compared / 10, looked_at / 10))
    assert paper_interval_cost(0, [1, 0, 2], windows, 10) == pytest.approx(
        (pairs + pairs / 10 * 60) / 10
    )


def test_all_windows_but_the_outermost_are_probed_by_bucket() -> None:
    windows = [WindowStatistics(1, 100, 50, 5), WindowStatistics(1, 100, 50, 5)]
    assert interval_work(1, [0, 1], windows, 0) == Work(100 + 100 / 5, 100 + 100 / 5)


def test_intervals_without_new_rows_cost_nothing() -> None:
    assert batches_a_second(0.001, 10) == pytest.approx(0.001, rel=0.01)
    assert batches_a_second(1000, 10) == pytest.approx(0.1)
    assert batches_a_second(0, 10) == 0
    windows = [WindowStatistics(0, 0, 1), WindowStatistics(7, 70, 7)]
    assert interval_work(0, [1, 0], windows, 10) == Work(0, 0)


@given(WINDOWS, INTERVALS)
def test_local_orders_are_the_cheapest_for_each_origin(
    windows: list[WindowStatistics], interval: float
) -> None:
    for origin, order in enumerate(local_orders(windows, interval)):
        costs = [
            interval_work(origin, other, windows, interval).comparisons
            for other in permutations(range(len(windows)))
        ]
        mine = interval_work(origin, order, windows, interval).comparisons
        assert mine == pytest.approx(min(costs))


def test_many_windows_get_likely_local_orders() -> None:
    windows = [
        WindowStatistics(1.0 + (place == 8) * 50, 10.0 * (place + 1), 10) for place in range(9)
    ]
    found = local_orders(windows, 5)
    assert all(sorted(order) == list(range(9)) for order in found)
    assert general_lazy_work(found, windows, 5).comparisons <= lazy_work(
        sorted(range(9), key=lambda place: windows[place].rows), windows, 5
    ).comparisons * (1 + 1e-9)


@given(WINDOWS, INTERVALS)
def test_naive_and_lazy_are_cases_of_general_lazy(
    windows: list[WindowStatistics], interval: float
) -> None:
    order = tuple(range(len(windows)))
    assert naive_work(order, windows, interval) == general_lazy_work(
        [order] * len(windows), windows, interval
    )
    best = general_lazy_work(local_orders(windows, interval), windows, interval)
    assert lazy_work(order, windows, interval).comparisons >= best.comparisons * (1 - 1e-9)
