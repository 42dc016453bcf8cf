"""The rows of each group in order, by number.

Invariant: the list of a group has the number of every row that was added and not removed,
ascending.
"""

from __future__ import annotations

import numpy as np

from muntin.kernels.arrays import ListArrays
from muntin.kernels.row_lists import (
    BACK,
    END_FIELDS,
    FREE,
    GONE,
    META,
    NODE_FIELDS,
    NONE,
    NUMBER,
    USED,
    list_slots,
)
from muntin.model.arrays import Integers, Mask
from muntin.state.group_table import Slots, grown

_FIRST = 1 << 10


class GroupLists:
    """Ordered lists of numbers."""

    def __init__(self) -> None:
        self._ends = np.full((0, END_FIELDS), NONE, np.int64)
        self._nodes = np.zeros((_FIRST, NODE_FIELDS), np.int64)
        self._meta = np.zeros(META, np.int64)
        self._meta[FREE] = NONE

    def reserve(self, capacity: int) -> None:
        """Make room for ``capacity`` groups."""
        if len(self._ends) < capacity:
            self._ends = grown(self._ends, capacity, fill=NONE)

    def add(self, slots: Slots, weights: Integers, numbers: Integers, counts: Integers) -> Integers:
        """Add rows (weight +1) and remove them (-1); return all lists, one behind the other.

        ``counts`` has their lengths, before and after side by side.
        """
        wanted = int(self._meta[USED]) + int(np.count_nonzero(weights > 0))
        if wanted > len(self._nodes):
            self._nodes = grown(self._nodes, 1 << (wanted - 1).bit_length())
        ends = np.cumsum(counts)
        out = np.empty(int(ends[-1]) if len(ends) else 0, np.int64)
        lists = ListArrays(self._ends, self._nodes, self._meta)
        list_slots(slots.arrays, weights, numbers, lists, ends - counts, out)
        return out

    def _live(self) -> Mask:
        live: Mask = self._nodes[: int(self._meta[USED]), BACK] != GONE
        return live

    def __len__(self) -> int:
        return int(np.count_nonzero(self._live()))

    def known(self) -> Integers:
        """Return all numbers that are there, ascending."""
        return np.unique(self._nodes[: int(self._meta[USED]), NUMBER][self._live()])

    def rename(self, before: Integers, after: Integers) -> None:
        """Replace the numbers of rows; ``after`` is in the same order as ``before``."""
        numbers = self._nodes[: int(self._meta[USED]), NUMBER]
        live = self._live()
        numbers[live] = after[np.searchsorted(before, numbers[live])]

    def forget(self, groups: Integers) -> None:
        """Do nothing: a group without rows has an empty list."""
        assert (self._ends[groups] == NONE).all(), "what came in has gone out"

    def nbytes(self) -> int:
        """Return the bytes of the arrays."""
        return self._ends.nbytes + self._nodes.nbytes
