"""The partitions of one partitioned count window: positions of the last n rows of each.

Invariant: every partition ever seen holds the positions of its last ``min(n, seen)`` rows. Memory
grows with the number of partitions, which is what ``[PARTITION BY c ROWS n]`` asks for: their rows
never leave by time. O(1) a row.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from muntin.kernels.partitions import (
    BLOCK,
    ENTRY_FIELDS,
    FIRST_ROOM,
    USED,
    PartitionArrays,
    move_partitions,
    push_partitions,
)
from muntin.model.arrays import Integers


@dataclass
class PartitionState:
    """Finds, for each new row, the row of its partition that it pushes out."""

    rows: int
    _table: Integers = field(init=False)
    _pool: Integers = field(init=False)
    _sizes: Integers = field(init=False)

    def __post_init__(self) -> None:
        self._table = np.zeros((64, ENTRY_FIELDS), np.int64)
        self._pool = np.zeros(64 * FIRST_ROOM, np.int64)
        self._sizes = np.zeros(2, np.int64)

    def push(
        self,
        low: Integers,
        high: Integers,
        positions: Integers,
    ) -> Integers:
        """Add rows by their partition keys; the result is the position each pushes out, or -1."""
        pushed = np.empty(len(low), np.int64)
        done = 0
        while True:
            partitions = PartitionArrays(self._table, self._pool, self._sizes)
            done = push_partitions(partitions, self.rows, low, high, done, positions, pushed)
            if done == len(low):
                return pushed
            self._enlarge()

    def _enlarge(self) -> None:
        table = np.zeros((2 * len(self._table), ENTRY_FIELDS), np.int64)
        pool = np.zeros(2 * len(self._pool), np.int64)
        move_partitions(self._table, self._pool, table, pool, self._sizes)
        self._table, self._pool = table, pool

    def positions(self) -> Integers:
        """Return the positions of all rows among the last of their partition, ascending."""
        used = self._table[:, USED]
        first = np.repeat(self._table[:, BLOCK], used)
        within = np.arange(int(used.sum())) - np.repeat(np.cumsum(used) - used, used)
        found: Integers = np.sort(self._pool[first + within])
        return found

    def nbytes(self) -> int:
        """Return the bytes of the table and the pool."""
        return int(self._table.nbytes + self._pool.nbytes)
