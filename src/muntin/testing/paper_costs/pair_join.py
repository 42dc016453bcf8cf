"""Cost of a join of two windows, and of each invalidation strategy [Kostowski06, section 3].

*Half of A* is the work that rows of A cause: they scan B's window, expire its old rows and are
inserted into their own. With ``n = rate * window`` rows and ``N`` buckets per side (equation 1: one
bucket, equation 2: many)::

    half(A) = rate_B * invalidate + rate_A * n_B / N_B * scan + rate_A * insert
    total   = half(A) + half(B)

*Old rows* of B build up between two cleanings of their bucket: A's probes of it and, under the
second and fourth strategy, B's inserts into it. With ``N`` buckets that are all in use::

    strategy      buckets cleaned              old rows held in B              cleanings/s in B
    probe         the one that A probes        N_B * rate_B / rate_A           rate_A
    probe_insert  that, and B's insert bucket  N_B * rate_B / (rate_A+rate_B)  rate_A + rate_B
    probe_all     all of B, when A probes      rate_B / rate_A                 rate_A * N_B
    all           all of B, at every arrival   rate_B / (rate_A+rate_B)        (rate_A+rate_B) * N_B

A cleaning makes one comparison for each old row and one more, with the first row that stays. Two
things the paper's formulas leave out are in here: buckets beyond the number of values stay empty
(its Figure 5 shows them to bring nothing), and an empty bucket has no row to compare.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf

from muntin.model.settings import Expiry
from muntin.planner.lazy_orders import WindowStatistics, sane


@dataclass(frozen=True)
class PairCosts:
    """The cost of invalidating a row, of scanning one, and of inserting one, in any unit."""

    invalidate: float = 1.0
    scan: float = 1.0
    insert: float = 1.0


COUNTED_ALIKE = PairCosts()


@dataclass(frozen=True)
class PairWork:
    """The work of a strategy per second, and the old rows that it holds on average."""

    comparisons: float
    expiry_checks: float
    stale_rows: float


def half_cost(
    arriving: WindowStatistics, opposite: WindowStatistics, costs: PairCosts = COUNTED_ALIKE
) -> float:
    """Return the cost per second of the rows of one side.

    Half of equation (1) or (2), with the opposite side's own window and buckets.
    """
    return (
        opposite.rate * sane(costs.invalidate)
        + scanned(arriving, opposite) * sane(costs.scan)
        + arriving.rate * sane(costs.insert)
    )  # fmt: skip


def pair_cost(
    left: WindowStatistics, right: WindowStatistics, costs: PairCosts = COUNTED_ALIKE
) -> float:
    """Equations (1) and (2) for sides that may differ: the sum of both halves.

    >>> a, b = WindowStatistics(40, 1200, 100, 10), WindowStatistics(20, 600, 100, 10)
    >>> pair_cost(a, b, PairCosts(0, 1, 0))
    4800.0
    """
    return half_cost(left, right, costs) + half_cost(right, left, costs)


def scanned(arriving: WindowStatistics, opposite: WindowStatistics) -> float:
    """Return the comparisons per second of new rows with the opposite window."""
    return arriving.rate * opposite.rows / opposite.share(arriving.distinct)


def stale_rows(strategy: Expiry, own: WindowStatistics, other: WindowStatistics) -> float:
    """Return the number of rows outside its window that one side holds on average.

    What comes in between two cleanings of a bucket.
    """
    cleanings = _cleanings_of_a_bucket(strategy, own, other)
    if cleanings > 0:
        return own.rate / cleanings
    return inf if own.rate else 0.0


def expiry_checks(strategy: Expiry, own: WindowStatistics, other: WindowStatistics) -> float:
    """Return comparisons per second that let one side's old rows go.

    One for each, and one for each cleaning that leaves a row.
    """
    if not _cleanings_of_a_bucket(strategy, own, other):
        return 0.0
    filled = _buckets_in_use(own) * (1.0 - exp(-own.rows / _buckets_in_use(own)))
    if strategy is Expiry.PROBE_ALL:
        last = other.rate * filled
    elif strategy is Expiry.ALL:
        last = (own.rate + other.rate) * filled
    else:
        last = other.rate * filled / own.share(other.distinct)
        if strategy is Expiry.PROBE_INSERT:
            last += own.rate  # the row that was just inserted stays
    return own.rate + last


def pair_work(strategy: Expiry, left: WindowStatistics, right: WindowStatistics) -> PairWork:
    """Return the predicted work of a strategy, both sides together."""
    sides = ((left, right), (right, left))
    return PairWork(
        sum(scanned(*side) for side in sides),
        sum(expiry_checks(strategy, *side) for side in sides),
        sum(stale_rows(strategy, *side) for side in sides),
    )


def _buckets_in_use(window: WindowStatistics) -> float:
    return min(window.buckets, window.distinct)


def _cleanings_of_a_bucket(
    strategy: Expiry, own: WindowStatistics, other: WindowStatistics
) -> float:
    """Return the cleanings per second of one bucket of a side."""
    assert strategy.cleans_buckets, "the paper's four strategies clean buckets"
    if strategy is Expiry.PROBE_ALL:
        return other.rate
    if strategy is Expiry.ALL:
        return own.rate + other.rate
    probes = other.rate / own.share(other.distinct)
    return probes + own.rate / _buckets_in_use(own) if strategy is Expiry.PROBE_INSERT else probes
