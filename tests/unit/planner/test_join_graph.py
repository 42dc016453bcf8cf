"""Estimates on join graphs, with exact searches and robustness against absurd numbers.

Where one attribute is common, the formula of [Golab03] holds.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.model.statistics import JoinStatistics, SourceStatistics
from muntin.planner.choices import ChoiceLimits, choose, least_work
from muntin.planner.index_choice import BUCKET_BYTES, within_memory, without_needless
from muntin.planner.join_graph import JoinGraph
from muntin.planner.lazy_orders import WindowStatistics
from muntin.planner.local_orders import MOST_EXACT, along, best_order, best_orders, order_cost
from muntin.planner.tree_choice import TreeShape, Worth, best_tree, sources_of, tree_cost
from muntin.planner.unit_costs import DEFAULT_COSTS, UnitCosts
from muntin.testing.paper_costs.multi_join import eager_cost

TABLE5 = [(10.0, 1000.0, 500.0), (1.0, 100.0, 50.0), (1.0, 200.0, 40.0), (3.0, 300.0, 5.0)]
SCANS = UnitCosts(probe=0.0, scanned=1.0, chained=1.0, check=0.0, sort=0.0)

numbers = st.one_of(
    st.floats(0.01, 1e6), st.sampled_from([0.0, 1e-300, 1e300, float("inf"), float("nan"), -5.0])
)
sources = st.tuples(numbers, numbers, numbers)


def common(windows: list[tuple[float, float, float]], buckets: int = 1) -> JoinGraph:
    """Return a join on one attribute."""
    statistics = JoinStatistics(
        tuple(SourceStatistics(rate, rows, (values,)) for rate, rows, values in windows)
    )
    return JoinGraph(
        statistics, (frozenset((s, 0) for s in range(len(windows))),), (), (buckets,) * len(windows)
    )


def chain(windows: list[tuple[float, float, float]], buckets: int = 0) -> JoinGraph:
    """Return a join of every source with the next, each on a separate code."""
    statistics = JoinStatistics(
        tuple(SourceStatistics(rate, rows, (values, values)) for rate, rows, values in windows)
    )
    classes = tuple(frozenset({(s, 1), (s + 1, 0)}) for s in range(len(windows) - 1))
    return JoinGraph(statistics, classes, (), (buckets,) * len(windows))


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_scanning_windows_on_one_attribute_costs_as_in_golab03(order: tuple[int, ...]) -> None:
    paper = eager_cost(order, [WindowStatistics(*window) for window in TABLE5])
    assert along(common(TABLE5), order, SCANS).looked == pytest.approx(paper)
    assert along(common(TABLE5), order, SCANS).time == pytest.approx(paper)


def test_one_order_per_origin_is_never_worse_than_the_best_global_order() -> None:
    assert best_orders(common(TABLE5), SCANS).time <= 16_000


@given(
    st.lists(st.tuples(*[st.floats(0.1, 1e4)] * 3), min_size=2, max_size=5),
    st.sampled_from([common, chain]),
    st.sampled_from([0, 1, 5]),
)
def test_the_search_over_sets_finds_the_best_of_all_orders(
    windows: list[tuple[float, float, float]], shape: object, buckets: int
) -> None:
    assert callable(shape)
    graph: JoinGraph = shape(windows, buckets)
    for origin in range(graph.count):
        found = best_order(graph, origin, DEFAULT_COSTS)
        rest = [source for source in range(graph.count) if source != origin]
        best = min(
            order_cost(graph, (origin, *order), DEFAULT_COSTS).time for order in permutations(rest)
        )
        assert found.time == pytest.approx(best, rel=1e-6)


def test_beyond_the_exact_search_orders_follow_the_graph() -> None:
    count = MOST_EXACT + 2
    graph = chain([(1.0, 100.0 + s, 10.0) for s in range(count)])
    order = best_order(graph, 3, replace(DEFAULT_COSTS, sort=0.0)).order
    assert sorted(order) == list(range(count))
    assert all(
        any(abs(source - other) == 1 for other in order[:place])
        for place, source in enumerate(order)
        if place
    )


def shapes(members: tuple[int, ...]) -> list[TreeShape]:
    if len(members) == 1:
        return [members[0]]
    found: list[TreeShape] = []
    for mask in range(1, 2 ** (len(members) - 1)):
        left = tuple(m for place, m in enumerate(members) if not mask >> place & 1)
        right = tuple(m for place, m in enumerate(members) if mask >> place & 1)
        found += [(one, other) for one in shapes(left) for other in shapes(right)]
    return found


@given(
    st.lists(st.tuples(*[st.floats(0.1, 1e4)] * 3), min_size=3, max_size=4),
    st.sampled_from([common, chain]),
)
def test_the_best_tree_is_the_best_of_all_shapes(
    windows: list[tuple[float, float, float]], shape: object
) -> None:
    assert callable(shape)
    graph: JoinGraph = shape(windows, 0)
    found = best_tree(graph, DEFAULT_COSTS)
    assert found is not None
    assert sorted(sources_of(found.shape)) == list(range(graph.count))
    assert found.time == pytest.approx(
        min(
            tree_cost(graph, each, DEFAULT_COSTS).time for each in shapes(tuple(range(graph.count)))
        )
    )
    again = best_tree(graph, DEFAULT_COSTS, Worth(found.time, found.kept))
    assert again is not None
    assert again.time == found.time
    assert best_tree(graph, DEFAULT_COSTS, Worth(0.99 * found.time)) is None


@given(
    st.lists(sources, min_size=1, max_size=5),
    st.sampled_from([common, chain]),
    st.sampled_from([0, 1, 7]),
    st.integers(1, 10**6),
)
def test_absurd_statistics_give_plans_and_finite_numbers(
    windows: list[tuple[float, float, float]], shape: object, buckets: int, memory: int
) -> None:
    assert callable(shape)
    graph: JoinGraph = shape(windows, buckets)
    for limits in (
        ChoiceLimits(tree_allowed=True),
        ChoiceLimits(memory=memory),
        ChoiceLimits(orders=best_orders(graph, DEFAULT_COSTS).orders),
    ):
        choice = choose(graph, limits, DEFAULT_COSTS, [f"S{s}" for s in range(graph.count)])
        assert isfinite(choice.prediction.cost)
        assert isfinite(choice.prediction.work)
        assert least_work(graph, limits, DEFAULT_COSTS) == choice.prediction.work
        assert all(sorted(order) == list(range(graph.count)) for order in choice.orders)
        if limits.memory is not None:
            given = [
                number
                for place, number in enumerate(choice.buckets)
                if number > 1 and graph.buckets[place] != number
            ]
            assert sum(given) * BUCKET_BYTES <= memory


def test_a_window_of_few_rows_is_scanned() -> None:
    small = common([(10.0, 50.0, 1_000.0), (10.0, 1.0, 1_000.0), (10.0, 50.0, 1_000.0)], 0)
    assert without_needless(small, DEFAULT_COSTS).buckets == (0, 1, 0)
    assert without_needless(common(TABLE5, 0), DEFAULT_COSTS).buckets == (0, 0, 0, 0)


def test_the_window_of_a_fast_stream_gets_more_buckets() -> None:
    """[Golab03, section 6.5]: three streams of rate 1, one fifty times faster.

    Windows have 100 rows, and 48 buckets are divided among them.
    """
    graph = common([(1.0, 100.0, 50.0)] * 3 + [(50.0, 5_000.0, 50.0)], 0)
    buckets = within_memory(graph, DEFAULT_COSTS, 48 * BUCKET_BYTES).buckets
    assert sum(buckets) <= 48
    assert buckets[3] > max(buckets[:3])
    equal = best_orders(graph.having([12] * 4), DEFAULT_COSTS).time
    assert best_orders(graph.having(buckets), DEFAULT_COSTS).time < equal
