from __future__ import annotations

from collections import deque
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.planner.lazy_orders import WindowStatistics
from muntin.testing.join_counts import TABLE_5, TABLE_7, PaperStream, make_streams, statistics_of
from muntin.testing.paper_costs.order_search import cheapest_tree
from muntin.testing.paper_costs.path import (
    StateCosts,
    half_way_cost,
    join_cost,
    joined,
    linear_tree,
    plan_cost,
    tree_cost,
)

ONLY_PROBES = StateCosts(probe=1, insert=0, purge=0)
NUMBERS = st.sampled_from([1.0, 2.0, 10.0, 500.0])
WINDOWS = st.lists(
    st.builds(WindowStatistics, NUMBERS, NUMBERS, NUMBERS, st.sampled_from([1, 5])),
    min_size=1,
    max_size=5,
)


def test_a_join_is_two_half_joins_of_probe_insert_and_purge() -> None:
    a, b = WindowStatistics(500, 5000, 1000, 4), WindowStatistics(700, 500, 1000)
    costs = StateCosts(probe=2, insert=3, purge=5)
    assert half_way_cost(a, b, costs) == 500 * (500 * 2 + 3 + 5)
    assert half_way_cost(b, a, costs) == 700 * (5000 / 4 * 2 + 3 + 5)
    assert join_cost(a, b, costs) == half_way_cost(a, b, costs) + half_way_cost(b, a, costs)


def test_an_intermediate_result_has_the_throughput_of_its_join() -> None:
    """Equation (1): each side's rate times the rows it matches on the other."""
    a, b = WindowStatistics(500, 5000, 1000), WindowStatistics(700, 500, 200)
    assert joined(a, b) == WindowStatistics(
        500 * 500 / 1000 + 700 * 5000 / 1000, 5000 * 500 / 1000, 200
    )


def test_a_bushy_tree_costs_its_three_joins() -> None:
    windows = statistics_of(TABLE_5)
    left, right = joined(windows[0], windows[1]), joined(windows[2], windows[3])
    parts = (
        join_cost(windows[0], windows[1])
        + join_cost(windows[2], windows[3])
        + join_cost(left, right)
    )
    assert plan_cost(((0, 1), (2, 3)), windows) == pytest.approx(parts)


@given(WINDOWS)
def test_a_linear_tree_costs_its_probes_and_one_insert_for_each_stored_row(
    windows: list[WindowStatistics],
) -> None:
    for order in permutations(range(len(windows))):
        inserted, stored = 0.0, windows[order[0]]
        for place in order[1:-1]:
            stored = joined(stored, windows[place])
            inserted += stored.rate
        probes = plan_cost(linear_tree(order), windows, ONLY_PROBES)
        assert tree_cost(order, windows, insert=3) == pytest.approx(probes + 3 * inserted)


@given(WINDOWS)
def test_the_cheapest_tree_is_found(windows: list[WindowStatistics]) -> None:
    found = cheapest_tree(windows)
    costs = [tree_cost(order, windows) for order in permutations(range(len(windows)))]
    assert found.cost == pytest.approx(min(costs))
    assert tree_cost(found.order, windows) == pytest.approx(found.cost)


def test_beyond_eight_windows_a_tree_is_found_too() -> None:
    windows = [WindowStatistics(1.0, 10.0 * (place + 1), 10) for place in range(9)]
    found = cheapest_tree(windows)
    assert sorted(found.order) == list(range(9))
    assert found.cost == tree_cost(found.order, windows)


@pytest.mark.parametrize("streams", [TABLE_5, TABLE_7])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 0, 3, 1), (3, 2, 1, 0)])
def test_a_simulated_tree_does_what_is_predicted(
    streams: tuple[PaperStream, ...], order: tuple[int, ...]
) -> None:
    assert simulate(streams, order, 600) == pytest.approx(
        tree_cost(order, statistics_of(streams)), rel=0.1
    )


def simulate(streams: tuple[PaperStream, ...], order: tuple[int, ...], seconds: int) -> float:
    """Return comparisons and inserts per second of a linear tree with stored results.

    The tree joins by nested loops; the numbers come from counting the rows of each value.
    """
    rows = []
    tables = make_streams(streams, seconds, 3)
    for place, table in enumerate(tables):
        times = table.column("ts").to_numpy().astype("int64") / 1e6
        rows += [
            (time, order.index(place), value)
            for time, value in zip(times, table.column("attr").to_pylist(), strict=True)
        ]
    rows.sort()
    begin = rows[-1][0] - seconds
    counts = np.zeros((len(streams), 1 + max(stream.distinct for stream in streams)))
    inside: list[deque[tuple[float, int]]] = [deque() for _ in streams]
    work = 0.0
    for time, level, value in rows:
        for other, held in enumerate(inside):
            while held and held[0][0] <= time - streams[order[other]].window:
                counts[other, held.popleft()[1]] -= 1
        if time > begin:
            # The row probes the stored results of all levels above it; the matches then probe one
            # level after the other.
            found = 1.0
            if level:
                work += counts[:level].prod(axis=0).sum()
                found = counts[:level, value].prod()
            for below in range(level + 1, len(streams)):
                work += found * (1 if below >= 2 else 0) + found * counts[below].sum()
                found *= counts[below, value]
        counts[level, value] += 1
        inside[level].append((time, value))
    return work / seconds
