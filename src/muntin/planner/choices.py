"""Choices by predicted cost: join orders, indexes and buckets, and whether to use a tree.

Settings are kept; the cost model decides the rest. No choice changes results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

from muntin.plan.join import Prediction
from muntin.planner.index_choice import within_memory, without_needless
from muntin.planner.join_graph import JoinGraph
from muntin.planner.local_orders import JoinCost, along, best_orders, join_cost
from muntin.planner.orders import Order
from muntin.planner.tree_choice import TreeCost, TreeShape, Worth, best_tree, tree_cost
from muntin.planner.unit_costs import UnitCosts

MOST_ALTERNATIVES = 4
"""Up to this number of sources all global orders are priced, to show the next best."""
_TREE_PAYS = 0.7
"""A tree is chosen when its predicted time is at most this share of the join's without: it also
takes memory."""
_TREE_KEEPS = 20.0
"""The most combinations it may keep per row inside the windows."""
_NANO = 1e-9


@dataclass(frozen=True)
class CostChoice:
    """What was chosen.

    Orders by origin, buckets by source (0 own choice, 1 none), the shape of a tree or None.
    """

    orders: tuple[Order, ...]
    buckets: tuple[int, ...]
    shape: TreeShape | None
    prediction: Prediction
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class ChoiceLimits:
    """What the choice must keep to.

    Orders that were given, memory of buckets in bytes, whether a tree is possible.
    """

    orders: tuple[Order, ...] | None = None
    memory: int | None = None
    scan_allowed: bool = True
    tree: TreeShape | None = None
    tree_allowed: bool = False


def choose(
    graph: JoinGraph, limits: ChoiceLimits, costs: UnitCosts, aliases: Sequence[str]
) -> CostChoice:
    """Return the cheapest way that keeps to the limits."""
    indexed = _indexed(graph, limits, costs)
    cost = _priced(indexed, limits, costs)
    without = join_cost(graph.having([1] * graph.count), cost.orders, costs)
    every = join_cost(graph, cost.orders, costs)
    reasons = [_index_reason(graph, indexed, limits, (cost, without, every), aliases)]
    tree = _cheaper_tree(indexed, limits, cost, costs)
    if tree is not None:
        reasons.append(_tree_reason(tree, cost, chosen=True))
    elif _tree_may_pay(indexed, limits, cost, costs):
        rejected = best_tree(indexed, costs)
        reasons += [_tree_reason(rejected, cost, chosen=False)] if rejected else []
    shape = tree.shape if tree else limits.tree
    time = tree_cost(indexed, shape, costs).time if shape is not None else cost.time
    prediction = Prediction(cost.looked, time * _NANO, cost.orders, _others(indexed, cost, costs))
    return CostChoice(cost.orders, indexed.buckets, shape, prediction, tuple(filter(None, reasons)))


def least_work(graph: JoinGraph, limits: ChoiceLimits, costs: UnitCosts) -> float:
    """Return the predicted work of :func:`choose`'s choice, in seconds per second, faster.

    Without reasons and alternatives.
    """
    indexed = _indexed(graph, limits, costs)
    if limits.tree is not None:
        return tree_cost(indexed, limits.tree, costs).time * _NANO
    cost = _priced(indexed, limits, costs)
    tree = _cheaper_tree(indexed, limits, cost, costs)
    return (tree.time if tree else cost.time) * _NANO


def _priced(graph: JoinGraph, limits: ChoiceLimits, costs: UnitCosts) -> JoinCost:
    """Return the cost of the orders that were given, or of the best ones."""
    return join_cost(graph, limits.orders, costs) if limits.orders else best_orders(graph, costs)


def _indexed(graph: JoinGraph, limits: ChoiceLimits, costs: UnitCosts) -> JoinGraph:
    """Return the graph with the indexes that pay, or that there is memory for."""
    if limits.memory is not None:
        return within_memory(graph, costs, limits.memory)
    return without_needless(graph, costs) if limits.scan_allowed else graph


def _cheaper_tree(
    graph: JoinGraph, limits: ChoiceLimits, cost: JoinCost, costs: UnitCosts
) -> TreeCost | None:
    """Return the cheapest tree, if one may be chosen and is cheap enough to pay."""
    if not _tree_may_pay(graph, limits, cost, costs):
        return None
    rows = sum(graph.rows(source) for source in range(graph.count))
    return best_tree(graph, costs, Worth(_TREE_PAYS * cost.time, _TREE_KEEPS * rows))


def _tree_may_pay(graph: JoinGraph, limits: ChoiceLimits, cost: JoinCost, costs: UnitCosts) -> bool:
    """Return whether a tree could be so much cheaper.

    In any tree a new row looks at least into one other side.
    """
    least = sum(graph.rate(source) for source in range(graph.count)) * costs.probe
    return (
        limits.tree_allowed
        and limits.tree is None
        and not limits.orders
        and least <= _TREE_PAYS * cost.time
    )


def _index_reason(
    before: JoinGraph,
    after: JoinGraph,
    limits: ChoiceLimits,
    priced: tuple[JoinCost, JoinCost, JoinCost],
    aliases: Sequence[str],
) -> str:
    """Return the predictions for the indexes chosen, for none and for all, and which there are."""
    chosen, none, every = (cost.time * _NANO for cost in priced)
    text = (
        f"indexes as chosen: {chosen:.3g} seconds of work per second predicted; "
        f"no index: {none:.3g}"
    )
    scanned = [
        aliases[s] for s in range(after.count) if after.buckets[s] == 1 and before.buckets[s] != 1
    ]
    if scanned and limits.memory is None:
        text += f"; all indexes: {every:.3g}; {', '.join(scanned)} cheaper to scan"
    if limits.memory is not None:
        given = ", ".join(f"{aliases[s]} {after.buckets[s] or 'all'}" for s in range(after.count))
        text += f"; buckets within {limits.memory:,} bytes: {given}"
    return text


def _tree_reason(tree: TreeCost, cost: JoinCost, *, chosen: bool) -> str:
    verdict = (
        "tree with stored intermediate results" if chosen else "no stored intermediate results"
    )
    return (
        f"{verdict}: best tree {tree.time * _NANO:.3g} seconds per second and "
        f"{tree.kept:,.0f} combinations kept, join without {cost.time * _NANO:.3g}"
    )


def _others(
    graph: JoinGraph, chosen: JoinCost, costs: UnitCosts
) -> tuple[tuple[float, Order], ...]:
    """Return the next best global orders with the rows they look at."""
    if not 3 <= graph.count <= MOST_ALTERNATIVES:
        return ()
    priced = [along(graph, order, costs) for order in permutations(range(graph.count))]
    rest = {
        cost.orders: (cost.time, cost.looked, order)
        for cost, order in zip(priced, permutations(range(graph.count)), strict=True)
    }
    rest.pop(chosen.orders, None)
    return tuple((looked, order) for _, looked, order in sorted(rest.values())[:3])
