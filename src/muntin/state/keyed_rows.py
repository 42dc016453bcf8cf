"""Rows that come and go, found by a key: what one side of a join remembers.

Invariant: every different row is kept once, with how often it is there and when it ends, and is in
the chain of its key exactly while it is there at all. Its values stand in a log, from which those
of rows that have gone are taken out when they are the most. O(1) a row, and for each row that is
found.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from muntin.kernels.hash_chains import NONE, chain_rows, count_chained, list_chained, unchain_rows
from muntin.model.arrays import Integers
from muntin.state.group_table import GroupTable, grown

_LEAST = 1 << 10
_PIECES = 64
"""Pieces of the log from which on they are concatenated: lookups take longer the more there are."""


class KeyedRows:
    """Rows of one schema; keys are small numbers that somebody else gives."""

    def __init__(self, schema: pa.Schema) -> None:
        self._table = GroupTable()
        self._heads = np.empty(0, np.int64)
        self._nexts, self._befores, self._keys, self._places, self._ends = (
            np.zeros(0, np.int64) for _ in range(5)
        )
        self._log = schema.empty_table()
        self._checked = 0

    def __len__(self) -> int:
        """Return the number of different rows."""
        return len(self._table)

    def reserve(self, keys: int) -> None:
        """Make room for a number of keys."""
        if len(self._heads) < keys:
            self._heads = grown(self._heads, keys, fill=NONE)

    def find(self, keys: Integers) -> tuple[Integers, Integers]:
        """Return all rows under keys: places in ``keys``, and numbers of rows."""
        count = count_chained(keys, self._heads, self._nexts)
        places, rows = np.empty(count, np.int64), np.empty(count, np.int64)
        list_chained(keys, self._heads, self._nexts, places, rows)
        return places, rows

    def values(self, rows: Integers) -> pa.Table:
        """Return the values of rows, given by their numbers."""
        return self._log.take(pa.array(self._places[rows]))

    def weights(self, rows: Integers) -> Integers:
        """Return the multiplicity of rows."""
        return self._table.counts(rows)

    def ends(self, rows: Integers) -> Integers:
        """Return the end times of rows."""
        found: Integers = self._ends[rows]
        return found

    def apply(
        self,
        words: tuple[Integers, Integers],
        changes: tuple[pa.Table, Integers, Integers],
        keys: Integers,
    ) -> tuple[Integers, Integers]:
        """Add and remove rows, given by two words each, their values, signs and ends, and keys.

        Returns the keys that have one row more, and those that have one less.
        """
        rows, signs, ends = changes
        numbers = self._table.find(*words)
        self._grow()
        slots = self._table.touch(numbers, np.zeros(len(numbers), np.int64))
        counts = self._table.count(slots, signs)
        there = counts != 0
        coming = np.flatnonzero(~there[0::2] & there[1::2])
        going = np.flatnonzero(there[0::2] & ~there[1::2])
        gone = slots.slot_groups[going]
        left = self._keys[gone].copy()
        unchain_rows(gone, left, self._heads, self._nexts, self._befores)
        come, first = slots.slot_groups[coming], slots.rows[coming]
        self._keys[come], self._ends[come] = keys[first], ends[first]
        self._places[come] = len(self._log) + np.arange(len(come))
        self._log = pa.concat_tables([self._log, rows.take(pa.array(first))])
        chain_rows(come, self._keys[come], self._heads, self._nexts, self._befores)
        self._table.release(slots)
        self._clean()
        return keys[first], left

    def expire(self, now: int) -> Integers:
        """Forget rows that have ended, once there may be many; the keys that have one less."""
        if len(self) < 2 * self._checked + _LEAST:
            return np.empty(0, np.int64)
        numbers = self._table.live()
        gone: Integers = numbers[self._ends[numbers] <= now]
        keys: Integers = self._keys[gone].copy()
        unchain_rows(gone, keys, self._heads, self._nexts, self._befores)
        slots = self._table.touch(gone, np.zeros(len(gone), np.int64))
        self._table.count(slots, -self._table.counts(gone))
        self._table.release(slots)
        self._checked = len(self)
        return keys

    def _grow(self) -> None:
        capacity = self._table.capacity
        if len(self._nexts) < capacity:
            arrays = (self._nexts, self._befores, self._keys, self._places, self._ends)
            self._nexts, self._befores, self._keys, self._places, self._ends = (
                grown(array, capacity) for array in arrays
            )

    def _clean(self) -> None:
        """Concatenate the log, without the values of removed rows when those are the most."""
        if len(self._log) >= 2 * len(self) + _LEAST:
            there = self._table.live()
            self._log = self._log.take(pa.array(self._places[there])).combine_chunks()
            self._places[there] = np.arange(len(there))
        elif self._log.num_columns and self._log.column(0).num_chunks > _PIECES:
            self._log = self._log.combine_chunks()

    def nbytes(self) -> int:
        """Return the bytes of all arrays and values."""
        arrays: tuple[Integers, ...] = (
            self._heads,
            self._nexts,
            self._befores,
            self._keys,
            self._places,
            self._ends,
        )
        return self._table.nbytes() + sum(array.nbytes for array in arrays) + int(self._log.nbytes)
