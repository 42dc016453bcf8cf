"""Counts and exact sums for each group.

Invariant: a sum is that of the values added and not taken away, exactly. So a window that slides
over a million rows ends with the same sum as one that saw the last rows only. O(1) a row, plus the
limbs of a sum for each slot.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from muntin.kernels.exact_sum import LimbArrays, real_slots, sum_slots
from muntin.kernels.group_ids import count_slots
from muntin.model.arrays import Integers, Reals
from muntin.state.group_table import Slots, grown

_NOTHING = np.empty(0, np.int64)
_LEAST_EXPONENT = -1074
_HEADROOM = 3
"""Limbs above the greatest number: two that it reaches into, one for the carries of 2^31."""


class PerGroup(Protocol):
    """What is kept for each group."""

    def reserve(self, capacity: int) -> None:
        """Make room for ``capacity`` groups."""

    def forget(self, groups: Integers) -> None:
        """Make groups as if they had never been."""

    def nbytes(self) -> int:
        """Return the bytes of all arrays."""


class GroupArray:
    """An array with a place per group."""

    def __init__(self, *shape: int) -> None:
        self._array = np.zeros((0, *shape), np.int64)

    def reserve(self, capacity: int) -> None:
        """Make room for ``capacity`` groups."""
        if len(self._array) < capacity:
            self._array = grown(self._array, capacity)

    def forget(self, groups: Integers) -> None:
        """Make groups as if they had never been."""
        self._array[groups] = 0

    def nbytes(self) -> int:
        """Return the bytes of the array."""
        return self._array.nbytes


class GroupCounts(GroupArray):
    """A number for each group."""

    def add(self, slots: Slots, weights: Integers) -> Integers:
        """Add weights; what each slot had before and has after, side by side."""
        out = np.empty(2 * len(slots), np.int64)
        count_slots(slots.arrays, weights, self._array, out)
        return out

    def of(self, groups: Integers) -> Integers:
        """Return the numbers of groups."""
        found: Integers = self._array[groups]
        return found


class WholeSums(GroupArray):
    """A sum of integers per group, in three words."""

    def __init__(self) -> None:
        super().__init__(3)

    def add(self, slots: Slots, weights: Integers, low: Integers, high: Integers) -> Integers:
        """Add numbers of two words with weights +1, -1 and 0.

        Rows of three words, before and after, side by side.
        """
        out = np.empty((2 * len(slots), 3), np.int64)
        sum_slots(slots.arrays, weights, low, high, self._array, out)
        return out


class RealSums:
    """A sum of floating-point numbers per group, in as many limbs as the numbers so far need."""

    def __init__(self) -> None:
        self._base = 0
        self._limbs = np.zeros((0, 0), np.int64)
        self._specials = np.zeros((0, 3), np.int64)

    def reserve(self, capacity: int) -> None:
        """Make room for ``capacity`` groups."""
        if len(self._limbs) < capacity:
            self._limbs = grown(self._limbs, capacity)
            self._specials = grown(self._specials, capacity)

    def add(
        self, slots: Slots, weights: Integers, values: Reals, more: Reals | None = None
    ) -> Reals:
        """Add numbers with weights +1, -1 and 0; ``more`` has second parts of them.

        Rows of two numbers, before and after, side by side: the sum rounded, and what is then left
        of it.
        """
        for numbers in (values, more):
            if numbers is not None:
                self._widen(numbers)
        out = np.empty((2 * len(slots), 2), np.float64)
        second = _NOTHING if more is None else more.view(np.int64)
        sums = LimbArrays(self._limbs, self._specials, np.empty(self._limbs.shape[1], np.int64))
        real_slots(slots.arrays, weights, values.view(np.int64), second, self._base, sums, out)
        return out

    def _widen(self, values: Reals) -> None:
        """Make the limbs reach from the lowest bit of these numbers to their highest."""
        width = self._limbs.shape[1]
        base, wanted = limbs_for(self._base, width, values)
        if base == self._base and wanted == width:
            return
        limbs = np.zeros((len(self._limbs), wanted), np.int64)
        start = (self._base - base) // 32 if width else 0
        limbs[:, start : start + width] = self._limbs
        self._base, self._limbs = base, limbs

    def forget(self, groups: Integers) -> None:
        """Make groups as if they had never been."""
        self._limbs[groups] = 0
        self._specials[groups] = 0

    def nbytes(self) -> int:
        """Return the bytes of the arrays."""
        return self._limbs.nbytes + self._specials.nbytes


def limbs_for(before: int, width: int, values: Reals) -> tuple[int, int]:
    """Return the base and the number of limbs that hold sums so far and sums of these numbers.

    ``before`` and ``width`` are what there is of them.
    """
    finite = values[np.isfinite(values) & (values != 0)]
    if not len(finite):
        low, high = (before, before) if width else (0, 0)
    else:
        exponents = np.frexp(finite)[1]
        low, high = max(int(exponents.min()) - 53, _LEAST_EXPONENT), int(exponents.max())
    base = 32 * (low // 32) if not width else min(before, 32 * (low // 32))
    above = max(before + 32 * (width - _HEADROOM) if width else base, high)
    return base, -(-(above - base) // 32) + _HEADROOM
