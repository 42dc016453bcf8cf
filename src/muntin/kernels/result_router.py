"""The router of a scheduled join: results go to the levels that may have them, or wait; see :mod:`muntin.kernels.scheduler_state`."""

from __future__ import annotations

import numpy as np

from muntin.kernels.jit import inline
from muntin.kernels.layout import DONE, FULL
from muntin.kernels.scheduler_queues import join_queue, leave_queue
from muntin.kernels.scheduler_state import (
    APART,
    BLOCK,
    CONTAINED,
    ENDING,
    FREE,
    HELD,
    MOST_HELD,
    MQT,
    O_ARRIVAL,
    O_FIRST,
    O_LAST,
    O_OWN,
    O_POSITION,
    O_TIME,
    P_DISTANCE,
    P_PARTNER,
    R_ARRIVAL,
    R_FROM,
    R_RELEASED,
    R_UNTIL,
    SCHEDULER,
    SWF,
    USED,
)


@inline
def put(row, number, partner, first, until, now, out, count):
    """Write a result for some levels; there is room."""
    out[count, 0] = number
    out[count, 1] = row[O_TIME]
    s = row[O_OWN] & 15
    out[count, 2 + s] = row[O_POSITION]
    out[count, 3 - s] = partner
    out[count, 4 + R_FROM] = first
    out[count, 4 + R_UNTIL] = until
    out[count, 4 + R_ARRIVAL] = row[O_ARRIVAL]
    out[count, 4 + R_RELEASED] = now
    return count + 1


@inline
def release(row, number, partner, distance, first, until, desk, sizes, now, out, count):
    """Give a pair to those of some levels that have it inside; there is room for as many results as there are levels."""
    if desk[CONTAINED] and not desk[APART]:
        return put(row, number, partner, first, until, now, out, count)
    o = 1 - (row[O_OWN] & 15)
    level = first
    while level < until:
        if distance < sizes[level, o]:
            start = level
            level += 1
            while level < until and distance < sizes[level, o] and not desk[APART]:
                level += 1
            count = put(row, number, partner, start, level, now, out, count)
        else:
            level += 1
    return count


@inline
def pair_after(pair, pairs):
    """The place of the next pair of the same row, if it has one."""
    if pair % BLOCK == BLOCK - 2:
        return pairs[pair + 1, 0]
    return pair + 1


@inline
def hold(row, partner, distance, desk, pairs):
    """Keep a pair for those who cannot have it yet; the pool has room."""
    last = row[O_LAST]
    if last >= 0 and last % BLOCK != BLOCK - 2:
        pair = last + 1
    else:
        pair = desk[FREE]
        if pair >= 0:
            desk[FREE] = pairs[pair + BLOCK - 1, 0]
        else:
            pair = desk[USED]
            desk[USED] = pair + BLOCK
        if last >= 0:
            pairs[last + 1, 0] = pair
        else:
            row[O_FIRST] = pair
    pairs[pair, P_PARTNER] = partner
    pairs[pair, P_DISTANCE] = distance
    row[O_LAST] = pair
    desk[HELD] += 1
    if desk[HELD] > desk[MOST_HELD]:
        desk[MOST_HELD] = desk[HELD]


@inline
def let_go(row, desk, pairs):
    """Give back the blocks of a row that is done."""
    block = row[O_FIRST]
    last = row[O_LAST]
    while block >= 0:
        end = block + BLOCK - 1
        following = np.int64(-1)
        if block <= last < end:
            desk[HELD] -= last - block + 1
        else:
            desk[HELD] -= BLOCK - 1
            following = pairs[end, 0]
        pairs[end, 0] = desk[FREE]
        desk[FREE] = block
        block = following


@inline
def give_held(row, number, level, run, desk, sizes, given, pairs, now, out, count, room):
    """Give the levels from ``level`` up to ``run``, which all have got the same so far, what is held of their front row.

    Returns the new count; when the room ends, ``given`` tells how far it got.
    """
    pair = given[level]
    last = row[O_LAST]
    while pair != last and count + sizes.shape[0] <= room:
        pair = row[O_FIRST] if pair < 0 else pair_after(pair, pairs)
        count = release(
            row,
            number,
            pairs[pair, P_PARTNER],
            pairs[pair, P_DISTANCE],
            level,
            run,
            desk,
            sizes,
            now,
            out,
            count,
        )
    for each in range(level, run):
        given[each] = pair
    return count


@inline
def is_given(row, level, given):
    """Whether a level has got all that is held of its front row."""
    return given[level] == row[O_LAST]


@inline
def end_level(queue, desk, done, links, outers, sizes, given, pairs, now, out, count, room):
    """Release what the head of a queue has finished; DONE, or FULL when the room ended and this has to be called again."""
    mask = outers.shape[0] - 1
    end = done.shape[0] - 1
    number = done[queue + 1]
    row = outers[number & mask]
    if desk[SCHEDULER] == SWF:
        limit = links[0, queue]
        level = queue
        while level < limit:
            run = level + 1
            while run < limit and given[run] == given[level]:
                run += 1
            count = give_held(
                row, number, level, run, desk, sizes, given, pairs, now, out, count, room
            )
            if not is_given(row, level, given):
                return np.int64(FULL), count
            level = run
        given[queue] = -1
    elif desk[SCHEDULER] == MQT and number + 1 < done[0]:
        following = outers[(number + 1) & mask]
        count = give_held(
            following,
            number + 1,
            queue,
            queue + 1,
            desk,
            sizes,
            given,
            pairs,
            now,
            out,
            count,
            room,
        )
        if not is_given(following, queue, given):
            return np.int64(FULL), count
        given[queue] = -1
    # The row moves on.
    done[queue + 1] = number + 1
    if queue + 1 < end:
        if done[queue + 1] - done[queue + 2] == 1:
            join_queue(desk, links, queue + 1, queue)
    else:
        let_go(row, desk, pairs)
    if done[queue] == done[queue + 1]:
        leave_queue(desk, links, queue)
    desk[ENDING] = 0
    return np.int64(DONE), count
