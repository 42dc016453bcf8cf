"""Cost of NAIVE, LAZY and GENERAL LAZY at an interval [Golab03, sections 3 to 5].

Every interval the new rows of each stream are joined at their place in an order of all windows, the
other windows above and below them. Two models:

*Ours*, :func:`muntin.planner.lazy_orders.interval_work`, says what the kernel does. By it the
comparisons of LAZY are those of EAGER, whatever the interval; what grows is the number of rows it
has to look at, half an interval's in every walk.

*The paper's*, :func:`paper_interval_cost`, lets every loop run over all that is stored, and counts
only comparisons of two attributes. Its figures follow from it (its appendix is not printed).

As the interval goes to zero, every new row is a separate batch, which is how NAIVE runs here.
"""

from __future__ import annotations

from collections.abc import Sequence

from muntin.planner.lazy_orders import (
    WindowStatistics,
    Work,
    batches_a_second,
    interval_work,
    rows_of_a_batch,
)

Windows = Sequence[WindowStatistics]
LoopOrder = Sequence[int]


def general_lazy_work(orders: Sequence[LoopOrder], windows: Windows, interval: float) -> Work:
    """Return the work of GENERAL LAZY: each origin has an order of all windows."""
    parts = (interval_work(origin, order, windows, interval) for origin, order in enumerate(orders))
    return sum(parts, Work(0.0, 0.0))


def lazy_work(order: LoopOrder, windows: Windows, interval: float) -> Work:
    """Return the work of LAZY: the new rows first, then the windows in the global order.

    >>> figures = [(10, 1000, 500), (1, 100, 50), (1, 200, 40), (3, 300, 5)]
    >>> table5 = [WindowStatistics(*each) for each in figures]
    >>> round(lazy_work([0, 1, 2, 3], table5, 5).comparisons)  # EAGER, and a new row itself
    16015
    """
    return general_lazy_work(origin_first(order, len(windows)), windows, interval)


def naive_work(order: LoopOrder, windows: Windows, interval: float = 0.0) -> Work:
    """Return the work of NAIVE: the new rows stay at their place in the global order."""
    return general_lazy_work([order] * len(windows), windows, interval)


def origin_first(order: LoopOrder, count: int) -> list[tuple[int, ...]]:
    """Return for each of ``count`` origins the global order with the origin moved to the top."""
    return [(origin, *(place for place in order if place != origin)) for origin in range(count)]


def paper_interval_cost(origin: int, order: LoopOrder, windows: Windows, interval: float) -> float:
    """Return comparisons per second by the paper's model.

    All that is stored, against all of the new rows.
    """
    a_second = batches_a_second(windows[origin].rate, interval)
    cost, partial, distinct = 0.0, 1.0, 0.0
    for place in order:
        window = windows[place]
        rows = (
            rows_of_a_batch(window.rate, interval) if place == origin else window.stored(interval)
        )
        if distinct:
            cost += partial * rows / window.share(distinct)
        partial *= rows / (window.matching(distinct) if distinct else 1.0)
        distinct = min(distinct or window.distinct, window.distinct)
    return a_second * cost


def paper_general_cost(orders: Sequence[LoopOrder], windows: Windows, interval: float) -> float:
    """Return comparisons per second of GENERAL LAZY by the paper's model.

    LAZY and NAIVE are special cases.
    """
    return sum(
        (
            paper_interval_cost(origin, order, windows, interval)
            for origin, order in enumerate(orders)
        ),
        0.0,
    )
