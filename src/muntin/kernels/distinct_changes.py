"""Changes of a result without duplicates whose rows have ends ([HammadTR, section 4.1])."""

from __future__ import annotations

from typing import NamedTuple

from muntin.kernels.arrays import Flags, Integers, SlotArrays
from muntin.kernels.jit import inline, kernel

UNSAID = -(2**63)
"""The end of a row that is not in the result."""

GREATER = 0
LESSER = 1
LEFT = 2


@inline
def end_of(rule, left, right):
    """Return the end of a row in the result, from the last ends of duplicates on either side."""
    if rule == LEFT:
        return left
    if rule == LESSER:
        return min(left, right)
    return max(left, right)


class ChangeArrays(NamedTuple):
    """Changes of rows: when, +1 or -1, until when, and whether each is of the left side."""

    times: Integers
    signs: Integers
    ends: Integers
    lefts: Flags


class EndArrays(NamedTuple):
    """Per group the greatest ends of duplicates on either side, and the end reported last."""

    left: Integers
    right: Integers
    said: Integers


@kernel(SlotArrays, ChangeArrays, Flags, int, EndArrays, Integers, Integers, part="pipelines")
def report_slots(slots, changes, present, rule, group_ends, out_signs, out_ends):
    """Write what each slot reports after its run: +1 and an end, -1 and the end retracted, or 0.

    A row is reported when it enters the result, and again when its reported end is reached while a
    duplicate is still there. It is retracted when it leaves the result before that. The greatest
    ends of duplicates may be those of rows that were retracted since. Then a row is reported with
    too late an end and retracted; the opposite cannot happen.
    """
    groups, run_rows, run_slots, slot_groups = slots
    times, signs, ends, lefts = changes
    left_ends, right_ends, said = group_ends
    for run in range(run_rows.shape[0] - 1):
        now = times[run_rows[run]]
        for i in range(run_rows[run], run_rows[run + 1]):
            if signs[i] > 0:
                group = groups[i]
                if lefts[i]:
                    left_ends[group] = max(left_ends[group], ends[i])
                else:
                    right_ends[group] = max(right_ends[group], ends[i])
        for slot in range(run_slots[run], run_slots[run + 1]):
            group = slot_groups[slot]
            out_signs[slot] = 0
            if present[slot]:
                if said[group] <= now:
                    said[group] = end_of(rule, left_ends[group], right_ends[group])
                    out_signs[slot] = 1
                    out_ends[slot] = said[group]
            else:
                if said[group] > now:
                    out_signs[slot] = -1
                    out_ends[slot] = said[group]
                said[group] = UNSAID
