"""The state of aggregates over groups, kept up to date as rows come and go [HammadTR, section 4.2].

All aggregates over one argument share the state for it; each function of :mod:`muntin.aggregates`
declares what that is and how values follow from it. Results come twice per slot: before its run and
after.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from muntin.aggregates import aggregate_functions
from muntin.aggregates.exact import product_parts
from muntin.aggregates.function import ArgumentSummary, Keep, Need, Rank, RankKind, Result
from muntin.expressions.codes import whole_codes
from muntin.kernels import order_statistics as ordering
from muntin.model.arrays import Integers, Reals
from muntin.operators.argument_state import ArgumentState
from muntin.operators.distinct_values import DistinctValues
from muntin.operators.row_keys import decimal_words
from muntin.operators.value_codes import value_codes
from muntin.plan.nodes import Aggregate
from muntin.state.group_extremes import GroupExtremes
from muntin.state.group_sums import GroupCounts, PerGroup, RealSums, WholeSums
from muntin.state.group_table import Slots
from muntin.state.group_values import GroupValues, Question

_KINDS = {
    RankKind.LEAST: ordering.LEAST,
    RankKind.GREATEST: ordering.GREATEST,
    RankKind.LOWER: ordering.LOWER,
    RankKind.UPPER: ordering.UPPER,
    RankKind.DISCRETE: ordering.DISCRETE,
}
_EXTREMES = {RankKind.LEAST, RankKind.GREATEST}


def needs_of(aggregates: Sequence[Aggregate], kind: pa.DataType | None) -> frozenset[Need]:
    """Return the state that aggregates over values of a type need."""
    if kind is None:
        return frozenset()
    functions = aggregate_functions()
    return frozenset(
        need for one in aggregates for need in functions[one.function].needs(kind, _fraction(one))
    )


def results_of(aggregates: Sequence[Aggregate], kept: ArgumentSummary) -> list[Result]:
    """Return the results of aggregates over one argument, given what is kept of it."""
    functions = aggregate_functions()
    return [functions[one.function].result(kept, one.type, _fraction(one)) for one in aggregates]


def _fraction(aggregate: Aggregate) -> Fraction:
    return Fraction(aggregate.fraction or "0.5")


class Argument(ArgumentState):
    """What is kept of one argument, a column of the input or nothing, with DISTINCT or without.

    ``in_order``: rows leave in the order in which they came.
    """

    def __init__(
        self,
        kind: pa.DataType | None,
        needs: AbstractSet[Need],
        distinct: DistinctValues | None = None,
        *,
        in_order: bool = False,
    ) -> None:
        self._distinct = distinct
        self._scale = kind.scale if kind is not None and pat.is_decimal(kind) else 0
        self._counts = GroupCounts()
        self._whole = WholeSums() if Keep.WHOLE_SUM in needs else None
        self._sums = RealSums() if Keep.REAL_SUM in needs else None
        self._squares = RealSums() if Keep.REAL_SQUARES in needs else None
        self._ranks = sorted((need for need in needs if isinstance(need, Rank)), key=str)
        self._values = (
            _kept_values(self._ranks, in_order=in_order and distinct is None)
            if self._ranks
            else None
        )
        self._codes = value_codes(kind) if self._values is not None and kind is not None else None

    @property
    def _parts(self) -> list[PerGroup]:
        kept = (self._counts, self._whole, self._sums, self._squares, self._values)
        return [part for part in kept if part is not None]

    def nbytes(self) -> int:
        """Return the bytes of all that is kept."""
        return super().nbytes() + (0 if self._distinct is None else self._distinct.nbytes())

    def run(
        self, slots: Slots, signs: Integers, column: pa.ChunkedArray | None, order: pa.Table
    ) -> ArgumentSummary:
        """Take changes, and return what is kept before and after them."""
        del order
        weights = signs
        if column is not None and column.null_count:
            weights = np.where(column.is_valid().to_numpy(), signs, 0)
        if column is not None and self._distinct is not None:
            weights = self._distinct.weights(slots, weights, column)
        counts = self._counts.add(slots, weights)
        return (
            ArgumentSummary(counts)
            if column is None
            else self._kept(slots, weights, column, counts)
        )

    def _kept(
        self, slots: Slots, weights: Integers, column: pa.ChunkedArray, counts: Integers
    ) -> ArgumentSummary:
        whole = self._add_whole(slots, weights, column) if self._whole is not None else None
        reals = squares = ranks = None
        if self._sums is not None:
            numbers = reals_of(column)
            reals = self._sums.add(slots, weights, numbers)
            if self._squares is not None:
                squares = self._squares.add(slots, weights, *product_parts(numbers, numbers))
        if self._values is not None and self._codes is not None:
            found = self._values.add(slots, weights, self._codes.encode(column, self._values))
            ranks = dict(zip(self._ranks, found, strict=True))
        decode = self._codes.decode if self._codes else None
        return ArgumentSummary(counts, whole, reals, squares, ranks, decode, scale=self._scale)

    def _add_whole(self, slots: Slots, weights: Integers, column: pa.ChunkedArray) -> Integers:
        assert self._whole is not None, "asked for only where it is there"
        if pat.is_decimal(column.type):
            low, high = decimal_words(column)
        else:
            low = np.ascontiguousarray(whole_codes(column))
            high = np.zeros(len(low), np.int64) if column.type == pa.uint64() else low >> 63
        return self._whole.add(slots, weights, low, high)


def _kept_values(ranks: Sequence[Rank], *, in_order: bool) -> GroupValues | GroupExtremes:
    questions = [
        Question(_KINDS[rank.kind], float(rank.fraction), rank.fraction.as_integer_ratio())
        for rank in ranks
    ]
    if in_order and all(rank.kind in _EXTREMES for rank in ranks):
        return GroupExtremes(questions)
    return GroupValues(questions)


def reals_of(column: pa.ChunkedArray) -> Reals:
    """Return the column as floating-point numbers, 0 for NULL."""
    numbers = column.cast(pa.float64(), safe=False)
    if numbers.null_count:
        numbers = numbers.fill_null(0.0)
    return np.ascontiguousarray(numbers.to_numpy())
