"""What window functions of one order need of each row: the words of arguments, bounds of frames.

Calls over the same argument share its words and sums; calls over the same frame are read together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from muntin.aggregates import aggregate_functions
from muntin.aggregates.exact import product_parts
from muntin.aggregates.function import Keep, Need, Rank, RankKind
from muntin.expressions.codes import real_codes, whole_codes
from muntin.expressions.evaluator import Evaluator
from muntin.kernels import framed_rows as trees
from muntin.kernels import frames as ends
from muntin.kernels import window_functions as kernels
from muntin.model.arrays import Integers, Reals
from muntin.operators.aggregates import reals_of
from muntin.operators.row_keys import decimal_words, row_keys
from muntin.operators.value_codes import value_codes
from muntin.plan.window_functions import (
    Bound,
    BoundKind,
    Frame,
    FrameMode,
    RowFunction,
    WindowCall,
    WindowFunctions,
)
from muntin.state.framed_rows import FramedRows, FrameLayout, Measure, Reading

_SHORT_DIGITS = 18
_MOST = np.iinfo(np.int64)
_ROUNDING = 2.0**-50
"""By how much more than its rounding error the reach of a change is widened, relatively."""

Item = TypeVar("Item")


class Argument(Protocol):
    """An argument of a kind of reading."""

    def words(self, columns: pa.Table, rows: FramedRows, evaluator: Evaluator) -> list[Integers]:
        """Return its words for rows; rename those of kept rows if needed."""


@dataclass(frozen=True)
class SummedArgument:
    """An argument that is added up, or whose squares are."""

    column: int
    measure: Measure
    number: int
    squares: bool = False

    def words(self, columns: pa.Table, rows: FramedRows, evaluator: Evaluator) -> list[Integers]:
        """Return whether it is NULL, and the number in two words."""
        del evaluator
        column = columns.column(self.column)
        missing = (~column.is_valid().to_numpy()).astype(np.int64)
        if self.measure.kind == trees.COUNTED:
            return [missing]
        if self.measure.kind == trees.REAL:
            numbers = reals_of(column)
            more = np.zeros(len(numbers))
            if self.squares:
                numbers, more = product_parts(numbers, numbers)
            rows.widen(self.number, np.concatenate([numbers, more]))
            return [missing, _bits(numbers), _bits(more)]
        if pat.is_decimal(column.type):
            return [missing, *decimal_words(column)]
        low = np.ascontiguousarray(whole_codes(column))
        high = np.zeros(len(low), np.int64) if column.type == pa.uint64() else low >> 63
        return [missing, low, high]


class OrderedArgument:
    """An argument whose least or greatest value is asked for."""

    def __init__(self, column: int, kind: pa.DataType, word: int) -> None:
        self._column = column
        self._word = word
        self._codes = value_codes(kind)

    def words(self, columns: pa.Table, rows: FramedRows, evaluator: Evaluator) -> list[Integers]:
        """Return whether it is NULL, and the code of its value."""
        del evaluator
        column = columns.column(self._column)
        missing = (~column.is_valid().to_numpy()).astype(np.int64)
        return [missing, self._codes.encode(column, _KeptCodes(rows, self._word + 1))]


@dataclass(frozen=True)
class _KeptCodes:
    """The codes of an argument that rows have."""

    rows: FramedRows
    word: int

    def __len__(self) -> int:
        return len(self.rows)

    def known(self) -> Integers:
        """Return all codes that are kept, ascending."""
        return self.rows.known(self.word)

    def rename(self, before: Integers, after: Integers) -> None:
        """Use other codes for the same values, in the same order."""
        self.rows.rename(self.word, before, after)


@dataclass(frozen=True)
class NamedArgument:
    """An argument of which the value of one row is taken."""

    column: int

    def words(self, columns: pa.Table, rows: FramedRows, evaluator: Evaluator) -> list[Integers]:
        """Return two words that are equal for equal values."""
        del rows
        return list(row_keys(columns.select([self.column]), evaluator))


@dataclass(frozen=True)
class KeyBound:
    """A bound of a frame at a distance from the key: how keys are shifted."""

    distance: int | float
    is_start: bool


@dataclass(frozen=True)
class FramePlan:
    """The arguments of calls, the shifted keys of frames, and the readings of each call."""

    layout: FrameLayout
    arguments: tuple[Argument, ...]
    bounds: tuple[KeyBound, ...]
    readings: dict[str, tuple[int, ...]]
    key: int
    descending: bool

    def keys(self, columns: pa.Table, first: Sequence[Integers]) -> tuple[list[Integers], Integers]:
        """Return the words of bounds for rows, and how far a change of a row reaches.

        ``first`` are the words of the key that orders rows.
        """
        reach = np.empty((len(columns), len(self.bounds)), np.int64)
        words = []
        for at, bound in enumerate(self.bounds):
            sign = -1 if self.descending else 1
            column = columns.column(self.key)
            own = first[1] ^ -1 if self.descending else first[1]
            # In the order of rows, the first row behind a bound or the last one before it.
            outward = sign if bound.is_start else -sign
            shifted = _shifted(column, own, sign * bound.distance, 0)
            limit = _shifted(column, own, -sign * bound.distance, outward)
            words.append(~shifted if self.descending else shifted)
            reach[:, at] = ~limit if self.descending else limit
        return words, reach


def plan_frames(node: WindowFunctions, order: int, peers: int) -> FramePlan:
    """Return what the calls of a node need; ``order`` words order rows, ``peers`` of them peers."""
    return _Planner(node, order, peers).plan()


class _Planner:
    """Collects what calls need, each thing once."""

    def __init__(self, node: WindowFunctions, order: int, peers: int) -> None:
        self._node = node
        self._order, self._peers = order, peers
        self._words = order
        self._arguments: list[Argument] = []
        self._measures: dict[tuple[int, str], tuple[int, Measure]] = {}
        self._extremes: dict[tuple[int, bool], int] = {}
        self._extreme_words: list[tuple[int, bool]] = []
        self._ordered: dict[int, int] = {}
        self._named: dict[int, int] = {}
        self._frames: list[Frame] = []
        self._readings: list[Reading] = []

    def plan(self) -> FramePlan:
        """Return all that calls need."""
        readings = {call.name: self._call(call) for call in self._node.calls}
        bounds: list[KeyBound] = []
        frames = tuple(
            (
                *self._bound(frame.mode, frame.start, bounds, is_start=True),
                *self._bound(frame.mode, frame.end, bounds, is_start=False),
            )
            for frame in self._frames
        )
        layout = FrameLayout(
            self._words + len(bounds),
            self._order,
            self._peers,
            tuple(measure for _, measure in self._measures.values()),
            tuple(self._extreme_words),
            frames,
            tuple(self._readings),
        )
        first = self._node.order[0] if self._node.order else None
        return FramePlan(
            layout,
            tuple(self._arguments),
            tuple(bounds),
            readings,
            0 if first is None else first.column,
            first is not None and first.descending,
        )

    def _bound(
        self, mode: FrameMode, bound: Bound, bounds: list[KeyBound], *, is_start: bool
    ) -> tuple[int, int, int]:
        """Return a bound as the kernel reads it, with a place for its key if it needs one."""
        if bound.kind in {BoundKind.FIRST, BoundKind.LAST}:
            return ends.ENDLESS, 0, 0
        if mode is FrameMode.ROWS:
            return ends.ROWS, int(bound.distance), 0
        if bound.kind is BoundKind.CURRENT:
            return ends.PEERS, 0, 0
        bounds.append(KeyBound(bound.distance, is_start))
        return ends.KEYS, self._words + len(bounds) - 1, len(bounds) - 1

    def _call(self, call: WindowCall) -> tuple[int, ...]:
        frame = _place(self._frames, call.frame)
        if call.function in set(RowFunction):
            assert call.argument is not None, "functions of rows have one"
            row = {RowFunction.LAST_VALUE: -1, RowFunction.NTH_VALUE: call.number - 1}
            reading = Reading(
                kernels.NTH,
                self._row_of(call.argument),
                frame,
                row.get(RowFunction(call.function), 0),
            )
            return (_place(self._readings, reading),)
        if call.argument is None:
            return (_place(self._readings, Reading(kernels.NUMBER, 0, frame)),)
        kind = self._node.input.schema.field(call.argument).type
        needs = aggregate_functions()[call.function].needs(kind, Fraction(1, 2))
        found = [self._need(need, call.argument, kind) for need in needs or (None,)]
        return tuple(
            _place(self._readings, Reading(reading, subject, frame)) for reading, subject in found
        )

    def _need(self, need: Need | None, column: int, kind: pa.DataType) -> tuple[int, int]:
        """Return how what a function needs is read."""
        if isinstance(need, Rank):
            return kernels.EXTREME, self._extreme(column, kind, least=need.kind is RankKind.LEAST)
        assert need is None or isinstance(need, Keep), "the binder refuses other functions"
        return kernels.SUM, self._measure(column, kind, need)

    def _measure(self, column: int, kind: pa.DataType, need: Keep | None) -> int:
        key = (column, str(need))
        if key not in self._measures:
            if need is None:
                measure = Measure(trees.COUNTED, self._words)
            elif need is Keep.WHOLE_SUM:
                short = pat.is_decimal(kind) and kind.precision <= _SHORT_DIGITS
                narrow = short or (not pat.is_decimal(kind) and kind != pa.uint64())
                measure = Measure(trees.WHOLE, self._words, 2 if narrow else 4)
            else:
                measure = Measure(trees.REAL, self._words)
            number = len(self._measures)
            squares = need is Keep.REAL_SQUARES
            self._arguments.append(SummedArgument(column, measure, number, squares))
            self._words += 1 if need is None else 3
            self._measures[key] = number, measure
        return self._measures[key][0]

    def _extreme(self, column: int, kind: pa.DataType, *, least: bool) -> int:
        if column not in self._ordered:
            self._ordered[column] = self._words
            self._arguments.append(OrderedArgument(column, kind, self._words))
            self._words += 2
        return _place(self._extreme_words, (self._ordered[column], least))

    def _row_of(self, column: int) -> int:
        if column not in self._named:
            self._named[column] = self._words
            self._arguments.append(NamedArgument(column))
            self._words += 2
        return self._named[column]


def _place(items: list[Item], item: Item) -> int:
    """Return the place of an item in a list, to which it is added if it is new."""
    if item not in items:
        items.append(item)
    return items.index(item)


def _bits(numbers: Reals) -> Integers:
    return np.ascontiguousarray(numbers).view(np.int64)


def _shifted(column: pa.ChunkedArray, codes: Integers, distance: float, outward: int) -> Integers:
    """Return the codes of keys that are shifted, any for NULL.

    Whole numbers end at the least and the greatest one. Of others, those shifted ``outward`` are at
    least that far away in spite of rounding.
    """
    if not pat.is_floating(column.type):
        step = np.int64(int(distance))
        moved = codes + step
        if step > 0:
            return np.where(moved < codes, _MOST.max, moved)
        return np.where(moved > codes, _MOST.min, moved)
    numbers = reals_of(column)
    with np.errstate(over="ignore", invalid="ignore"):
        shifted = numbers + distance
        slack = (np.abs(numbers) + abs(distance)) * _ROUNDING * outward
        shifted = np.where(np.isfinite(slack) & np.isfinite(shifted), shifted + slack, shifted)
    return real_codes(pa.chunked_array([pa.array(shifted)]))
