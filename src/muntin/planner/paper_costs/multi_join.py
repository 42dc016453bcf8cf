"""Cost of a multi-way join on one attribute, in comparisons [Golab03, sections 4 and 5].

New rows of each stream come first, the other windows in the global order. A row that reaches a
window is compared with the rows of one of its buckets; of those in the whole window it matches one
in as many as there are different values on the side that has more of them, and the matches go on
with the smaller number of values. Assumes, as the paper does, uniform values and that the values of
one stream are contained in those of another.

Statistics may be anything, measured or made up: :class:`WindowStatistics` brings them into a range
in which no formula divides by nothing or leaves the floating-point numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

MOST = 1e15
"""No statistic is larger: sixteen of them can be multiplied, and no machine processes more rows."""


def sane(number: float, least: float = 0.0) -> float:
    """Return the nearest number that a statistic can be.

    What is not a number at all becomes the least.

    >>> sane(float("nan")), sane(float("inf")), sane(-3), sane(0.2, least=1), sane(7)
    (0.0, 1000000000000000.0, 0.0, 1, 7)
    """
    return min(number, MOST) if number >= least else least


@dataclass(frozen=True)
class WindowStatistics:
    """A window as the cost models see it.

    Its stream's rate, its rows, their different values, its buckets.

    Any numbers are taken, and those that make no sense are put right: there are no less than zero
    rows, nor less than one value or bucket. More buckets than values do no harm and bring nothing,
    see :meth:`share`.
    """

    rate: float
    rows: float
    distinct: float
    buckets: float = 1

    def __post_init__(self) -> None:
        for field in fields(self):
            least = 1.0 if field.name in {"distinct", "buckets"} else 0.0
            object.__setattr__(self, field.name, sane(getattr(self, field.name), least))

    def stored(self, interval: float) -> float:
        """Return the rows that it holds if rows are expired once per interval.

        Those that came in the last one, and a window before.
        """
        return sane(self.rows + self.rate * sane(interval))

    def share(self, distinct: float) -> float:
        """Return n if a row with one of ``distinct`` values shares its bucket with one in n rows.

        Rows of one value stay together, so the number of buckets counts only up to that of the
        values on the larger side.
        """
        return min(self.buckets, self.matching(distinct))

    def matching(self, distinct: float) -> float:
        """Return n if one in n of its rows equals a row that has one of ``distinct`` values."""
        return max(distinct, self.distinct)


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
