"""What a multi-way join on one common attribute costs a second, in comparisons (paper 3, sections 4 and 5).

New rows of each stream come first, the other windows in the global order. A row that reaches a window is compared with the
rows of one of its buckets; of those in the whole window it matches one in as many as there are different values on the side
that has more of them, and the matches go on with the smaller number of values. Assumes, as the paper does, uniform values
and that the values of one stream are contained in those of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class WindowStatistics:
    """A window as the cost models see it: its stream's rate, its rows, their different values, its buckets."""

    rate: float
    rows: float
    distinct: float
    buckets: int = 1


def origin_cost(origin: int, order: Sequence[int], windows: Sequence[WindowStatistics]) -> float:
    """Comparisons that one new row of ``origin`` causes when it goes through the other windows in ``order``."""
    cost, partial, distinct = 0.0, 1.0, windows[origin].distinct
    for place in order:
        if place == origin:
            continue
        window = windows[place]
        cost += partial * window.rows / window.buckets
        partial *= window.rows / max(distinct, window.distinct)
        distinct = min(distinct, window.distinct)
    return cost


def eager_cost(order: Sequence[int], windows: Sequence[WindowStatistics]) -> float:
    """Comparisons a second of the eager join under a global order.

    >>> table5 = [WindowStatistics(10, 1000, 500), WindowStatistics(1, 100, 50), WindowStatistics(1, 200, 40), WindowStatistics(3, 300, 5)]
    >>> eager_cost([0, 1, 2, 3], table5)
    16000.0
    """
    return sum(window.rate * origin_cost(origin, order, windows) for origin, window in enumerate(windows))
