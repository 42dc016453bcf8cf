"""Looking for a cheap global join order (paper 3, section 5.1).

Three ways: ascending size of the windows, descending selectivity of the joins, and that order with fast streams moved up,
as far as it pays. Up to eight windows all orders are looked at, which is what the product does; the heuristics serve beyond.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from statistics import median

from muntin.planner.multi_join_cost import WindowStatistics, eager_cost

Order = tuple[int, ...]

MOST_EXHAUSTIVE = 8
_FAST = 2.0
"""A stream is fast if its rate is at least so many times the median of all rates."""


@dataclass(frozen=True)
class Candidate:
    """An order and what it costs."""

    cost: float
    order: Order


def by_window_size(windows: Sequence[WindowStatistics]) -> Order:
    """Ascending size of the windows, or of their buckets; best when all have equally many values."""
    return tuple(sorted(range(len(windows)), key=lambda place: windows[place].rows / windows[place].buckets))


def by_selectivity(windows: Sequence[WindowStatistics]) -> Order:
    """The most selective join first, then always the window whose join with those before passes on the least.

    Of the first two the one with the higher rate comes first: its rows then look into the smaller one.
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
        chosen = min(rest, key=lambda place: windows[place].rows / max(distinct, windows[place].distinct))
        distinct = min(distinct, windows[chosen].distinct)
        order.append(chosen)
    return tuple(order)


def augmented(windows: Sequence[WindowStatistics]) -> list[Candidate]:
    """The order by selectivity and all orders in which fast streams stand further up, cheapest first: about n**f of them."""
    start = by_selectivity(windows)
    rates = [window.rate for window in windows]
    fast = [place for place in start if rates[place] >= _FAST * median(rates)]
    orders = {start}
    for place in fast:
        orders |= {moved for order in orders for moved in _moved_up(order, place)}
    return ranked(sorted(orders), windows)


def _moved_up(order: Order, place: int) -> Iterator[Order]:
    at = order.index(place)
    for target in range(at):
        rest = order[:at] + order[at + 1 :]
        yield (*rest[:target], place, *rest[target:])


def exhaustive(windows: Sequence[WindowStatistics]) -> list[Candidate]:
    """All orders, cheapest first."""
    return ranked(list(permutations(range(len(windows)))), windows)


def ranked(orders: Sequence[Order], windows: Sequence[WindowStatistics]) -> list[Candidate]:
    """The orders with their costs, cheapest first; among equals (to nine digits) the first in the order of FROM."""
    found = [Candidate(eager_cost(order, windows), order) for order in orders]
    return sorted(found, key=lambda candidate: (float(f"{candidate.cost:.9g}"), candidate.order))


def search(windows: Sequence[WindowStatistics]) -> list[Candidate]:
    """The best orders there are to know, cheapest first."""
    return exhaustive(windows) if len(windows) <= MOST_EXHAUSTIVE else augmented(windows)
