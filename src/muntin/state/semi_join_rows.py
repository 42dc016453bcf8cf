"""What a semi or anti join keeps: its left rows under their keys, and a number of right rows.

Invariant: every different left row is kept once, with how often it is there, and a key is known
while it has rows of either side. The values of left rows stand in a log, from which those of rows
that have gone are taken out when they are the most. Cost: O(1) per change, and per left row of a
key that gains its first match or loses the last.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.kernels.semi_join import (
    GONE_KEYS,
    GONE_ROWS,
    KEY_FIELDS,
    LEFT_AT,
    META,
    NEEDED,
    OUT_FIELDS,
    PLACE,
    PLACE_OUT,
    RIGHT_AT,
    ROW_FIELDS,
    TIME_OUT,
    WEIGHT,
    WEIGHT_OUT,
    WRITTEN,
    LeftChanges,
    RightChanges,
    SemiJoinArrays,
    join_units,
    list_gone,
)
from muntin.model.arrays import Integers
from muntin.state.columns import take_rows
from muntin.state.group_table import GroupTable, grown

_LEAST = 1 << 10
_PIECES = 64
"""Pieces of the log from which on they are concatenated: lookups take longer the more there are."""

Words = tuple[Integers, Integers]


class SemiJoinRows:
    """The state of one semi join, or of one ``anti`` join, of left rows of a schema."""

    def __init__(self, schema: pa.Schema, *, anti: bool) -> None:
        self._anti = int(anti)
        self._keys, self._rows = GroupTable(), GroupTable()
        self._kept = SemiJoinArrays(
            np.zeros((0, KEY_FIELDS), np.int64),
            np.zeros((0, ROW_FIELDS), np.int64),
            np.zeros(META, np.int64),
        )
        self._log = schema.empty_table()

    def __len__(self) -> int:
        """Return the number of different left rows and of keys."""
        return len(self._keys) + len(self._rows)

    def nbytes(self) -> int:
        """Return the bytes of all arrays and values."""
        tables = self._keys.nbytes() + self._rows.nbytes()
        return tables + sum(array.nbytes for array in self._kept) + int(self._log.nbytes)

    def run(
        self,
        left: tuple[pa.Table, Words, Words, Integers, Integers],
        right: tuple[Words, Integers, Integers],
    ) -> tuple[pa.Table, Integers, Integers]:
        """Return the changes of the result: rows, times and weights, by time.

        Left changes are given by values, the words of their keys and of the rows themselves, times
        and signs; right ones by the words of their keys, times and signs.
        """
        columns, left_words, row_words, left_times, left_signs = left
        right_words, right_times, right_signs = right
        lefts = LeftChanges(
            self._keys.find(*left_words),
            self._rows.find(*row_words),
            left_times,
            left_signs,
            self._keep(columns, left_signs),
        )
        rights = RightChanges(self._keys.find(*right_words), right_times, right_signs)
        self._grow()
        out = self._join(lefts, rights)
        weights = out[:, WEIGHT_OUT]
        places = np.repeat(out[:, PLACE_OUT], np.abs(weights))
        found = take_rows(self._log, places)
        times = np.repeat(out[:, TIME_OUT], np.abs(weights))
        signs = np.repeat(np.sign(weights), np.abs(weights))
        self._release(lefts, rights)
        self._clean()
        return found, times, signs

    def _keep(self, columns: pa.Table, signs: Integers) -> Integers:
        """Append the rows that come to the log, and return for each change where its values are."""
        coming = signs > 0
        places: Integers = len(self._log) + np.cumsum(coming) - 1
        came = columns if coming.all() else columns.filter(pa.array(coming))
        if len(came):
            self._log = pa.concat_tables([self._log, came])
        return places

    def _grow(self) -> None:
        keys, rows, meta = self._kept
        if len(keys) < self._keys.capacity:
            keys = grown(keys, self._keys.capacity)
        if len(rows) < self._rows.capacity:
            rows = grown(rows, self._rows.capacity)
        self._kept = SemiJoinArrays(keys, rows, meta)

    def _join(self, left: LeftChanges, right: RightChanges) -> npt.NDArray[np.int64]:
        """Return the place, time and weight of each change of the result."""
        meta = self._kept.meta
        meta[LEFT_AT] = meta[RIGHT_AT] = meta[NEEDED] = 0
        keys, rows = (np.empty(len(one), np.int64) for one in (right.keys, left.keys))
        room = 2 * len(left.keys) + len(right.keys)
        parts = []
        while meta[LEFT_AT] < len(left.keys) or meta[RIGHT_AT] < len(right.keys):
            out = np.empty((max(room, int(meta[NEEDED])), OUT_FIELDS), np.int64)
            meta[WRITTEN] = 0
            join_units(left, right, self._kept, self._anti, keys, rows, out)
            parts.append(out[: meta[WRITTEN]])
        return np.concatenate(parts) if parts else np.empty((0, OUT_FIELDS), np.int64)

    def _release(self, left: LeftChanges, right: RightChanges) -> None:
        """Give back the numbers of rows and keys without anything left."""
        keys = np.empty(len(left.keys) + len(right.keys), np.int64)
        rows = np.empty(len(left.keys), np.int64)
        list_gone(left, right, self._kept, keys, rows)
        self._keys.give_back(keys[: self._kept.meta[GONE_KEYS]])
        self._rows.give_back(rows[: self._kept.meta[GONE_ROWS]])

    def _clean(self) -> None:
        """Concatenate the log, without the values of removed rows when those are the most."""
        if len(self._log) >= 2 * len(self._rows) + _LEAST:
            rows = self._kept.rows
            there = np.flatnonzero(rows[:, WEIGHT])
            self._log = take_rows(self._log, rows[there, PLACE] - 1).combine_chunks()
            rows[there, PLACE] = np.arange(len(there)) + 1
        elif self._log.num_columns and self._log.column(0).num_chunks > _PIECES:
            self._log = self._log.combine_chunks()
