"""Looking for a cheap global join order [Golab03, section 5.1].

Three ways: ascending size of the windows, descending selectivity of the joins, and that order with
fast streams moved up, as far as it pays. Up to eight windows all orders are looked at; the
heuristics serve beyond. The planner finds an order for each origin instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from muntin.planner.lazy_orders import MOST_EXHAUSTIVE, WindowStatistics, by_selectivity
from muntin.planner.orders import Order
from muntin.testing.paper_costs.multi_join import eager_cost
from muntin.testing.paper_costs.path import joined, probe_cost, tree_cost

_MOST_ORDERS = 1_000
_FAST = 2.0
"""A stream is fast if its rate is at least this multiple of the median of all rates."""


@dataclass(frozen=True)
class Candidate:
    """An order and what it costs."""

    cost: float
    order: Order


def augmented(windows: Sequence[WindowStatistics]) -> list[Candidate]:
    """Return the order by selectivity and those with fast streams moved up, cheapest first.

    There are about n**f of them.

    Where that would be too many, only the fastest streams are moved.
    """
    start = by_selectivity(windows)
    rates = [window.rate for window in windows]
    fast = [place for place in start if rates[place] > 0 and rates[place] >= _FAST * median(rates)]
    orders = {start}
    for place in sorted(fast, key=lambda place: -rates[place]):
        more = orders | {moved for order in orders for moved in _moved_up(order, place)}
        if len(more) > _MOST_ORDERS:
            break
        orders = more
    return ranked(sorted(orders), windows)


def _moved_up(order: Order, place: int) -> Iterator[Order]:
    at = order.index(place)
    for target in range(at):
        rest = order[:at] + order[at + 1 :]
        yield (*rest[:target], place, *rest[target:])


def exhaustive(windows: Sequence[WindowStatistics]) -> list[Candidate]:
    """Return all orders, cheapest first.

    A window costs the same after all orders of the same windows above it, so it is computed once
    for each set of them.
    """
    places = range(len(windows))
    loops = _loop_costs(windows)
    found: list[tuple[float, Order, int]] = [(0.0, (), 0)]
    for _ in places:
        found = [
            (cost + loops[above][place], (*order, place), above | 1 << place)
            for cost, order, above in found
            for place in places
            if not above >> place & 1
        ]
    return _sorted([Candidate(cost, order) for cost, order, _ in found])


def _loop_costs(windows: Sequence[WindowStatistics]) -> list[list[float]]:
    """Return the cost per second of every window after each set of windows, over all origins.

    A set has one bit per window.
    """
    sets = 1 << len(windows)
    costs = [[0.0] * len(windows) for _ in range(sets)]
    for origin, new in enumerate(windows):
        partials = [(new.rate, new.distinct)] * sets
        for above in range(sets):
            if above:
                last = above.bit_length() - 1
                partials[above] = before = partials[above ^ 1 << last]
                if last != origin:
                    partials[above] = _joined(before, windows[last])
            partial, distinct = partials[above]
            for place, window in enumerate(windows):
                if place != origin:
                    costs[above][place] += partial * window.rows / window.share(distinct)
    return costs


def _joined(partial: tuple[float, float], window: WindowStatistics) -> tuple[float, float]:
    """Return combinations and their different values, one window further."""
    rows, distinct = partial
    return rows * window.rows / window.matching(distinct), min(distinct, window.distinct)


def ranked(orders: Sequence[Order], windows: Sequence[WindowStatistics]) -> list[Candidate]:
    """Return the orders with their costs, cheapest first.

    Among equals (to nine digits) the first in the order of FROM.
    """
    return _sorted([Candidate(eager_cost(order, windows), order) for order in orders])


def _sorted(found: Sequence[Candidate]) -> list[Candidate]:
    return sorted(found, key=lambda candidate: (float(f"{candidate.cost:.9g}"), candidate.order))


def search(windows: Sequence[WindowStatistics]) -> list[Candidate]:
    """Return the best orders there are to know, cheapest first."""
    return exhaustive(windows) if len(windows) <= MOST_EXHAUSTIVE else augmented(windows)


def cheapest_tree(windows: Sequence[WindowStatistics]) -> Candidate:
    """Return the cheapest linear tree that stores its intermediate results.

    Its cost is comparisons and inserts per second.

    Up to eight windows the best of all; beyond, of the orders that serve an n-way join. What
    a join costs depends on which windows were joined before it, not on their order.

    >>> cheapest_tree([WindowStatistics(1, 100, values) for values in (5, 5, 50)])
    Candidate(cost=804.0, order=(0, 2, 1))
    """
    if len(windows) > MOST_EXHAUSTIVE:
        return _sorted(
            [
                Candidate(tree_cost(candidate.order, windows), candidate.order)
                for candidate in augmented(windows)
            ]
        )[0]
    places = range(len(windows))
    best: dict[frozenset[int], tuple[float, Order, WindowStatistics]] = {
        frozenset({place}): (0.0, (place,), windows[place]) for place in places
    }
    for size in range(2, len(windows) + 1):
        for members in combinations(places, size):
            ways = []
            for last in members:
                cost, order, stored = best[frozenset(members) - {last}]
                inserted = stored.rate if size > 2 else 0.0
                ways.append(
                    (
                        cost + inserted + probe_cost(stored, windows[last]),
                        (*order, last),
                        joined(stored, windows[last]),
                    )
                )
            best[frozenset(members)] = min(ways, key=lambda way: way[:2])
    cost, order, _ = best[frozenset(places)]
    return Candidate(cost, order)
