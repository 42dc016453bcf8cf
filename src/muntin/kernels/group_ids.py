"""Numbers for groups, and the order in which changes touch them.

A group is known by two words. Groups with the same bucket are linked; a number that is given back
is the next to be given out. Changes come sorted by time: those of one time are a *run*, and a group
that a run touches is a *slot*. Whoever keeps something for each group writes down, for every slot,
what it was before the run and what it is after it.
"""

from __future__ import annotations

import numpy as np

from muntin.kernels.arrays import GroupArrays, Integers, SlotArrays
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


@inline
def find_group(low, high, known):
    """Return the number of a key's group, or ``NONE``."""
    group = known.heads[bucket_of(low, high, known.heads.shape[0])]
    while group != NONE and (known.lows[group] != low or known.highs[group] != high):
        group = known.links[group]
    return group


@inline
def add_group(low, high, known):
    """Give a new key's group a number; there is room for it."""
    meta = known.meta
    group = meta[FREE]
    if group == NONE:
        group = meta[USED]
        meta[USED] += 1
    else:
        meta[FREE] = known.links[group]
    meta[LIVE] += 1
    bucket = bucket_of(low, high, known.heads.shape[0])
    known.lows[group] = low
    known.highs[group] = high
    known.links[group] = known.heads[bucket]
    known.heads[bucket] = group
    return group


@inline
def remove_group(gone, known):
    """Give back the number of a group."""
    bucket = bucket_of(known.lows[gone], known.highs[gone], known.heads.shape[0])
    if known.heads[bucket] == gone:
        known.heads[bucket] = known.links[gone]
    else:
        before = known.heads[bucket]
        while known.links[before] != gone:
            before = known.links[before]
        known.links[before] = known.links[gone]
    known.links[gone] = known.meta[FREE]
    known.meta[FREE] = gone
    known.meta[LIVE] -= 1


@kernel(Integers, Integers, GroupArrays, Integers, part="pipelines")
def find_groups(low, high, known, numbers):
    """Return the number of each key's group, given when it is new.

    There is room for as many new groups as there are keys.
    """
    for i in range(low.shape[0]):
        group = find_group(low[i], high[i], known)
        if group == NONE:
            group = add_group(low[i], high[i], known)
        numbers[i] = group


@kernel(Integers, GroupArrays, part="pipelines")
def release_groups(groups, known):
    """Give back the numbers of groups, each given once."""
    for i in range(groups.shape[0]):
        remove_group(groups[i], known)


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
