"""The join orders of GENERAL LAZY at an interval of re-evaluation [Golab03, section 5.2].

Every interval the new rows of each stream are joined at their place in an order of all windows, the
other windows above and below them. Each origin has an order, and none depends on another, so each
is looked for alone. What a loop costs depends on which windows stand above it, not on how they are
ordered, so the cheapest way to each set of windows is all that has to be kept: 2**n sets for the n!
orders.

:func:`interval_work` says what the kernel does. Windows above the new rows are read as they are
stored: with the rows of the last interval and those that were inside the window at its begin,
``rows + rate * interval``. Where the new row comes in, what was bound above it must have come
before it and still be inside, which ``rows / (rows + rate * interval)`` of each window is. Below,
rows newer than the new one are passed over, and the walk ends with the window. The rows of the
outermost loop are counted as one comparison each.

Rows come at random: an interval brings none with probability ``exp(-rate * interval)``, and nothing
is done then. As the interval goes to zero, every new row is a separate batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations
from math import expm1

from muntin.planner.orders import Order

MOST_EXHAUSTIVE = 8
"""Up to this number of windows all orders are looked at; heuristics serve beyond."""

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


@dataclass(frozen=True)
class Work:
    """The work done per second.

    Attributes compared, and rows looked at, those too new or too old among them.
    """

    comparisons: float
    scanned: float

    def __add__(self, other: Work) -> Work:
        return Work(self.comparisons + other.comparisons, self.scanned + other.scanned)


@dataclass(frozen=True)
class Progress:
    """How far a batch has come along its order.

    ``partial`` combinations with ``distinct`` values are handed to the next loop; ``inside`` is the
    share of those above the new rows that are inside their windows. All but ``work`` depends on
    which windows were passed, not on their order.
    """

    work: Work = Work(0.0, 0.0)
    partial: float = 1.0
    distinct: float | None = None
    inside: float = 1.0
    bound: bool = False


@dataclass(frozen=True)
class IntervalBatch:
    """The new rows of one stream in one interval, on their way through all windows."""

    origin: int
    windows: Sequence[WindowStatistics]
    interval: float

    @property
    def a_second(self) -> float:
        """Return the number of intervals per second that have new rows."""
        return batches_a_second(self.windows[self.origin].rate, self.interval)

    def step(self, progress: Progress, place: int) -> Progress:
        """Return the progress after one more loop, over the window or the origin's new rows."""
        window = self.windows[place]
        rows, skipped = self._rows(place, bound=progress.bound)
        share = matching = 1.0
        if progress.distinct is not None:
            share, matching = window.share(progress.distinct), window.matching(progress.distinct)
        met = progress.partial * rows / share
        passed = progress.partial * skipped / share
        work = progress.work + Work(met, met + passed)
        partial = progress.partial * rows / matching
        distinct = (
            window.distinct
            if progress.distinct is None
            else min(progress.distinct, window.distinct)
        )
        if place == self.origin:
            return Progress(work, partial * progress.inside, distinct, bound=True)
        inside = progress.inside if progress.bound else progress.inside * self._inside(window)
        return replace(progress, work=work, partial=partial, distinct=distinct, inside=inside)

    def _rows(self, place: int, *, bound: bool) -> tuple[float, float]:
        """Return the rows that a loop compares, and those that it passes over."""
        window = self.windows[place]
        if place == self.origin:
            return rows_of_a_batch(window.rate, self.interval), 0.0
        if bound:
            return window.rows, (window.stored(self.interval) - window.rows) / 2
        return window.stored(self.interval), 0.0

    def _inside(self, window: WindowStatistics) -> float:
        stored = window.stored(self.interval)
        return window.rows / stored if stored else 1.0

    def work(self, progress: Progress) -> Work:
        """Return the work per second of batches that have all come so far."""
        return Work(
            self.a_second * progress.work.comparisons, self.a_second * progress.work.scanned
        )


def batches_a_second(rate: float, interval: float) -> float:
    """Return the intervals per second that have new rows of a stream of that rate.

    Without an interval every row is one.

    >>> batches_a_second(10, 0), round(batches_a_second(10, 5), 3), round(batches_a_second(1, 1), 3)
    (10, 0.2, 0.632)
    """
    rate, interval = sane(rate), sane(interval)
    expected = rate * interval
    return min(rate, -expm1(-expected) / interval) if expected > 0 else rate


def rows_of_a_batch(rate: float, interval: float) -> float:
    """Return the number of new rows in an interval that has any.

    >>> rows_of_a_batch(10, 0), round(rows_of_a_batch(10, 5), 3), round(rows_of_a_batch(1, 1), 3)
    (1.0, 50.0, 1.582)
    """
    batches = batches_a_second(rate, interval)
    return sane(rate / batches) if batches else 0.0


def interval_work(
    origin: int, order: Sequence[int], windows: Sequence[WindowStatistics], interval: float
) -> Work:
    """Return the work per second of new rows of ``origin`` at their place in ``order``."""
    batch = IntervalBatch(origin, windows, interval)
    progress = Progress()
    for place in order:
        progress = batch.step(progress, place)
    return batch.work(progress)


def by_window_size(windows: Sequence[WindowStatistics]) -> Order:
    """Ascending size of the windows, or of their buckets.

    Best when all have equally many values.
    """
    return tuple(
        sorted(range(len(windows)), key=lambda place: windows[place].rows / windows[place].buckets)
    )


def by_selectivity(windows: Sequence[WindowStatistics]) -> Order:
    """Return the order by selectivity: always the join that passes on the fewest rows.

    Of the first two the one with the higher rate comes first: its rows then look into the smaller
    one.
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
        chosen = min(
            rest, key=lambda place: windows[place].rows / max(distinct, windows[place].distinct)
        )
        distinct = min(distinct, windows[chosen].distinct)
        order.append(chosen)
    return tuple(order)


def local_orders(windows: Sequence[WindowStatistics], interval: float) -> tuple[Order, ...]:
    """Return the cheapest order of every origin at an interval, with the origin at any place.

    >>> slow, quick = WindowStatistics(1, 100, 1000), WindowStatistics(100, 10_000, 1000)
    >>> fast = [slow, slow, quick]
    >>> local_orders(fast, 0.1)
    ((0, 1, 2), (1, 0, 2), (2, 0, 1))
    >>> local_orders(fast, 10)  # first the few rows that the slow ones have in common
    ((0, 1, 2), (1, 0, 2), (0, 1, 2))
    """
    find = _cheapest_local if len(windows) <= MOST_EXHAUSTIVE else _likely_local
    return tuple(find(origin, windows, interval) for origin in range(len(windows)))


def _cheapest_local(origin: int, windows: Sequence[WindowStatistics], interval: float) -> Order:
    """Return the best of all orders of one origin, set by set of the windows passed."""
    batch = IntervalBatch(origin, windows, interval)
    best: dict[frozenset[int], tuple[Progress, Order]] = {frozenset(): (Progress(), ())}
    for size in range(1, len(windows) + 1):
        for members in combinations(range(len(windows)), size):
            ways = []
            for last in members:
                progress, order = best[frozenset(members) - {last}]
                ways.append((batch.step(progress, last), (*order, last)))
            best[frozenset(members)] = min(
                ways, key=lambda way: (way[0].work.comparisons, way[0].work.scanned, way[1])
            )
    return best[frozenset(range(len(windows)))][1]


def _likely_local(origin: int, windows: Sequence[WindowStatistics], interval: float) -> Order:
    """Return the best order with the other windows ordered by size or by selectivity."""
    candidates = []
    for start in (by_window_size(windows), by_selectivity(windows)):
        rest = tuple(place for place in start if place != origin)
        candidates += [(*rest[:at], origin, *rest[at:]) for at in range(len(windows))]
    return min(
        candidates,
        key=lambda order: (interval_work(origin, order, windows, interval).comparisons, order),
    )
