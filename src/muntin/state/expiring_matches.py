"""Matches of a join that are remembered until they end, as the positions of their members.

Invariant: every match that was put in is taken out once, by the first call that comes to its end.
O(1) a match.
"""

from __future__ import annotations

import numpy as np

from muntin.kernels.timing_wheel import (
    COUNT,
    FROM,
    MEMBERS,
    META,
    NEVER,
    NONE,
    SHIFT,
    move_endings,
    pop_endings,
    put_endings,
)
from muntin.model.arrays import Integers

_LEAST = 1 << 10
_A_SLOT = 4
"""Entries for each slot of the wheel."""
_SPARE = 8
"""The wheel shrinks when it has room for this many times its matches."""


class Endings:
    """Matches over ``sources`` sources, which end within about ``horizon`` of when they come.

    More is possible, and slower.
    """

    def __init__(self, sources: int, horizon: int) -> None:
        self._words = MEMBERS + sources
        self._horizon = horizon
        self._meta = np.zeros(META, np.int64)
        self._meta[FROM] = NEVER
        self._entries = np.empty((0, self._words), np.int64)
        self._heads = self._tails = np.empty(0, np.int64)
        self._resize(_LEAST)
        self._ends: Integers = np.empty(_LEAST, np.int64)
        self._positions: Integers = np.empty((sources, _LEAST), np.int64)

    def __len__(self) -> int:
        return int(self._meta[COUNT])

    @property
    def next(self) -> int:
        """An instant before which nothing ends, mostly the next one at which something does."""
        return int(self._meta[FROM])

    def put(self, ends: Integers, positions: Integers) -> None:
        """Remember matches, given by their ends and a row of positions for each source."""
        wanted = len(self) + len(ends)
        if wanted > len(self._entries):
            self._resize(2 * wanted)
        put_endings(
            self._entries,
            self._heads,
            self._tails,
            self._meta,
            np.ascontiguousarray(ends),
            positions,
        )

    def pop(self, until: int) -> tuple[Integers, Integers]:
        """Return the ends and positions of all that end up to an instant.

        Those of one end are in the order in which they came.

        The arrays are valid until the next call.
        """
        if self._meta[FROM] > until:
            return self._ends[:0], self._positions[:, :0]
        count = 0
        while True:
            count = pop_endings(
                self._entries,
                self._heads,
                self._tails,
                self._meta,
                until,
                self._ends,
                self._positions,
                count,
            )
            if count < len(self._ends):
                break
            self._make_room(count)
        if len(self._entries) > _LEAST and _SPARE * len(self) < len(self._entries):
            self._resize(max(2 * len(self), _LEAST))
        ends, positions = self._ends[:count], self._positions[:, :count]
        if len(self._ends) > _LEAST and _SPARE * count < len(self._ends):
            self._ends, self._positions = (
                np.empty(_LEAST, np.int64),
                np.empty((len(positions), _LEAST), np.int64),
            )
        return ends, positions

    def members(self) -> Integers:
        """Return the positions of all matches, a row for each source; rare, and O(matches)."""
        self._resize(len(self._entries))  # which moves them to the front
        return np.ascontiguousarray(self._entries[: len(self), MEMBERS:].T)

    def _make_room(self, count: int) -> None:
        """Double the room for what ends, of which there is so much already."""
        ends, positions = (
            np.empty(2 * count, np.int64),
            np.empty((len(self._positions), 2 * count), np.int64),
        )
        ends[:count], positions[:, :count] = self._ends, self._positions
        self._ends, self._positions = ends, positions

    def _resize(self, capacity: int) -> None:
        """Move everything into a wheel for ``matches`` matches."""
        slots = 1 << max(capacity // _A_SLOT, 1).bit_length()
        entries = np.empty((capacity, self._words), np.int64)
        heads, tails = np.full(slots, NONE, np.int64), np.full(slots, NONE, np.int64)
        # A turn of the wheel is at least as long as the horizon.
        self._meta[SHIFT] = max(self._horizon.bit_length() - slots.bit_length() + 1, 0)
        move_endings(self._entries, self._heads, entries, heads, tails, self._meta)
        self._entries, self._heads, self._tails = entries, heads, tails

    def nbytes(self) -> int:
        """Return the bytes of all arrays."""
        arrays = (self._entries, self._heads, self._tails, self._ends, self._positions)
        return sum(array.nbytes for array in arrays)
