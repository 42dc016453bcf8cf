"""The cheapest order for every origin, on any join graph.

Under the eager algorithm the new row is bound first and each origin may go its own way, so the
orders are found one by one. How many combinations are alive after some sources are bound does not
depend on the order in which that happened, so the cheapest way to a set of sources extends the
cheapest way to a smaller one: all sets are looked at once (up to MOST_EXACT sources), instead of
all orders. Beyond that the next source is always the one that passes on the least, connected ones
first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from muntin.planner.join_graph import JoinGraph, StepEstimate
from muntin.planner.orders import Order
from muntin.planner.unit_costs import UnitCosts

MOST_EXACT = 10
_SAME = 1e-9
"""Times that differ by no more than this share are the same, whatever was added up in which order.
"""


@dataclass(frozen=True)
class OrderCost:
    """An order (origin first) and what one new row of the origin costs.

    Nanoseconds, and rows looked at.
    """

    order: Order
    time: float
    looked: float


def step_time(step: StepEstimate, costs: UnitCosts) -> float:
    """Return nanoseconds that one partial result spends in a window."""
    a_row = (costs.chained if step.indexed else costs.scanned) + (step.checks - 1) * costs.check
    return costs.probe * (1.0 if step.indexed else 0.3) + step.looked * a_row


def order_cost(graph: JoinGraph, order: Sequence[int], costs: UnitCosts) -> OrderCost:
    """Return the cost of one new row of the first source of an order."""
    partial, time, looked = 1.0, 0.0, 0.0
    for place, source in enumerate(order[1:], 1):
        step = graph.step(frozenset(order[:place]), source)
        time += partial * step_time(step, costs)
        looked += partial * step.looked
        partial *= step.matched
    if not in_from_order(order):
        time += sorting_time(partial, costs)
    return OrderCost(tuple(order), time, looked)


def sorting_time(results: float, costs: UnitCosts) -> float:
    """Return the nanoseconds to sort the results of a new row, given their mean number.

    Where it has one, there is nothing to sort.
    """
    return results * costs.sort * results / (1 + results)


def in_from_order(order: Sequence[int]) -> bool:
    """Return whether results come out in their ruled order, so that they need not be sorted."""
    return all(one < other for one, other in pairwise(order[1:]))


def best_order(graph: JoinGraph, origin: int, costs: UnitCosts) -> OrderCost:
    """Return the cheapest order that begins with an origin."""
    found = order_cost(
        graph,
        _greedy(graph, origin) if graph.count > MOST_EXACT else _exact(graph, origin, costs),
        costs,
    )
    straight = order_cost(
        graph, (origin, *(source for source in range(graph.count) if source != origin)), costs
    )
    return straight if straight.time <= found.time else found


def _exact(graph: JoinGraph, origin: int, costs: UnitCosts) -> Order:
    """Return the order with the least work until results are found, by all sets of sources."""
    # For every set of bound sources: time, combinations alive, order. Ties go to the order of FROM.
    best: dict[frozenset[int], tuple[float, float, Order]] = {
        frozenset({origin}): (0.0, 1.0, (origin,))
    }
    for _ in range(graph.count - 1):
        following: dict[frozenset[int], tuple[float, float, Order]] = {}
        for bound, (time, partial, order) in best.items():
            for source in range(graph.count):
                if source in bound:
                    continue
                step = graph.step(bound, source)
                found = (
                    time + partial * step_time(step, costs),
                    partial * step.matched,
                    (*order, source),
                )
                known = following.get(bound | {source})
                if known is None or _is_better(found, known):
                    following[bound | {source}] = found
        best = following
    ((_, _, order),) = best.values()
    return order


def _is_better(one: tuple[float, float, Order], other: tuple[float, float, Order]) -> bool:
    apart = one[0] - other[0]
    return one[2] < other[2] if abs(apart) <= _SAME * other[0] else apart < 0


def _greedy(graph: JoinGraph, origin: int) -> Order:
    order = [origin]
    while len(order) < graph.count:
        bound = frozenset(order)
        rest = [source for source in range(graph.count) if source not in bound]
        reached = graph.linked(bound)
        linked = [source for source in rest if source in reached] or rest
        order.append(
            min(
                linked,
                key=lambda source: (
                    graph.step(bound, source).matched,
                    graph.step(bound, source).looked,
                ),
            )
        )
    return tuple(order)


@dataclass(frozen=True)
class JoinCost:
    """Orders for all origins, and what they cost per second.

    Nanoseconds of work, and rows looked at.
    """

    orders: tuple[Order, ...]
    time: float
    looked: float


def join_cost(graph: JoinGraph, orders: Sequence[Sequence[int]], costs: UnitCosts) -> JoinCost:
    """Return the cost of a join under given orders, one for each origin and beginning with it."""
    found = [order_cost(graph, order, costs) for order in orders]
    time = sum(graph.rate(origin) * cost.time for origin, cost in enumerate(found))
    looked = sum(graph.rate(origin) * cost.looked for origin, cost in enumerate(found))
    return JoinCost(tuple(cost.order for cost in found), time, looked)


def best_orders(graph: JoinGraph, costs: UnitCosts) -> JoinCost:
    """Return the cheapest order of every origin, and what the join then costs per second."""
    return join_cost(
        graph, [best_order(graph, origin, costs).order for origin in range(graph.count)], costs
    )


def along(graph: JoinGraph, order: Sequence[int], costs: UnitCosts) -> JoinCost:
    """Return the cost of a global order: each origin first, then the others in that order."""
    return join_cost(
        graph,
        [(origin, *(s for s in order if s != origin)) for origin in range(graph.count)],
        costs,
    )
