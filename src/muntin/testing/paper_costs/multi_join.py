"""Cost of a multi-way join on one attribute, in comparisons [Golab03, sections 4 and 5].

New rows of each stream come first, the other windows in the global order. A row that reaches a
window is compared with the rows of one of its buckets; of those in the whole window it matches one
in as many as there are different values on the side that has more of them, and the matches go on
with the smaller number of values. Assumes, as the paper does, uniform values and that the values of
one stream are contained in those of another.
"""

from __future__ import annotations

from collections.abc import Sequence

from muntin.planner.lazy_orders import WindowStatistics


def origin_cost(origin: int, order: Sequence[int], windows: Sequence[WindowStatistics]) -> float:
    """Return the comparisons of one new row of ``origin`` with the other windows in ``order``."""
    cost, partial, distinct = 0.0, 1.0, windows[origin].distinct
    for place in order:
        if place == origin:
            continue
        window = windows[place]
        cost += partial * window.rows / window.share(distinct)
        partial *= window.rows / window.matching(distinct)
        distinct = min(distinct, window.distinct)
    return cost


def eager_cost(order: Sequence[int], windows: Sequence[WindowStatistics]) -> float:
    """Return comparisons per second of the eager join under a global order.

    >>> figures = [(10, 1000, 500), (1, 100, 50), (1, 200, 40), (3, 300, 5)]
    >>> table5 = [WindowStatistics(*each) for each in figures]
    >>> eager_cost([0, 1, 2, 3], table5)
    16000.0
    """
    return sum(
        (
            window.rate * origin_cost(origin, order, windows)
            for origin, window in enumerate(windows)
        ),
        0.0,
    )
