"""Numbers for groups, and the order in which changes touch them.

A group is known by two words. Groups with the same bucket are linked; a number that is given back
is the next to be given out. Changes come sorted by time: those of one time are a *run*, and a group
that a run touches is a *slot*. Whoever keeps something for each group writes down, for every slot,
what it was before the run and what it is after it.
"""

from __future__ import annotations

import numpy as np

from muntin.kernels.arrays import Integers, SlotArrays
from muntin.kernels.jit import inline, kernel
from muntin.kernels.rows import mix

NONE = -1
FREE = 0
USED = 1
LIVE = 2
META = 3


@inline
def bucket_of(low, high, buckets):
    """Return the bucket of a key; ``buckets`` is a power of two."""
    return np.int64(mix(low ^ np.int64(mix(high)))) & (buckets - 1)


@kernel(
    "(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1],"
    " int64[::1])",
    part="pipelines",
)
def find_groups(low, high, heads, lows, highs, links, meta, numbers):
    """Return the number of each key's group, given when it is new.

    There is room for as many new groups as there are keys.
    """
    for i in range(low.shape[0]):
        bucket = bucket_of(low[i], high[i], heads.shape[0])
        group = heads[bucket]
        while group != NONE and (lows[group] != low[i] or highs[group] != high[i]):
            group = links[group]
        if group == NONE:
            group = meta[FREE]
            if group == NONE:
                group = meta[USED]
                meta[USED] += 1
            else:
                meta[FREE] = links[group]
            meta[LIVE] += 1
            lows[group] = low[i]
            highs[group] = high[i]
            links[group] = heads[bucket]
            heads[bucket] = group
        numbers[i] = group


@kernel(
    "(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])", part="pipelines"
)
def release_groups(groups, heads, lows, highs, links, meta):
    """Give back the numbers of groups, each given once."""
    for i in range(groups.shape[0]):
        gone = groups[i]
        bucket = bucket_of(lows[gone], highs[gone], heads.shape[0])
        if heads[bucket] == gone:
            heads[bucket] = links[gone]
        else:
            before = heads[bucket]
            while links[before] != gone:
                before = links[before]
            links[before] = links[gone]
        links[gone] = meta[FREE]
        meta[FREE] = gone
        meta[LIVE] -= 1


@kernel("(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])", part="pipelines")
def move_groups(heads, larger, lows, highs, links):
    """Link all groups again under more buckets."""
    for old in range(heads.shape[0]):
        group = heads[old]
        while group != NONE:
            following = links[group]
            bucket = bucket_of(lows[group], highs[group], larger.shape[0])
            links[group] = larger[bucket]
            larger[bucket] = group
            group = following


@kernel(
    "UniTuple(int64, 2)(int64[::1], int64[::1], int64[::1], int64, int64[::1], int64[::1],"
    " int64[::1], int64[::1])",
    part="pipelines",
)
def touch_groups(groups, times, stamps, first, slot_groups, slot_rows, run_rows, run_slots):
    """Cut changes into runs, and find the slots of each; returns how many runs and slots there are.

    ``stamps`` has for each group the last run that touched it; runs are numbered from ``first`` on.
    ``slot_rows`` is the first change of each slot. ``run_rows`` and ``run_slots`` get where each
    run begins, and the ends of all.
    """
    run = -1
    slots = 0
    for i in range(groups.shape[0]):
        if i == 0 or times[i] != times[i - 1]:
            run += 1
            run_rows[run] = i
            run_slots[run] = slots
        group = groups[i]
        if stamps[group] != first + run:
            stamps[group] = first + run
            slot_groups[slots] = group
            slot_rows[slots] = i
            slots += 1
    run_rows[run + 1] = groups.shape[0]
    run_slots[run + 1] = slots
    return run + 1, slots


@kernel(SlotArrays, Integers, Integers, Integers, part="pipelines")
def count_slots(slots, weights, counts, out):
    """Add up weights per group; ``out`` gets what each slot had before its run and has after it."""
    groups, run_rows, run_slots, slot_groups = slots
    for run in range(run_rows.shape[0] - 1):
        for slot in range(run_slots[run], run_slots[run + 1]):
            out[2 * slot] = counts[slot_groups[slot]]
        for i in range(run_rows[run], run_rows[run + 1]):
            counts[groups[i]] += weights[i]
        for slot in range(run_slots[run], run_slots[run + 1]):
            out[2 * slot + 1] = counts[slot_groups[slot]]
