"""What an operator that has every row once says about its rows, when each of them has an end of its own (paper 2, section 4.1)."""

from __future__ import annotations

from muntin.kernels.jit import inline, kernel

UNSAID = -(2**63)
"""The end of a row that is not in the result."""

GREATER = 0
LESSER = 1
LEFT = 2


@inline
def end_of(rule, left, right):
    """Until when a row is in the result as far as its duplicates tell, by the ends of those that stay longest on either side."""
    if rule == LEFT:
        return left
    if rule == LESSER:
        return min(left, right)
    return max(left, right)


@kernel(
    "(int64[::1], int64[::1], int64[::1], boolean[::1], int64[::1], int64[::1], int64[::1], int64[::1], boolean[::1], int64,"
    " int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])",
    part="pipelines",
)
def report_slots(
    groups, signs, ends, lefts, times, run_rows, run_slots, slot_groups, present, rule, left_ends, right_ends, said, out_signs, out_ends
):  # fmt: skip
    """For each slot what is to be said after its run: +1 with an end, -1 with the end that is taken back, or nothing (0).

    ``said`` has for each group the end that was said last. A row is said when it comes into the result, and again when the end
    is reached that was said of it while a duplicate is still there. It is taken back when it is no longer in the result before that.
    The greatest ends of duplicates may be those of rows that were taken back since. Then a row is said with too late an end and taken
    back; the other way round cannot be.
    """
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
