"""The groups of a grouping operator: their numbers, and how many rows each has.

Invariant: a group has a number from the first change that touches it until the end of a batch in
which it has no rows left. Numbers are small and used again, so whatever is kept for each group lies
in flat arrays. O(1) a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from muntin.kernels.arrays import GroupArrays, SlotArrays
from muntin.kernels.group_ids import (
    FREE,
    LIVE,
    META,
    NONE,
    USED,
    count_slots,
    find_groups,
    move_groups,
    release_groups,
    touch_groups,
)
from muntin.model.arrays import Integers

_FIRST = 1 << 10


@dataclass(frozen=True)
class Slots:
    """A batch of changes as the groups see it.

    ``groups`` has the group of every change and ``rows`` for each slot the first change in it.
    ``run_rows`` and ``run_slots`` are where runs (changes of one time) begin, with the end of all
    behind them; ``slot_groups`` the group of each slot.
    """

    groups: Integers
    rows: Integers
    run_rows: Integers
    run_slots: Integers
    slot_groups: Integers

    def __len__(self) -> int:
        return len(self.slot_groups)

    @cached_property
    def arrays(self) -> SlotArrays:
        """Return the arrays as kernels take them."""
        return SlotArrays(self.groups, self.run_rows, self.run_slots, self.slot_groups)


class GroupTable:
    """Groups known by two words each."""

    def __init__(self) -> None:
        self._heads = np.full(_FIRST, NONE, np.int64)
        self._lows, self._highs, self._links = (np.zeros(_FIRST, np.int64) for _ in range(3))
        self._stamps = np.full(_FIRST, -1, np.int64)
        self._meta = np.zeros(META, np.int64)
        self._meta[FREE] = NONE
        self._runs = 0
        self._counts = np.zeros(_FIRST, np.int64)

    @property
    def capacity(self) -> int:
        """Return the number of groups for which there is room.

        What is kept for each of them must have as much.
        """
        return len(self._lows)

    def __len__(self) -> int:
        return int(self._meta[LIVE])

    @property
    def arrays(self) -> GroupArrays:
        """Return the keys of groups as kernels take them."""
        return GroupArrays(self._heads, self._lows, self._highs, self._links, self._meta)

    def find(self, low: Integers, high: Integers) -> Integers:
        """Return the numbers of the groups of keys, given where they are new."""
        self.reserve(len(low))
        numbers = np.empty(len(low), np.int64)
        find_groups(low, high, self.arrays, numbers)
        return numbers

    def touch(self, groups: Integers, times: Integers) -> Slots:
        """Return the slots of changes, given by group and sorted by time."""
        count = len(groups)
        slot_groups, slot_rows = np.empty(count, np.int64), np.empty(count, np.int64)
        run_rows, run_slots = np.empty(count + 1, np.int64), np.empty(count + 1, np.int64)
        runs, slots = touch_groups(
            groups, times, self._stamps, self._runs, slot_groups, slot_rows, run_rows, run_slots
        )
        self._runs += runs
        return Slots(
            groups,
            slot_rows[:slots],
            run_rows[: runs + 1],
            run_slots[: runs + 1],
            slot_groups[:slots],
        )

    def count(self, slots: Slots, weights: Integers) -> Integers:
        """Add up the rows of groups.

        For each slot how many there were before it, and how many after it.
        """
        out = np.empty(2 * len(slots), np.int64)
        count_slots(slots.arrays, weights, self._counts, out)
        return out

    def counts(self, groups: Integers) -> Integers:
        """Return the numbers of rows of groups."""
        found: Integers = self._counts[groups]
        return found

    def live(self) -> Integers:
        """Return the numbers of all groups that have rows."""
        return np.flatnonzero(self._counts)

    def release(self, slots: Slots) -> Integers:
        """Release the groups of a batch that have no rows left, and return their numbers."""
        empty: Integers = np.unique(slots.slot_groups[self._counts[slots.slot_groups] == 0])
        self.give_back(empty)
        return empty

    def give_back(self, groups: Integers) -> None:
        """Release groups, each given once, of an owner who counts their rows."""
        release_groups(groups, self.arrays)

    def reserve(self, more: int) -> None:
        """Make room for a number of new groups."""
        wanted = int(self._meta[USED]) + more
        if wanted <= self.capacity:
            return
        capacity = 1 << (wanted - 1).bit_length()
        self._lows, self._highs, self._links, self._counts = (
            grown(array, capacity) for array in (self._lows, self._highs, self._links, self._counts)
        )
        self._stamps = grown(self._stamps, capacity, fill=-1)
        heads = np.full(capacity, NONE, np.int64)
        move_groups(self._heads, heads, self._lows, self._highs, self._links)
        self._heads = heads

    def nbytes(self) -> int:
        """Return the bytes of all arrays."""
        arrays = (self._heads, self._lows, self._highs, self._links, self._stamps, self._counts)
        return sum(array.nbytes for array in arrays)


def grown(array: Integers, capacity: int, fill: int = 0) -> Integers:
    """Return the array with more places in front of its other dimensions."""
    larger = np.full((capacity, *array.shape[1:]), fill, np.int64)
    larger[: len(array)] = array
    return larger
