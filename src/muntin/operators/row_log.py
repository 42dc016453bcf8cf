"""Numbers of rows in the order of time, and the values of numbered rows.

Rows are numbered as they come, since later batches are later in time. A row that leaves is
identified by its value and the positions of its members in their streams. Rows of several
partitions may have the same positions: those with equal values then share a number, the others are
numbered by partition.

State: value and number of every row inside the windows. Cost: O(1) per row, and the sort of a
batch.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from muntin.expressions.codes import whole_codes
from muntin.expressions.evaluator import Evaluator
from muntin.model.arrays import Integers, Mask
from muntin.operators.row_keys import row_keys
from muntin.operators.value_codes import KeptValues
from muntin.state.group_table import GroupTable, grown

_LEAST = 1 << 10
_PIECES = 64
"""Pieces of the log that are merged into one: lookups take longer with more pieces."""


class RowLog:
    """The values of rows by number."""

    def __init__(self, kind: pa.DataType, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._rows = GroupTable()
        self._number_of = np.zeros(0, np.int64)
        self._log = pa.chunked_array([], kind)

    def nbytes(self) -> int:
        """Return the bytes of state."""
        return self._rows.nbytes() + self._number_of.nbytes + int(self._log.nbytes)

    def values(self, numbers: Integers, missing: Mask | None = None) -> pa.Array:
        """Return the values of numbered rows, NULL where they are missing."""
        return self._log.take(pa.array(numbers, mask=missing)).combine_chunks()

    def number(self, weights: Integers, column: pa.ChunkedArray, order: pa.Table) -> Integers:
        """Return the numbers of rows; new rows get one, rows of weight 0 any."""
        numbers = np.zeros(len(weights), np.int64)
        rows = np.flatnonzero(weights)
        if not len(rows):
            return numbers
        named = order.append_column("value", column).take(pa.array(rows))
        found = self._rows.find(*row_keys(named, self._evaluator))
        if len(self._number_of) < self._rows.capacity:
            self._number_of = grown(self._number_of, self._rows.capacity)
        coming = np.flatnonzero((weights[rows] > 0) & (self._rows.counts(found) == 0))
        ranked = coming[
            np.lexsort([whole_codes(part)[coming] for part in reversed(named.columns[:-1])])
        ]
        ranked = ranked[np.sort(np.unique(found[ranked], return_index=True)[1])]
        self._number_of[found[ranked]] = len(self._log) + np.arange(len(ranked))
        self._log = pa.chunked_array(
            [*self._log.chunks, *column.take(pa.array(rows[ranked])).chunks], self._log.type
        )
        if self._log.num_chunks > _PIECES:
            self._log = pa.chunked_array([self._log.combine_chunks()], self._log.type)
        numbers[rows] = self._number_of[found]
        touched = self._rows.touch(found, np.zeros(len(found), np.int64))
        self._rows.count(touched, weights[rows])
        self._rows.release(touched)
        return numbers

    def clean(self, kept: KeptValues) -> None:
        """Drop the values of rows that have left, once those are the majority."""
        if len(self._log) < 2 * len(self._rows) + _LEAST:
            return
        there = kept.known()
        after = np.arange(len(there))
        kept.rename(there, after)
        places = np.minimum(np.searchsorted(there, self._number_of), max(len(there) - 1, 0))
        self._number_of = after[places] if len(there) else np.zeros_like(self._number_of)
        self._log = pa.chunked_array(
            [self._log.take(pa.array(there)).combine_chunks()], self._log.type
        )
