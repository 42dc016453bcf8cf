"""The choice of a tree that keeps intermediate results [Mukherji11]; [Golab03] keeps none.

A new row of a tree finds combinations of the sources on the other side ready made, but every
combination has to be made and stored first. The cheapest tree over a set of sources consists of the
cheapest trees over its two halves, so all trees (linear, semi-bushy, bushy) are looked at by
looking at all sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf

from muntin.planner.join_graph import OWN_BUCKETS, JoinGraph
from muntin.planner.local_orders import sorting_time, step_time
from muntin.planner.unit_costs import UnitCosts

MOST_SOURCES = 6

TreeShape = int | tuple["TreeShape", "TreeShape"]
"""A source, or two shapes."""


@dataclass(frozen=True)
class TreeCost:
    """A tree, its work in nanoseconds per second, and how many combinations it keeps."""

    shape: TreeShape
    time: float
    kept: float


def sources_of(shape: TreeShape) -> tuple[int, ...]:
    """Return the sources of a shape from left to right."""
    return (shape,) if isinstance(shape, int) else sources_of(shape[0]) + sources_of(shape[1])


def linear_shape(order: Sequence[int]) -> TreeShape:
    """Return the tree that joins sources one after the other."""
    shape: TreeShape = order[0]
    for source in order[1:]:
        shape = (shape, source)
    return shape


def tree_cost(graph: JoinGraph, shape: TreeShape, costs: UnitCosts) -> TreeCost:
    """Return the cost of a tree per second.

    Every new combination of one side looks into the other, and is kept unless it is a result.
    """
    if isinstance(shape, int):
        return TreeCost(shape, 0.0, 0.0)
    left, right = (tree_cost(graph, side, costs) for side in shape)
    return _joined(graph, left, right, costs)


def _joined(graph: JoinGraph, left: TreeCost, right: TreeCost, costs: UnitCosts) -> TreeCost:
    mine, others = frozenset(sources_of(left.shape)), frozenset(sources_of(right.shape))
    both = mine | others
    time = (
        left.time
        + right.time
        + _looking(graph, mine, others, costs)
        + _looking(graph, others, mine, costs)
    )
    kept = left.kept + right.kept
    if len(both) < graph.count:
        time += graph.birth_rate(both) * costs.partial_match
        kept += graph.size(both)
    else:
        rows = sum(graph.rate(source) for source in both)
        time += rows * sorting_time(graph.birth_rate(both) / max(rows, 1e-9), costs)
    return TreeCost((left.shape, right.shape), time, kept)


def _looking(
    graph: JoinGraph, mine: frozenset[int], others: frozenset[int], costs: UnitCosts
) -> float:
    """Return nanoseconds per second in which new combinations of one side look into the other."""
    births = graph.birth_rate(mine)
    if len(others) == 1:
        (source,) = others
        return births * step_time(graph.step(mine, source), costs)
    size = graph.size(others)
    found = graph.size(mine | others) / max(graph.size(mine), 1e-9)
    looked = found + 1 / OWN_BUCKETS if graph.linked(mine) & others else size
    # Every member of a partial match is looked at to see whether it is alive.
    return births * (costs.probe + looked * len(others) * costs.chained)


@dataclass(frozen=True)
class Worth:
    """What a tree may cost: nanoseconds per second and combinations kept.

    One that goes beyond either need not be found.
    """

    time: float = inf
    kept: float = inf

    def allows(self, tree: TreeCost) -> bool:
        """Return whether a tree, or a part of one, is within it."""
        return tree.time <= self.time and tree.kept <= self.kept


def best_tree(graph: JoinGraph, costs: UnitCosts, worth: Worth | None = None) -> TreeCost | None:
    """Return the cheapest tree.

    None for fewer than three or too many sources, or when none is worth it.
    """
    if not 3 <= graph.count <= MOST_SOURCES:
        return None
    worth = worth or Worth()
    best: dict[frozenset[int], TreeCost] = {
        frozenset({source}): TreeCost(source, 0.0, 0.0) for source in range(graph.count)
    }
    for size in range(2, graph.count + 1):
        for members in combinations(range(graph.count), size):
            whole = frozenset(members)
            trees = [
                _joined(graph, best[half], best[whole - half], costs)
                for half in _halves(members)
                if half in best and whole - half in best
            ]
            found = min(
                (tree for tree in trees if worth.allows(tree)),
                key=lambda tree: tree.time,
                default=None,
            )
            if found is not None:
                best[whole] = found
    return best.get(frozenset(range(graph.count)))


def _halves(members: tuple[int, ...]) -> Iterator[frozenset[int]]:
    """Yield the halves with the first member, one of each way to divide them."""
    for count in range(len(members) - 1):
        for others in combinations(members[1:], count):
            yield frozenset({members[0], *others})
