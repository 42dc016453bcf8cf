"""Cost of a tree of binary joins that store intermediate results [Mukherji11, appendix A].

A join has two half joins: rows of one side *probe* the state of the other, are *inserted* into
their own and *purge* what is old there::

    cost(a, S_B) = rate_a * (probe(S_B) + insert(S_A) + purge(S_A))

A probe looks at all rows of a state (nested loops: one bucket) or at those of one bucket (hash).
Insert and purge take a constant time for a row. An intermediate result is a window like any other.
With ``s = 1 / max(values)``, the chance that two rows match, it has::

    rate   = rate_a * s * rows_b + rate_b * s * rows_a
    rows   = rows_a * rows_b * s
    values = min(values)

These are the factors of [Golab03]'s order costs (:mod:`muntin.testing.paper_costs.multi_join`), so
both kinds of plan can be compared: :func:`tree_cost` against ``eager_cost``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from muntin.planner.lazy_orders import WindowStatistics, sane

Tree: TypeAlias = "int | tuple[Tree, Tree]"
"""A window's place, or the join of two trees."""


@dataclass(frozen=True)
class StateCosts:
    """The costs of probing, inserting and purging a row, in any unit."""

    probe: float = 1.0
    insert: float = 1.0
    purge: float = 1.0


COUNTED_ALIKE = StateCosts()


def half_way_cost(
    arriving: WindowStatistics, partner: WindowStatistics, costs: StateCosts = COUNTED_ALIKE
) -> float:
    """Equation (14).

    The rows of one side probe the partner's state and bring their own up to date.
    """
    return arriving.rate * (
        _probed(arriving, partner) * sane(costs.probe) + sane(costs.insert) + sane(costs.purge)
    )


def join_cost(
    left: WindowStatistics, right: WindowStatistics, costs: StateCosts = COUNTED_ALIKE
) -> float:
    """Equation (13): both half joins."""
    return half_way_cost(left, right, costs) + half_way_cost(right, left, costs)


def joined(left: WindowStatistics, right: WindowStatistics) -> WindowStatistics:
    """Return the stored result of a join as a window.

    It has as many buckets as the side that has more.

    >>> joined(WindowStatistics(10, 1000, 500), WindowStatistics(1, 100, 50))
    WindowStatistics(rate=4.0, rows=200.0, distinct=50, buckets=1)
    """
    matching = left.matching(right.distinct)
    return WindowStatistics(
        (left.rate * right.rows + right.rate * left.rows) / matching,
        left.rows * right.rows / matching,
        min(left.distinct, right.distinct),
        max(left.buckets, right.buckets),
    )


def plan_cost(
    tree: Tree, windows: Sequence[WindowStatistics], costs: StateCosts = COUNTED_ALIKE
) -> float:
    """Return the cost of all joins of a tree, each with its two half joins.

    The result of the root is not stored.

    >>> pair = [WindowStatistics(10, 1000, 500), WindowStatistics(1, 100, 50)]
    >>> costs = StateCosts(probe=1, insert=0, purge=0)
    >>> plan_cost((0, 1), pair, costs)  # 10 rows look at 100, one at 1000
    2000.0
    """
    return _planned(tree, windows, costs)[1]


def _planned(
    tree: Tree, windows: Sequence[WindowStatistics], costs: StateCosts
) -> tuple[WindowStatistics, float]:
    """Return the result of a tree as a window, and the cost of the joins in it."""
    if isinstance(tree, int):
        return windows[tree], 0.0
    (left, left_cost), (right, right_cost) = (_planned(side, windows, costs) for side in tree)
    return joined(left, right), left_cost + right_cost + join_cost(left, right, costs)


def linear_tree(order: Sequence[int]) -> Tree:
    """Return the tree that joins the windows one after the other.

    >>> linear_tree([2, 0, 1])
    ((2, 0), 1)
    """
    tree: Tree = order[0]
    for place in order[1:]:
        tree = (tree, place)
    return tree


def tree_cost(
    order: Sequence[int], windows: Sequence[WindowStatistics], insert: float = 1.0
) -> float:
    """Return the comparisons per second of a linear tree.

    Every stored row of an intermediate result adds ``insert``.

    With ``I_k`` the stored join of ``o_1 .. o_k`` (``I_1`` is window ``o_1``), its rate and rows as
    in the module's formulas, and ``N`` the buckets::

        cost = sum over k >= 2 of     rate(I_k-1) * rows(o_k) / N(o_k)
                                    + rate(o_k) * rows(I_k-1) / N(I_k-1)
             + sum over 1 < k < n of  insert * rate(I_k)

    Rows of the streams themselves are stored in every plan, so their inserts are left out, as in
    ``eager_cost``.

    >>> figures = [(10, 1000, 500), (1, 100, 50), (1, 200, 40), (3, 300, 5)]
    >>> table5 = [WindowStatistics(*each) for each in figures]
    >>> tree_cost([0, 1, 2, 3], table5)  # eager_cost: 16000
    11424.0
    """
    cost = 0.0
    stored = windows[order[0]]
    for number, place in enumerate(order[1:], 1):
        if number > 1:
            cost += sane(insert) * stored.rate
        window = windows[place]
        cost += probe_cost(stored, window)
        stored = joined(stored, window)
    return cost


def probe_cost(left: WindowStatistics, right: WindowStatistics) -> float:
    """Return comparisons per second of one join: rows of each side probe the state of the other."""
    return left.rate * _probed(left, right) + right.rate * _probed(right, left)


def _probed(arriving: WindowStatistics, partner: WindowStatistics) -> float:
    """Return the number of rows that a probe looks at."""
    return partner.rows / partner.share(arriving.distinct)
