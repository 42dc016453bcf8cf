"""No statistic makes a cost model crash, divide by zero, or return something not a number."""

from __future__ import annotations

from math import inf, isnan, nan
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from muntin.model.settings import Expiry
from muntin.planner.lazy_orders import (
    WindowStatistics,
    by_selectivity,
    by_window_size,
    local_orders,
)
from muntin.testing.paper_costs.lazy_join import (
    general_lazy_work,
    lazy_work,
    naive_work,
    paper_general_cost,
)
from muntin.testing.paper_costs.multi_join import eager_cost, origin_cost
from muntin.testing.paper_costs.order_search import augmented, cheapest_tree, search
from muntin.testing.paper_costs.pair_join import PairCosts, half_cost, pair_cost, pair_work
from muntin.testing.paper_costs.path import (
    StateCosts,
    join_cost,
    joined,
    linear_tree,
    plan_cost,
    tree_cost,
)

NUMBERS = st.one_of(
    st.floats(),
    st.sampled_from(
        [0.0, -0.0, -1.0, 5e-324, 1e-300, 1e-9, 1.0, 1e15, 1e300, 1.7e308, inf, -inf, nan]
    ),
    st.integers(-5, 10**30),
)
STATISTICS = st.builds(WindowStatistics, NUMBERS, NUMBERS, NUMBERS, NUMBERS)
STRATEGIES = [strategy for strategy in Expiry if strategy.cleans_buckets]


def assert_costs(*costs: float) -> None:
    for cost in costs:
        assert not isnan(cost)
        assert cost >= 0


@given(st.lists(STATISTICS, min_size=1, max_size=16), NUMBERS, st.randoms(use_true_random=False))
def test_costs_of_multi_way_joins(
    windows: list[WindowStatistics], interval: float, random: Random
) -> None:
    places = range(len(windows))
    order = list(places)
    random.shuffle(order)
    assert_costs(
        eager_cost(order, windows), *(origin_cost(origin, order, windows) for origin in places)
    )
    for work in (
        lazy_work(order, windows, interval),
        naive_work(order, windows, interval),
        naive_work(order, windows),
    ):
        assert_costs(work.comparisons, work.scanned)
    general = general_lazy_work([order] * len(windows), windows, interval)
    assert_costs(
        general.comparisons,
        general.scanned,
        paper_general_cost([order] * len(windows), windows, interval),
    )
    assert_costs(tree_cost(order, windows, interval), plan_cost(linear_tree(order), windows))


@given(
    st.lists(STATISTICS, min_size=1, max_size=9).filter(
        lambda windows: len(windows) not in {6, 7, 8}
    ),
    NUMBERS,
)
def test_order_searches(windows: list[WindowStatistics], interval: float) -> None:
    places = list(range(len(windows)))
    assert sorted(by_window_size(windows)) == sorted(by_selectivity(windows)) == places
    for candidate in (*search(windows)[:3], *augmented(windows)[:3], cheapest_tree(windows)):
        assert sorted(candidate.order) == places
        assert_costs(candidate.cost)
    found = local_orders(windows, interval)
    assert all(sorted(order) == places for order in found)
    assert_costs(general_lazy_work(found, windows, interval).comparisons)


@given(
    STATISTICS,
    STATISTICS,
    st.builds(PairCosts, NUMBERS, NUMBERS, NUMBERS),
    st.builds(StateCosts, NUMBERS, NUMBERS, NUMBERS),
)
def test_costs_of_pairs(
    left: WindowStatistics, right: WindowStatistics, pair: PairCosts, state: StateCosts
) -> None:
    assert_costs(
        half_cost(left, right, pair), pair_cost(left, right, pair), join_cost(left, right, state)
    )
    result = joined(left, right)
    assert_costs(result.rate, result.rows, result.distinct, result.buckets)
    for strategy in STRATEGIES:
        work = pair_work(strategy, left, right)
        assert_costs(work.comparisons, work.expiry_checks, work.stale_rows)
