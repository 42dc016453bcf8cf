"""The ends of groups: of the longest-lived duplicates on either side, and as last reported.

Invariant: the reported end of a group that is in the result is not before now.
"""

from __future__ import annotations

import numpy as np

from muntin.kernels.distinct_changes import UNSAID, ChangeArrays, EndArrays, report_slots
from muntin.model.arrays import Integers, Mask
from muntin.state.group_table import Slots, grown


class GroupEnds:
    """What was said of groups.

    ``rule`` is how an end follows from those of both sides, see
    :mod:`muntin.kernels.distinct_changes`.
    """

    def __init__(self, rule: int) -> None:
        self._rule = rule
        self._left, self._right, self._said = (np.full(0, UNSAID, np.int64) for _ in range(3))

    def reserve(self, capacity: int) -> None:
        """Make room for ``capacity`` groups."""
        if len(self._said) < capacity:
            self._left, self._right, self._said = (
                grown(array, capacity, UNSAID) for array in (self._left, self._right, self._said)
            )

    def report(
        self,
        slots: Slots,
        changes: tuple[Integers, Integers, Integers],
        lefts: Mask,
        present: Mask,
    ) -> tuple[Integers, Integers]:
        """Signs (0: nothing) and ends of what is to be said of slots.

        Changes are given by times, signs and ends.
        """
        times, signs, ends = changes
        out_signs, out_ends = np.zeros(len(slots), np.int64), np.zeros(len(slots), np.int64)
        report_slots(
            slots.arrays, ChangeArrays(times, signs, ends, lefts), present, self._rule,
            EndArrays(self._left, self._right, self._said), out_signs, out_ends,
        )  # fmt: skip
        return out_signs, out_ends

    def forget(self, groups: Integers) -> None:
        """Make groups as if they had never been."""
        for array in (self._left, self._right, self._said):
            array[groups] = UNSAID

    def nbytes(self) -> int:
        """Return the bytes of the arrays."""
        return self._left.nbytes + self._right.nbytes + self._said.nbytes
