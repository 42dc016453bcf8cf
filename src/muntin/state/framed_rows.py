"""Rows of groups in order, with the values of window functions of each, and the values of rows.

Invariant: every row has a node, and after each batch its results there are those of its frame.
Results name rows that are present, by where their values are in a log; once most rows of the log
have gone, the others are copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pyarrow as pa

from muntin.kernels import framed_rows as trees
from muntin.kernels import frames
from muntin.kernels import window_functions as kernels
from muntin.kernels.order_statistics import DEEPEST, FREE, LIVE, META, NONE, SIZE, USED
from muntin.kernels.ranked_rows import PLACE
from muntin.model.arrays import Integers, Reals
from muntin.state.columns import take_rows
from muntin.state.group_sums import limbs_for
from muntin.state.group_table import Slots, grown

_LEAST = 1 << 10
_PIECES = 64
"""Pieces of the log from which on they are concatenated: lookups take longer the more there are."""
_ROOM = 1 << 16
"""Results of a call of the kernel beyond those of one run."""
_WIDTHS = {kernels.NUMBER: 1, kernels.EXTREME: 2, kernels.NTH: 3}


@dataclass(frozen=True)
class Measure:
    """An argument that is added up: its kind, the first of its words, its limbs if known."""

    kind: int
    word: int
    limbs: int = 0

    @property
    def width(self) -> int:
        """Return the number of words that a reading of it has."""
        return {trees.WHOLE: 4, trees.REAL: 3, trees.COUNTED: 1}[self.kind]


@dataclass(frozen=True)
class Reading:
    """What is read of a frame, by number: see :mod:`muntin.kernels.window_functions`."""

    kind: int
    subject: int
    frame: int
    row: int = 0


@dataclass(frozen=True)
class FrameLayout:
    """The words of rows and what is read of them.

    ``order`` words order rows and the first ``peers`` of them peers. ``extremes`` have the first
    word and whether it is the least; ``frames`` are rows of the kernel's table, with columns of
    words instead of columns of nodes.
    """

    words: int
    order: int
    peers: int
    measures: tuple[Measure, ...]
    extremes: tuple[tuple[int, bool], ...]
    frames: tuple[tuple[int, ...], ...]
    readings: tuple[Reading, ...]


class FramedRows:
    """Rows under groups that somebody else numbers, with what is read of their frames."""

    def __init__(self, schema: pa.Schema, layout: FrameLayout) -> None:
        self._layout = layout
        self._bases = [0] * len(layout.measures)
        self._limbs = [measure.limbs for measure in layout.measures]
        self.places: list[int] = []
        """For each reading the first of its results."""
        width = 0
        for reading in layout.readings:
            self.places.append(width)
            width += self._width(reading)
        self._width_of_results = width
        self._results = trees.WORDS + layout.words + len(layout.extremes)
        self._nodes = np.zeros((_LEAST, self._results + width), np.int64)
        self._sums = np.zeros((_LEAST, self._firsts()[-1]), np.int64)
        self._roots = np.zeros(0, np.int64)
        self._meta = np.zeros(META, np.int64)
        self._meta[FREE] = NONE
        self._path = np.empty(DEEPEST, np.int64)
        self._log = schema.empty_table()

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self._meta[LIVE])

    def _width(self, reading: Reading) -> int:
        if reading.kind == kernels.SUM:
            return self._layout.measures[reading.subject].width
        return _WIDTHS[reading.kind]

    def _firsts(self) -> list[int]:
        """Return the column of sums where each measure begins, and how many columns there are."""
        widths = (trees.HEAD + limbs for limbs in self._limbs)
        return list(accumulate(widths, initial=0))

    def reserve(self, capacity: int) -> None:
        """Make room for ``capacity`` groups."""
        if len(self._roots) < capacity:
            self._roots = grown(self._roots, capacity, fill=NONE)

    def widen(self, measure: int, numbers: Reals) -> None:
        """Make the limbs of a measure reach from the lowest bit of numbers to the highest."""
        base, width = self._bases[measure], self._limbs[measure]
        lower, wanted = limbs_for(base, width, numbers)
        if (lower, wanted) == (base, width):
            return
        first = self._firsts()[measure] + trees.HEAD
        start = first + ((base - lower) // 32 if width else 0)
        sums = np.zeros((len(self._sums), self._sums.shape[1] + wanted - width), np.int64)
        sums[:, :first] = self._sums[:, :first]
        sums[:, start : start + width] = self._sums[:, first : first + width]
        sums[:, first + wanted :] = self._sums[:, first + width :]
        self._sums, self._bases[measure], self._limbs[measure] = sums, lower, wanted

    def apply(self, slots: Slots, signs: Integers, words: Integers, reach: Integers) -> Integers:
        """Apply changes; return the rows whose values change, with the old and new ones.

        The log has the rows: see :meth:`append` and :meth:`rows`.
        """
        coming = signs > 0
        wanted = int(self._meta[USED]) + int(coming.sum())
        if wanted > len(self._nodes):
            capacity = 1 << (wanted - 1).bit_length()
            self._nodes, self._sums = grown(self._nodes, capacity), grown(self._sums, capacity)
        places = len(self._log) - int(coming.sum()) + np.cumsum(coming) - 1
        rows = trees.FramedChanges(words, places, reach)
        nodes = trees.FramedTrees(self._nodes, self._sums, self._roots, self._meta, self._path)
        subjects, calls = self._subjects(), self._calls()
        reader = self._reader(len(signs))
        parts, run, room = [], 0, 0
        while run < len(slots.run_rows) - 1:
            out = np.empty((room + _ROOM, kernels.RESULTS + self._width_of_results), np.int64)
            run, written, room = kernels.frame_slots(
                slots.arrays, signs, rows, nodes, subjects, calls, run, reader, out
            )
            parts.append(out[:written].copy() if 2 * written < len(out) else out[:written])
        return np.concatenate(parts)

    def _subjects(self) -> trees.Subjects:
        measures = [
            [measure.kind, first, limbs, base, trees.WORDS + measure.word]
            for measure, first, limbs, base in zip(
                self._layout.measures, self._firsts(), self._limbs, self._bases, strict=False
            )
        ]
        bests = trees.WORDS + self._layout.words
        extremes = [
            [bests + at, trees.WORDS + word, int(least)]
            for at, (word, least) in enumerate(self._layout.extremes)
        ]
        return trees.Subjects(
            _table(measures, trees.MEASURE_FIELDS),
            _table(extremes, trees.EXTREME_FIELDS),
            self._layout.order,
        )

    def _calls(self) -> frames.Calls:
        bounds = [
            [
                number + trees.WORDS if kind == frames.KEYS and at == 1 else number
                for kind, part in ((frame[0], frame[:3]), (frame[3], frame[3:]))
                for at, number in enumerate(part)
            ]
            for frame in self._layout.frames
        ]
        readings = [
            [
                reading.kind,
                reading.subject + (trees.WORDS if reading.kind == kernels.NTH else 0),
                reading.frame,
                place,
                self._width(reading),
                reading.row,
            ]
            for reading, place in zip(self._layout.readings, self.places, strict=True)
        ]
        return frames.Calls(
            _table(bounds, frames.FRAME_FIELDS),
            _table(readings, kernels.READING_FIELDS),
            self._layout.peers,
            self._results,
        )

    def _reader(self, changes: int) -> kernels.Reader:
        limbs = max(self._limbs, default=0)
        numbers = np.empty((1, 2), np.float64)
        readings = len(self._layout.readings)
        return kernels.Reader(
            spans=np.empty((len(self._layout.frames), 2), np.int64),
            cursors=np.zeros((readings, kernels.CURSOR_FIELDS), np.int64),
            sums=np.zeros((readings, trees.HEAD + limbs), np.int64),
            limbs=np.empty((1, limbs), np.int64),
            specials=np.empty((1, trees.COUNT), np.int64),
            carries=np.empty(limbs, np.int64),
            numbers=numbers,
            bits=numbers.view(np.int64),
            fresh=np.empty(self._width_of_results, np.int64),
            key=np.empty(max(self._layout.order, 2), np.int64),
            ranges=np.empty((changes, 2), np.int64),
        )

    def append(self, rows: pa.Table) -> None:
        """Add the values of rows that come, before the changes themselves."""
        self._log = pa.concat_tables([self._log, rows])

    def rows(self, found: Integers) -> pa.Table:
        """Return the rows of results."""
        return take_rows(self._log, np.ascontiguousarray(found[:, kernels.SPOT]))

    def type_of(self, column: int) -> pa.DataType:
        """Return the type of a column."""
        return self._log.schema.field(column).type

    def values(self, places: Integers, column: int) -> pa.Array:
        """Return the values of a column at places, NULL where there is none."""
        taken = self._log.column(column).take(pa.array(places, mask=places == kernels.MISSING))
        return taken.combine_chunks()

    def clean(self) -> None:
        """Drop the values of rows that have gone, once they are the most; after each batch."""
        if len(self._log) >= 2 * len(self) + _LEAST:
            there = self._there()
            places = np.ascontiguousarray(self._nodes[there, PLACE])
            after = np.zeros(len(self._log), np.int64)
            after[places] = np.arange(len(there))
            self._log = take_rows(self._log, places).combine_chunks()
            self._nodes[there, PLACE] = after[places]
            for reading, place in zip(self._layout.readings, self.places, strict=True):
                if reading.kind in {kernels.EXTREME, kernels.NTH}:
                    column = self._results + place
                    named = there[self._nodes[there, column] != kernels.MISSING]
                    self._nodes[named, column] = after[self._nodes[named, column]]
        elif self._log.num_columns and self._log.column(0).num_chunks > _PIECES:
            self._log = self._log.combine_chunks()

    def _there(self) -> Integers:
        return np.flatnonzero(self._nodes[: int(self._meta[USED]), SIZE])

    def known(self, word: int) -> Integers:
        """Return the different values of a word, ascending."""
        return np.unique(self._nodes[self._there(), trees.WORDS + word])

    def rename(self, word: int, before: Integers, after: Integers) -> None:
        """Replace values of a word, which keep their order; 0 in the word before it: it is used."""
        self._rename(self._there(), trees.WORDS + word, before, after)
        for reading, place in zip(self._layout.readings, self.places, strict=True):
            if reading.kind == kernels.EXTREME:
                first, _ = self._layout.extremes[reading.subject]
                if first + 1 == word:
                    column = self._results + place
                    named = self._there()
                    named = named[self._nodes[named, column] != kernels.MISSING]
                    codes = self._nodes[named, column + 1]
                    self._nodes[named, column + 1] = after[np.searchsorted(before, codes)]

    def _rename(self, there: Integers, column: int, before: Integers, after: Integers) -> None:
        used = there[self._nodes[there, column - 1] == 0]
        self._nodes[used, column] = after[np.searchsorted(before, self._nodes[used, column])]

    def nbytes(self) -> int:
        """Return the bytes of all arrays and values."""
        arrays = self._nodes.nbytes + self._sums.nbytes + self._roots.nbytes
        return int(arrays + self._log.nbytes)


def _table(rows: Sequence[Sequence[int]], fields: int) -> Integers:
    return np.array(rows, np.int64).reshape(len(rows), fields)
