"""Models of join trees as the papers give them: shapes, selectivities and freshness in numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from muntin.adapt.model import PlanModel
from muntin.adapt.shape import ROOT, TreeShape

Nested: TypeAlias = "int | tuple[Nested, Nested]"
"""A leaf, or two subtrees."""


def tree_shape(tree: Nested) -> TreeShape:
    """Return the shape of nested pairs of leaf numbers.

    >>> shape = tree_shape(((0, 1), 2))
    >>> shape.parent, shape.partner, shape.paths
    ((3, 3, -1, -1), (1, 0, 3, 2), ((0, 3), (1, 3), (2,)))
    """
    leaves = sorted(_leaves(tree))
    assert leaves == list(range(len(leaves))), (
        f"{tree} does not have every leaf once, numbered from 0"
    )
    assert len(leaves) >= 2, "a join has two sides"
    parent = [ROOT] * (2 * len(leaves) - 2)
    partner = [0] * len(parent)
    made = len(leaves)

    def build(part: Nested) -> int:
        """Return the number of a subtree; that of the root is never used."""
        nonlocal made
        if isinstance(part, int):
            return part
        left, right = build(part[0]), build(part[1])
        number, made = made, made + 1
        partner[left], partner[right] = right, left
        parent[left] = parent[right] = number if number < len(parent) else ROOT
        return number

    build(tree)
    return TreeShape(len(leaves), tuple(parent), tuple(partner))


def _leaves(tree: Nested) -> Iterator[int]:
    if isinstance(tree, int):
        yield tree
    else:
        yield from _leaves(tree[0])
        yield from _leaves(tree[1])


def model_of_selectivities(
    shape: TreeShape,
    rates: Sequence[float],
    own: Sequence[float],
    selectivities: Sequence[float],
    freshness: Sequence[float] = (),
) -> PlanModel:
    """Return a model from the selectivity of each join, by ``shape.joins`` (equation 3).

    >>> model_of_selectivities(tree_shape((0, 1)), [500, 700], [5000, 500], [0.001]).productivity
    (0.5, 5.0)
    """
    found = [0.0] * shape.count
    for pair, selectivity in zip(shape.joins, selectivities, strict=True):
        for h in pair:
            found[h] = selectivity * own[shape.partner[h]]
    return PlanModel(shape, tuple(rates), tuple(found), tuple(own), tuple(freshness))


def with_freshness(model: PlanModel, *, factor: float) -> PlanModel:
    """Return the model with every freshness a multiple of the window of its stream."""
    return replace(model, freshness=tuple(factor * window for window in model.windows))


def unit_time_cost(
    model: PlanModel,
    costs: Sequence[tuple[float, float, float]],
    budgets: Sequence[float] | None = None,
) -> tuple[float, ...]:
    """Return the cost of each half join per second (equations 13 to 15).

    ``costs`` has the cost of a probe, an insert and a purge at each. All arrivals are inserted and
    purged; under probe budgets only some of them probe.
    """
    flow = model.saturation if budgets is None else model.flow(budgets)
    return tuple(
        probes * probe + arrivals * (insert + purge)
        for arrivals, probes, (probe, insert, purge) in zip(
            flow.arrivals, flow.probes, costs, strict=True
        )
    )
