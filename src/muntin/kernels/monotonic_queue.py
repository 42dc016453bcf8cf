"""Least and greatest values of groups whose rows leave in the order in which they came.

The rows of one stream do.

A row can be the least one only until a smaller or equal one comes, since that one stays longer. So
a group keeps, oldest first, the values that are smaller than all that came after them: the first of
them is the least. A row is appended and removes those before it that it makes hopeless, so it costs
O(1) amortized, and of n random values about ln(n) are kept.

A row is known by its number among the rows of its group. Rows that leave are only counted: after a
run, those that have left are the oldest, whatever the order in which the run named them.

A queue is a ring in a block of memory. Blocks have sizes of powers of two; one that is outgrown is
the next of its size to be given out. Greatest values are the least ones of their complements.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muntin.kernels.arrays import Integers, SlotArrays, Table
from muntin.kernels.jit import inline, kernel
from muntin.kernels.memory import prefetch
from muntin.kernels.order_statistics import GREATEST, NONE, SIZES, SMALLEST, log_of

CAME = 0
LEFT = 1
PER_GROUP = 2
"""How many rows of a group have come and have left; after these its queues, one a question."""

BLOCK = 0
ROOM = 1
FIRST = 2
HELD = 3
PER_QUEUE = 4
"""Of a queue: where its block begins, its room, where the first value is, how many it has."""

_AHEAD = 8


@inline
def drop_left(pool, group, queue):
    """Forget the values at the front whose rows have left."""
    while group[queue + HELD] > 0:
        first = group[queue + BLOCK] + group[queue + FIRST]
        if pool[first, 1] > group[LEFT]:
            return
        group[queue + FIRST] = (group[queue + FIRST] + 1) & (group[queue + ROOM] - 1)
        group[queue + HELD] -= 1


@inline
def drop_hopeless(pool, group, queue, key):
    """Forget the values at the end that are not less than a new one."""
    while group[queue + HELD] > 0:
        last = (group[queue + FIRST] + group[queue + HELD] - 1) & (group[queue + ROOM] - 1)
        if pool[group[queue + BLOCK] + last, 0] < key:
            return
        group[queue + HELD] -= 1


@inline
def enlarge_queue(pool, sizes, group, queue):
    """Move a full queue to a larger block; whether there was room for it."""
    room = group[queue + ROOM]
    size = SMALLEST if room == 0 else log_of(room) + 1
    start = sizes[size]
    if start == NONE:
        start = sizes[SIZES - 1]
        if start + (1 << size) > pool.shape[0]:
            return False
        sizes[SIZES - 1] += 1 << size
    else:
        sizes[size] = pool[start, 0]
    for i in range(group[queue + HELD]):
        old = group[queue + BLOCK] + ((group[queue + FIRST] + i) & (room - 1))
        pool[start + i, 0] = pool[old, 0]
        pool[start + i, 1] = pool[old, 1]
    if room > 0:
        give_back_queue(pool, sizes, group, queue)
    group[queue + BLOCK] = start
    group[queue + ROOM] = 1 << size
    group[queue + FIRST] = 0
    return True


@inline
def give_back_queue(pool, sizes, group, queue):
    """Let the block of a queue be the next of its size to be given out."""
    size = log_of(group[queue + ROOM])
    pool[group[queue + BLOCK], 0] = sizes[size]
    sizes[size] = group[queue + BLOCK]


@inline
def read_extremes(pool, group, kinds, out, place):
    """Write down the first value of each queue; 0 where there is none."""
    for question in range(kinds.shape[0]):
        queue = PER_GROUP + question * PER_QUEUE
        drop_left(pool, group, queue)
        value = np.int64(0)
        if group[queue + HELD] > 0:
            value = pool[group[queue + BLOCK] + group[queue + FIRST], 0]
            if kinds[question] == GREATEST:
                value = ~value
        out[question, place] = value


class ExtremeQueues(NamedTuple):
    """Queues of candidates: their pool, its free blocks by size, and a row per group."""

    pool: Table
    sizes: Integers
    queues: Table


@kernel(SlotArrays, Integers, Integers, ExtremeQueues, Integers, int, int, Table, part="pipelines")
def extreme_slots(slots, weights, keys, candidates, kinds, first_run, first_row, out):
    """Add rows (weight +1) or remove the oldest (-1) of groups.

    ``out`` as in ``count_slots``, a row per question.

    Returns the run and the row at which the pool became too small, or the number of runs; the next
    call resumes there with a larger pool. The first call begins with the row -1: a run that is
    resumed must not read again what was before it, since values that the next row makes hopeless
    are gone.
    """
    groups, run_rows, run_slots, slot_groups = slots
    pool, sizes, queues = candidates
    for run in range(first_run, run_rows.shape[0] - 1):
        start = first_row
        if run > first_run or first_row < 0:
            start = run_rows[run]
            for slot in range(run_slots[run], run_slots[run + 1]):
                read_extremes(pool, queues[slot_groups[slot]], kinds, out, 2 * slot)
        for i in range(start, run_rows[run + 1]):
            if i + _AHEAD < groups.shape[0]:
                prefetch(queues, groups[i + _AHEAD] * queues.shape[1])
            group = queues[groups[i]]
            if weights[i] < 0:
                group[LEFT] += 1
            elif weights[i] > 0:
                # First all that can fail, then all that changes something: so a row can be taken
                # again.
                for question in range(kinds.shape[0]):
                    queue = PER_GROUP + question * PER_QUEUE
                    key = ~keys[i] if kinds[question] == GREATEST else keys[i]
                    drop_hopeless(pool, group, queue, key)
                    if group[queue + HELD] == group[queue + ROOM]:
                        drop_left(pool, group, queue)
                        if group[queue + HELD] == group[queue + ROOM] and not enlarge_queue(
                            pool, sizes, group, queue
                        ):
                            return np.int64(run), np.int64(i)
                group[CAME] += 1
                for question in range(kinds.shape[0]):
                    queue = PER_GROUP + question * PER_QUEUE
                    key = ~keys[i] if kinds[question] == GREATEST else keys[i]
                    place = group[queue + BLOCK] + (
                        (group[queue + FIRST] + group[queue + HELD]) & (group[queue + ROOM] - 1)
                    )
                    pool[place, 0] = key
                    pool[place, 1] = group[CAME]
                    group[queue + HELD] += 1
        for slot in range(run_slots[run], run_slots[run + 1]):
            read_extremes(pool, queues[slot_groups[slot]], kinds, out, 2 * slot + 1)
    return np.int64(run_rows.shape[0] - 1), np.int64(0)


@kernel("(int64[::1], int64[:,::1], int64[::1], int64[:,::1], int64)", part="pipelines")
def forget_extremes(groups, pool, sizes, queues, questions):
    """Give back the blocks of groups, and make them as if they had never been."""
    for i in range(groups.shape[0]):
        group = queues[groups[i]]
        group[CAME] = 0
        group[LEFT] = 0
        for question in range(questions):
            queue = PER_GROUP + question * PER_QUEUE
            if group[queue + ROOM] > 0:
                give_back_queue(pool, sizes, group, queue)
            for field in range(PER_QUEUE):
                group[queue + field] = 0
