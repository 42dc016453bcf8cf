"""Rows of groups in order, and the values of all of them.

Invariant: a group has every row as often as it was added and not removed, in a tree ordered by the
words of rows. Equal rows have equal words. The values of rows are in a log; once most of its rows
have gone, the others are copied. O(log n) per change for n rows of a group.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from muntin.kernels.order_statistics import COUNT, DEEPEST, FREE, LIVE, META, NONE, USED
from muntin.kernels.ranked_rows import PLACE, WORDS, RankedTrees, WordRows
from muntin.kernels.top_rows import (
    OUT_FIELDS,
    SPOT,
    Numbering,
    RankRange,
    Scratch,
    cut_slots,
    number_slots,
)
from muntin.model.arrays import Integers
from muntin.state.columns import take_rows
from muntin.state.group_table import Slots, grown

_LEAST = 1 << 10
_PIECES = 64
"""Pieces of the log from which on they are concatenated: lookups take longer the more there are."""


class RankedRows:
    """Rows under groups that somebody else numbers, ordered by ``words`` integers each."""

    def __init__(self, schema: pa.Schema, words: int) -> None:
        self._words = words
        self._nodes = np.zeros((_LEAST, WORDS + words), np.int64)
        self._roots = np.zeros(0, np.int64)
        self._meta = np.zeros(META, np.int64)
        self._meta[FREE] = NONE
        self._path = np.empty(DEEPEST, np.int64)
        self._log = schema.empty_table()

    def __len__(self) -> int:
        """Return the number of different rows."""
        return int(self._meta[LIVE])

    def reserve(self, capacity: int) -> None:
        """Make room for ``capacity`` groups."""
        if len(self._roots) < capacity:
            self._roots = grown(self._roots, capacity, fill=NONE)

    def cut(self, slots: Slots, signs: Integers, words: Integers, span: RankRange) -> Integers:
        """Apply changes; return which rows enter and leave a span of ranks.

        The log has their values: see :meth:`append` and :meth:`values`.
        """
        trees, rows = self._trees(signs, words)
        touched = np.empty(3 * len(signs), np.int64)
        out = np.empty((2 * len(signs), OUT_FIELDS), np.int64)
        return out[: cut_slots(slots.arrays, signs, rows, trees, span, touched, out)]

    def number(
        self, slots: Slots, signs: Integers, words: Integers, numbering: Numbering
    ) -> Integers:
        """Apply changes; return the rows whose numbers change, with the old and new ones."""
        trees, rows = self._trees(signs, words)
        scratch = Scratch(
            np.empty(len(signs), np.int64),
            np.empty(len(self._roots), np.int64),
            np.empty(len(slots) + 1, np.int64),
            np.empty((4 * len(signs) + _LEAST, 2), np.int64),
        )
        parts, run, room = [], 0, len(scratch.listed)
        while run < len(slots.run_rows) - 1:
            out = np.empty((max(room, len(scratch.listed)), OUT_FIELDS), np.int64)
            if room > len(scratch.listed):
                scratch = scratch._replace(listed=np.empty((2 * room, 2), np.int64))
            run, written, room = number_slots(
                slots.arrays, signs, rows, trees, numbering, run, scratch, out
            )
            parts.append(out[:written])
        return np.concatenate(parts)

    def _trees(self, signs: Integers, words: Integers) -> tuple[RankedTrees, WordRows]:
        """Return the arrays for kernels, with room for a batch, whose values the log has last."""
        coming = signs > 0
        wanted = int(self._meta[USED]) + int(coming.sum())
        if wanted > len(self._nodes):
            self._nodes = grown(self._nodes, 1 << (wanted - 1).bit_length())
        places = len(self._log) - int(coming.sum()) + np.cumsum(coming) - 1
        trees = RankedTrees(self._nodes, self._roots, self._meta, self._path)
        return trees, WordRows(words, places)

    def append(self, rows: pa.Table) -> None:
        """Add the values of rows that come, before the changes themselves."""
        self._log = pa.concat_tables([self._log, rows])

    def values(self, found: Integers) -> pa.Table:
        """Return the values of results."""
        return take_rows(self._log, np.ascontiguousarray(found[:, SPOT]))

    def clean(self) -> None:
        """Drop the values of rows that have gone, once they are the most; after each batch."""
        if len(self._log) >= 2 * len(self) + _LEAST:
            there = np.flatnonzero(self._nodes[: int(self._meta[USED]), COUNT])
            places = np.ascontiguousarray(self._nodes[there, PLACE])
            self._log = take_rows(self._log, places).combine_chunks()
            self._nodes[there, PLACE] = np.arange(len(there))
        elif self._log.num_columns and self._log.column(0).num_chunks > _PIECES:
            self._log = self._log.combine_chunks()

    def known(self, word: int) -> Integers:
        """Return the different values of a word, ascending."""
        used = self._nodes[: int(self._meta[USED])]
        return np.unique(used[used[:, COUNT] > 0, WORDS + word])

    def rename(self, word: int, before: Integers, after: Integers) -> None:
        """Replace values of a word, which keep their order; 0 in the word before it: it is used."""
        used = self._nodes[: int(self._meta[USED])]
        there = np.flatnonzero((used[:, COUNT] > 0) & (used[:, WORDS + word - 1] == 0))
        used[there, WORDS + word] = after[np.searchsorted(before, used[there, WORDS + word])]

    def nbytes(self) -> int:
        """Return the bytes of all arrays and values."""
        return int(self._nodes.nbytes + self._roots.nbytes + self._log.nbytes)
