"""Changes that no other change cancels out."""

from __future__ import annotations

from muntin.kernels.arrays import Flags, Integers, Table
from muntin.kernels.jit import kernel


@kernel(Integers, Flags, Table, Flags, part="pipelines")
def find_uncancelled(groups, leaving, counts, uncancelled):
    """Find which changes are left when those of a group with different signs cancel.

    The first of either sign cancel, as many as both signs have. ``counts`` are zeros, two per
    group.
    """
    for i in range(groups.shape[0]):
        counts[1 if leaving[i] else 0, groups[i]] += 1
    for group in range(counts.shape[1]):
        cancelled = min(counts[0, group], counts[1, group])
        counts[0, group] = counts[1, group] = cancelled
    for i in range(groups.shape[0]):
        sign = 1 if leaving[i] else 0
        uncancelled[i] = counts[sign, groups[i]] == 0
        if not uncancelled[i]:
            counts[sign, groups[i]] -= 1
