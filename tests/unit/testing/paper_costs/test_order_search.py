from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.planner.lazy_orders import WindowStatistics, by_selectivity, by_window_size
from muntin.testing.paper_costs.multi_join import eager_cost, origin_cost
from muntin.testing.paper_costs.order_search import augmented, exhaustive, search

NUMBERS = st.sampled_from([1.0, 2.0, 10.0, 500.0])
WINDOWS = st.lists(
    st.builds(WindowStatistics, NUMBERS, NUMBERS, NUMBERS, st.sampled_from([1, 5])),
    min_size=1,
    max_size=5,
)


@given(WINDOWS)
def test_the_best_of_all_orders_is_found(windows: list[WindowStatistics]) -> None:
    best, *rest = exhaustive(windows)
    costs = [eager_cost(order, windows) for order in permutations(range(len(windows)))]
    assert best.cost == pytest.approx(min(costs))
    assert len(rest) + 1 == len(costs)
    assert search(windows)[0] == best


@given(WINDOWS)
def test_heuristics_give_orders_of_all_windows_and_never_a_better_cost(
    windows: list[WindowStatistics],
) -> None:
    everything = list(range(len(windows)))
    best = exhaustive(windows)[0].cost
    for order in (
        by_window_size(windows),
        by_selectivity(windows),
        *(candidate.order for candidate in augmented(windows)),
    ):
        assert sorted(order) == everything
        assert eager_cost(order, windows) >= best * (1 - 1e-9)
    assert augmented(windows)[0].cost <= eager_cost(by_selectivity(windows), windows) * (1 + 1e-9)


def test_a_new_row_probes_each_bucket_once_per_partial_match() -> None:
    windows = [
        WindowStatistics(1, 10, 10),
        WindowStatistics(1, 20, 5, 4),
        WindowStatistics(1, 30, 30),
    ]
    # 20 / 4 rows of one bucket, 20 / 10 matches of 5 values, 30 rows for each of them
    assert origin_cost(0, [1, 2], windows) == 20 / 4 + 20 / 10 * 30
    assert origin_cost(0, [2, 1], windows) == 30 + 30 / 30 * 20 / 4
    assert eager_cost([0], windows[:1]) == 0


def test_many_windows_are_searched_by_the_heuristic() -> None:
    windows = [
        WindowStatistics(1.0 + (place == 8) * 50, 10.0 * (place + 1), 10) for place in range(9)
    ]
    candidates = search(windows)
    assert len(candidates) < 100
    assert candidates[0].cost == min(candidate.cost for candidate in candidates)


def test_many_fast_streams_among_many_windows_are_searched_within_bounds() -> None:
    windows = [
        WindowStatistics(float(place % 2) * 100, 10.0 * (place + 1), 10) for place in range(16)
    ]
    candidates = search(windows)
    assert 100 < len(candidates) <= 1_000
    assert candidates[0].cost <= eager_cost(by_selectivity(windows), windows) * (1 + 1e-9)
    assert {candidate.order[0] for candidate in candidates} > {by_selectivity(windows)[0]}
