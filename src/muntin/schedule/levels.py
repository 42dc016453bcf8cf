"""The windows of queries that share a join, as levels, and the tables of MQT.

A level is what queries with the same windows have in common. Levels are ordered so that windows
come after those they contain. The *edge* of a level is how far a row must have looked to have
finished it and all before it.

MaxQT(i, j) ([Hammad03, section 3.3]), for a row that has finished ``i`` levels behind one that has
finished ``j``, is the largest ratio of queries served to distance looked at among the ways to
continue to one of the levels up to ``j``. Queries count by their weights, distances by the rates of
the streams. The best ways are in a table, which is made again when queries or rates change. Ratios
are compared as products of integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import gcd, lcm

import numpy as np
import numpy.typing as npt

from muntin.model.arrays import Integers, Reals

_SAFE = 1 << 62
_MOST_SERVED = (1 << 31) - 1


@dataclass(frozen=True)
class Levels:
    """Levels of a join."""

    sizes: tuple[tuple[int, ...], ...]
    """For each level the length of its window over each source; any positive number for a table."""
    counts: tuple[int, ...]
    """For each level how much its queries count, relative to the others; below 2**31 in all."""
    looks: tuple[int, ...]
    """For each source as origin of a row: the source whose window determines the cost of a scan."""
    rates: tuple[int, ...]
    """For each source how many rows a unit of its windows has, relative to the others."""

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def edges(self) -> tuple[tuple[int, ...], ...]:
        """For each level how far a row must have looked into each source."""
        return tuple(accumulate(self.sizes, lambda edge, level: tuple(map(max, edge, level))))

    @property
    def contained(self) -> bool:
        """Return whether each level's windows contain those of the levels before."""
        return self.edges == self.sizes

    @cached_property
    def served(self) -> Integers:
        """Return the counts of the levels before each level, and of all."""
        return np.array([0, *accumulate(self.counts)], np.int64)

    @cached_property
    def tables(self) -> Integers:
        """For each origin which of the different costs and tables are its own."""
        return np.array(
            [self._costs.index(self._cost(origin)) for origin in range(len(self.looks))], np.int64
        )

    @cached_property
    def reach(self) -> Integers:
        """Return what a row has looked at when it has finished each level."""
        return np.array(self._costs, np.int64).reshape(len(self._costs), len(self))

    @cached_property
    def _costs(self) -> list[tuple[int, ...]]:
        return list(dict.fromkeys(self._cost(origin) for origin in range(len(self.looks))))

    def _cost(self, origin: int) -> tuple[int, ...]:
        source = self.looks[origin]
        return tuple(self.rates[source] * edge[source] for edge in self.edges)

    @cached_property
    def best(self) -> npt.NDArray[np.int32]:
        """Return the last level of the best way, for each table.

        At ``level * levels + limit - 1`` for the way that continues at ``level`` within ``limit``
        levels.

        >>> Levels(((2, 2), (3, 3), (6, 6)), (1, 1, 1), (1, 0), (1, 1)).best.tolist()
        [[0, 1, 1, 0, 1, 1, 0, 0, 2]]
        """
        return np.array([_best_ways(self.served, reach) for reach in self.reach], np.int32).reshape(
            len(self.reach), -1
        )

    @cached_property
    def quotients(self) -> Reals:
        """Return the rounded ratios of the best ways, at the places of these in :attr:`best`.

        Close ones have to be compared exactly.
        """
        count = len(self)
        done = np.repeat(np.arange(count), count)
        until = np.maximum(self.best, done)
        begin = np.where(done > 0, self.reach[:, done - 1], 0)
        widths = np.take_along_axis(self.reach, until, axis=1) - begin
        with np.errstate(divide="ignore"):
            found: Reals = (self.served[until + 1] - self.served[done]) / widths
        return found


def level_counts(weights: Sequence[Sequence[Fraction]]) -> tuple[int, ...]:
    """Return the sums of weights, per level, as whole numbers in the same ratios.

    Equal weights make them the numbers of queries. Where whole numbers would be too large, they are
    rounded to what kernels can compare exactly.

    >>> level_counts([[Fraction(1), Fraction(1)], [Fraction("2.5")]])
    (4, 5)
    """
    every = [weight for level in weights for weight in level]
    unit = Fraction(
        gcd(*(weight.numerator for weight in every)), lcm(*(weight.denominator for weight in every))
    )
    sums = [sum(level, Fraction(0)) / unit for level in weights]
    shrunk = min(Fraction(_MOST_SERVED - len(sums)) / sum(sums), Fraction(1))
    return tuple(max(int(each * shrunk), 1) for each in sums)


def _best_ways(served: Integers, reach: Integers) -> npt.NDArray[np.int32]:
    """Return the last level of the way with the largest ratio, the shortest of several.

    A row per number of levels done, a column per limit.
    """
    count = len(reach)
    exact = np.int64 if int(served[-1]) * int(reach[-1]) < _SAFE else object
    before = np.concatenate([[0], reach[:-1]]).astype(exact)
    best = np.zeros((count, count), np.int32)
    queries, widths = np.zeros(count, exact), np.ones(count, exact)
    for limit in range(count):
        best[: limit + 1, limit] = best[: limit + 1, limit - 1] if limit else 0
        more = (int(served[limit + 1]) - served[: limit + 1]).astype(exact)
        wide = int(reach[limit]) - before[: limit + 1]
        better = more * widths[: limit + 1] > queries[: limit + 1] * wide
        better[limit] = True
        queries[: limit + 1] = np.where(better, more, queries[: limit + 1])
        widths[: limit + 1] = np.where(better, wide, widths[: limit + 1])
        best[: limit + 1, limit] = np.where(better, limit, best[: limit + 1, limit])
    return best
