"""Aggregates over groups, kept up to date as rows come and go (paper 2, section 4.2).

All aggregates over one argument share what is kept for it: how many values there are, their exact sum, the exact sum of their
squares, the values in order; each only if some aggregate needs it. Results come for each slot twice: before its run and after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from muntin.kernels import ordering
from muntin.operators.code_reader import whole_codes
from muntin.operators.distinct_values import DistinctValues
from muntin.operators.exact import decimals, fits_decimal, quotients, square_parts, variances
from muntin.operators.row_keys import decimal_words
from muntin.operators.value_codes import value_codes
from muntin.plan.pipeline import Aggregate
from muntin.state.group_extremes import GroupExtremes
from muntin.state.group_sums import GroupCounts, PerGroup, RealSums, WholeSums
from muntin.state.group_table import Slots
from muntin.state.group_values import GroupValues, Question

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_SPREAD = {"stddev_samp", "stddev_pop", "var_samp", "var_pop"}
_ORDERED = {"min", "max", "median", "quantile_cont", "quantile_disc"}


@dataclass(frozen=True)
class Result:
    """The values of an aggregate before and after each slot, side by side, and in which slots it is another one."""

    values: pa.Array
    changed: Mask


class Argument:
    """One argument, a column of the input or nothing, and the aggregates over it, all with DISTINCT or none.

    ``in_order``: rows leave in the order in which they came.
    """

    def __init__(
        self, kind: pa.DataType | None, aggregates: Sequence[Aggregate], distinct: DistinctValues | None, *, in_order: bool = False
    ) -> None:
        functions = {aggregate.function for aggregate in aggregates}
        self._kind = kind
        self._aggregates = aggregates
        self._distinct = distinct
        self._counts = GroupCounts()
        self._real = kind is not None and pat.is_floating(kind)
        summed = bool(functions & {"sum", "avg"})
        self._whole = WholeSums() if summed and not self._real else None
        self._sums = RealSums() if functions & _SPREAD or (summed and self._real) else None
        self._squares = RealSums() if functions & _SPREAD else None
        self._questions: list[Question] = []
        self._asked = [self._ask(aggregate) for aggregate in aggregates]
        self._values = _kept_values(self._questions, in_order=in_order and distinct is None) if self._questions else None
        self._codes = value_codes(kind) if self._values is not None and kind is not None else None

    def _ask(self, aggregate: Aggregate) -> tuple[int, ...]:
        """The questions about ordered values that an aggregate needs, by their numbers."""
        if aggregate.function not in _ORDERED:
            return ()
        ratio = Fraction(aggregate.fraction or "0.5")
        half = (float(ratio), (ratio.numerator, ratio.denominator))
        kinds = {
            "min": [ordering.LEAST],
            "max": [ordering.GREATEST],
            "quantile_disc": [ordering.DISCRETE],
        }.get(aggregate.function, [ordering.LOWER, ordering.UPPER])
        numbers = []
        for kind in kinds:
            question = Question(kind, *half)
            if question not in self._questions:
                self._questions.append(question)
            numbers.append(self._questions.index(question))
        return tuple(numbers)

    @property
    def _parts(self) -> list[PerGroup]:
        return [part for part in (self._counts, self._whole, self._sums, self._squares, self._values) if part is not None]

    def reserve(self, capacity: int) -> None:
        """Make room for so many groups."""
        for part in self._parts:
            part.reserve(capacity)

    def forget(self, groups: Integers) -> None:
        """Make groups as if they had never been."""
        for part in self._parts:
            part.forget(groups)

    def nbytes(self) -> int:
        """Bytes of all that is kept."""
        return sum(part.nbytes() for part in self._parts) + (self._distinct.nbytes() if self._distinct is not None else 0)

    def run(self, slots: Slots, signs: Integers, column: pa.ChunkedArray | None) -> list[Result]:
        """Take changes, and give the results of the aggregates in their order."""
        weights = signs
        if column is not None and column.null_count:
            weights = np.where(column.is_valid().to_numpy(), signs, 0)
        if column is not None and self._distinct is not None:
            weights = self._distinct.weights(slots, weights, column)
        counts = self._counts.add(slots, weights)
        if column is None:
            return [Result(pa.array(counts), _differ(counts)) for _ in self._aggregates]
        whole = self._add_whole(slots, weights, column) if self._whole is not None else None
        reals = squares = None
        if self._sums is not None:
            numbers = _reals(column)
            reals = self._sums.add(slots, weights, numbers)
            if self._squares is not None:
                squares = self._squares.add(slots, weights, *square_parts(numbers))
        answers = None
        if self._values is not None and self._codes is not None:
            answers = self._values.add(slots, weights, self._codes.encode(column, self._values))
        found = _Found(counts, whole, reals, squares, answers, self._codes.decode if self._codes else None)
        scale = self._kind.scale if self._kind is not None and pat.is_decimal(self._kind) else 0
        return [_result(aggregate, found, asked, scale) for aggregate, asked in zip(self._aggregates, self._asked, strict=True)]

    def _add_whole(self, slots: Slots, weights: Integers, column: pa.ChunkedArray) -> Integers:
        assert self._whole is not None, "asked for only where it is there"
        if pat.is_decimal(column.type):
            low, high = decimal_words(column)
        else:
            low = np.ascontiguousarray(whole_codes(column))
            high = np.zeros(len(low), np.int64) if column.type == pa.uint64() else low >> 63
        return self._whole.add(slots, weights, low, high)


def _kept_values(questions: Sequence[Question], *, in_order: bool) -> GroupValues | GroupExtremes:
    if in_order and all(question.kind in {ordering.LEAST, ordering.GREATEST} for question in questions):
        return GroupExtremes(questions)
    return GroupValues(questions)


@dataclass(frozen=True)
class _Found:
    """What the parts of an argument say about slots."""

    counts: Integers
    whole: Integers | None
    reals: npt.NDArray[np.float64] | None
    squares: npt.NDArray[np.float64] | None
    answers: Integers | None
    decode: Callable[[Integers], pa.Array] | None


def _result(aggregate: Aggregate, found: _Found, asked: tuple[int, ...], scale: int) -> Result:
    counts = found.counts
    if aggregate.function == "count":
        return Result(pa.array(counts), _differ(counts))
    some = counts > 0
    if aggregate.function in _ORDERED:
        return _ordered(aggregate, found, asked, some)
    if aggregate.function == "sum" and found.whole is not None:
        fits = some & fits_decimal(found.whole)
        words = np.where(fits[:, None], found.whole, 0)
        return Result(decimals(words, fits, aggregate.type), _differ(words, fits))
    if aggregate.function in _SPREAD:
        assert found.reals is not None, "kept for these functions"
        assert found.squares is not None, "kept for these functions"
        numbers = variances(counts, found.reals, found.squares, sample=aggregate.function.endswith("samp"))
        numbers = np.sqrt(numbers) if aggregate.function.startswith("stddev") else numbers
        some = counts > (1 if aggregate.function.endswith("samp") else 0)
    elif aggregate.function == "sum":
        assert found.reals is not None, "kept for sums"
        numbers = found.reals[:, 0]
    else:
        numbers = quotients(counts, found.whole, found.reals, scale)
    numbers = np.where(some, numbers, 0.0)
    return Result(pa.array(numbers, mask=~some), _differ(numbers.view(np.int64), some))


def _ordered(aggregate: Aggregate, found: _Found, asked: tuple[int, ...], some: Mask) -> Result:
    assert found.answers is not None, "kept for these functions"
    assert found.decode is not None, "kept for these functions"
    codes = found.answers[list(asked)]
    changed = _differ(some, *codes)
    if len(asked) == 1:
        values = found.decode(codes[0])
        return Result(_masked(values, some), changed)
    fraction = float(Fraction(aggregate.fraction or "0.5"))
    lower, upper = (found.decode(part).cast(pa.float64()).to_numpy(zero_copy_only=False) for part in codes)
    place = np.maximum(found.counts - 1, 0) * fraction
    share = place - np.floor(place)
    # Equal neighbours are their own mean, also where they are infinite. A change of the share alone changes the result, too.
    numbers = np.where(lower == upper, lower, lower + (upper - lower) * share)
    numbers = np.where(some, numbers, 0.0)
    return Result(pa.array(numbers, mask=~some).cast(aggregate.type), _differ(some, numbers.view(np.int64)))


def _masked(values: pa.Array, some: Mask) -> pa.Array:
    if some.all():
        return values
    return pc.if_else(pa.array(some), values, pa.scalar(None, values.type))


def _differ(*columns: npt.NDArray[np.generic]) -> Mask:
    """In which slots some column has another value after than before."""
    masks = [column[0::2] != column[1::2] for column in columns]
    masks = [mask.any(axis=1) if mask.ndim > 1 else mask for mask in masks]
    changed: Mask = np.logical_or.reduce(masks)
    return changed


def _reals(column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    """The column as floating-point numbers, 0 for NULL."""
    numbers = column.cast(pa.float64(), safe=False)
    if numbers.null_count:
        numbers = numbers.fill_null(0.0)
    return np.ascontiguousarray(numbers.to_numpy())
