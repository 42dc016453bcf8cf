"""Cost of NAIVE, LAZY and GENERAL LAZY at an interval [Golab03, sections 3 to 5].

Every interval the new rows of each stream are joined at their place in an order of all windows, the
other windows above and below them. Two models:

*Ours*, :func:`interval_work`, says what the kernel does. Windows above the new rows are read as
they are stored: with the rows of the last interval and those that were inside the window at its
begin, ``rows + rate * interval``. Where the new row comes in, what was bound above it must have
come before it and still be inside, which ``rows / (rows + rate * interval)`` of each window is.
Below, rows newer than the new one are passed over, and the walk ends with the window. So the
comparisons of LAZY are those of EAGER, whatever the interval; what grows is the number of rows it
has to look at, half an interval's in every walk. The rows of the outermost loop are counted as one
comparison each.

*The paper's*, :func:`paper_interval_cost`, lets every loop run over all that is stored, and counts
only comparisons of two attributes. Its figures follow from it (its appendix is not printed).

Rows come at random: an interval brings none with probability ``exp(-rate * interval)``, and nothing
is done then. As the interval goes to zero, every new row is a separate batch, which is how
NAIVE runs here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import expm1

from muntin.planner.paper_costs.multi_join import WindowStatistics, sane

Windows = Sequence[WindowStatistics]
LoopOrder = Sequence[int]


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
    windows: Windows
    interval: float

    @property
    def a_second(self) -> float:
        """The intervals per second that have new rows."""
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


def interval_work(origin: int, order: LoopOrder, windows: Windows, interval: float) -> Work:
    """Return the work per second of new rows of ``origin`` at their place in ``order``."""
    batch = IntervalBatch(origin, windows, interval)
    progress = Progress()
    for place in order:
        progress = batch.step(progress, place)
    return batch.work(progress)


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
