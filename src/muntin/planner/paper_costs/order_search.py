"""Looking for a cheap global join order [Golab03, section 5.1].

Three ways: ascending size of the windows, descending selectivity of the joins, and that order with
fast streams moved up, as far as it pays. Up to eight windows all orders are looked at, which is
what the product does; the heuristics serve beyond.

GENERAL LAZY has an order for each origin, and none depends on another (section 5.2), so each is
looked for alone. What a loop costs depends on which windows stand above it, not on how they are
ordered, so the cheapest way to each set of windows is all that has to be kept: 2**n sets for the n!
orders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from muntin.planner.orders import Order
from muntin.planner.paper_costs.lazy_join import IntervalBatch, Progress, interval_work
from muntin.planner.paper_costs.multi_join import WindowStatistics, eager_cost
from muntin.planner.paper_costs.path import joined, probe_cost, tree_cost

MOST_EXHAUSTIVE = 8
_MOST_ORDERS = 1_000
_FAST = 2.0
"""A stream is fast if its rate is at least this multiple of the median of all rates."""


@dataclass(frozen=True)
class Candidate:
    """An order and what it costs."""

    cost: float
    order: Order


def by_window_size(windows: Sequence[WindowStatistics]) -> Order:
    """Ascending size of the windows, or of their buckets.

    Best when all have equally many values.
    """
    return tuple(
        sorted(range(len(windows)), key=lambda place: windows[place].rows / windows[place].buckets)
    )


def by_selectivity(windows: Sequence[WindowStatistics]) -> Order:
    """Return the order by selectivity: always the join that passes on the fewest rows.

    Of the first two the one with the higher rate comes first: its rows then look into the smaller
    one.
    """
    places = range(len(windows))
    if len(windows) < 2:
        return tuple(places)

    def size(pair: tuple[int, int]) -> float:
        left, right = windows[pair[0]], windows[pair[1]]
        return left.rows * right.rows / max(left.distinct, right.distinct)

    first = min(combinations(places, 2), key=size)
    order = sorted(first, key=lambda place: -windows[place].rate)
    distinct = min(windows[place].distinct for place in order)
    while len(order) < len(windows):
        rest = [place for place in places if place not in order]
        chosen = min(
            rest, key=lambda place: windows[place].rows / max(distinct, windows[place].distinct)
        )
        distinct = min(distinct, windows[chosen].distinct)
        order.append(chosen)
    return tuple(order)


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


@dataclass(frozen=True)
class LocalOrders:
    """The order of every origin, with its own place, and the comparisons per second of all."""

    cost: float
    orders: tuple[Order, ...]


def local_orders(windows: Sequence[WindowStatistics], interval: float) -> LocalOrders:
    """Return the cheapest order of every origin under GENERAL LAZY at an interval.

    >>> slow, quick = WindowStatistics(1, 100, 1000), WindowStatistics(100, 10_000, 1000)
    >>> fast = [slow, slow, quick]
    >>> local_orders(fast, 0.1).orders
    ((0, 1, 2), (1, 0, 2), (2, 0, 1))
    >>> local_orders(fast, 10).orders  # first the few rows that the slow ones have in common
    ((0, 1, 2), (1, 0, 2), (0, 1, 2))
    """
    find = _cheapest_local if len(windows) <= MOST_EXHAUSTIVE else _likely_local
    found = [find(origin, windows, interval) for origin in range(len(windows))]
    return LocalOrders(
        sum((candidate.cost for candidate in found), 0.0),
        tuple(candidate.order for candidate in found),
    )


def _cheapest_local(origin: int, windows: Sequence[WindowStatistics], interval: float) -> Candidate:
    """Return the best of all orders of one origin, set by set of the windows passed."""
    batch = IntervalBatch(origin, windows, interval)
    places = range(len(windows))
    best: dict[frozenset[int], tuple[Progress, Order]] = {frozenset(): (Progress(), ())}
    for size in range(1, len(windows) + 1):
        for members in combinations(places, size):
            ways = []
            for last in members:
                progress, order = best[frozenset(members) - {last}]
                ways.append((batch.step(progress, last), (*order, last)))
            best[frozenset(members)] = min(
                ways, key=lambda way: (way[0].work.comparisons, way[0].work.scanned, way[1])
            )
    progress, order = best[frozenset(places)]
    return Candidate(batch.work(progress).comparisons, order)


def _likely_local(origin: int, windows: Sequence[WindowStatistics], interval: float) -> Candidate:
    """Return the best order with the origin at any place.

    The other windows are ordered by size or by selectivity.
    """
    candidates = []
    for start in (by_window_size(windows), by_selectivity(windows)):
        rest = tuple(place for place in start if place != origin)
        candidates += [(*rest[:at], origin, *rest[at:]) for at in range(len(windows))]
    costs = [
        Candidate(interval_work(origin, order, windows, interval).comparisons, order)
        for order in candidates
    ]
    return min(costs, key=lambda candidate: (candidate.cost, candidate.order))


def cheapest_tree(windows: Sequence[WindowStatistics]) -> Candidate:
    """Return the cheapest linear tree that stores its intermediate results.

    Its cost is comparisons and inserts per second.

    Up to eight windows the best of all; beyond, of the orders that serve an n-way join. As above,
    what a join costs depends on which windows were joined before it, not on their order.

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
