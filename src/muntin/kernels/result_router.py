"""The router of a scheduled join: results go to the levels that may have them, or wait.

See :mod:`muntin.kernels.scheduler_state`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muntin.kernels.arrays import Integers
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


class Outer(NamedTuple):
    """An outer row that has partners, inside a kernel: its number and its words."""

    number: int
    row: Integers


class Pair(NamedTuple):
    """A partner of an outer row, inside a kernel: its position, and how far away it is."""

    partner: int
    distance: int


class Band(NamedTuple):
    """Levels ``first`` to ``until - 1``, inside a kernel."""

    first: int
    until: int


@inline
def put(outer, partner, band, now, out, count):
    """Write a result for some levels; there is room."""
    row = outer.row
    out[count, 0] = outer.number
    out[count, 1] = row[O_TIME]
    s = row[O_OWN] & 15
    out[count, 2 + s] = row[O_POSITION]
    out[count, 3 - s] = partner
    out[count, 4 + R_FROM] = band.first
    out[count, 4 + R_UNTIL] = band.until
    out[count, 4 + R_ARRIVAL] = row[O_ARRIVAL]
    out[count, 4 + R_RELEASED] = now
    return count + 1


@inline
def release(outer, pair, band, state, sizes, now, out, count):
    """Write a pair for those levels of a band that have it inside; there is room for all levels."""
    if state[CONTAINED] and not state[APART]:
        return put(outer, pair.partner, band, now, out, count)
    o = 1 - (outer.row[O_OWN] & 15)
    level = band.first
    while level < band.until:
        if pair.distance < sizes[level, o]:
            start = level
            level += 1
            while level < band.until and pair.distance < sizes[level, o] and not state[APART]:
                level += 1
            count = put(outer, pair.partner, Band(start, level), now, out, count)
        else:
            level += 1
    return count


@inline
def pair_after(pair, pairs):
    """Return the place of the next pair of the same row, if it has one."""
    if pair % BLOCK == BLOCK - 2:
        return pairs[pair + 1, 0]
    return pair + 1


@inline
def hold(row, found, state, pairs):
    """Keep a pair for those who cannot have it yet; the pool has room."""
    last = row[O_LAST]
    if last >= 0 and last % BLOCK != BLOCK - 2:
        pair = last + 1
    else:
        pair = state[FREE]
        if pair >= 0:
            state[FREE] = pairs[pair + BLOCK - 1, 0]
        else:
            pair = state[USED]
            state[USED] = pair + BLOCK
        if last >= 0:
            pairs[last + 1, 0] = pair
        else:
            row[O_FIRST] = pair
    pairs[pair, P_PARTNER] = found.partner
    pairs[pair, P_DISTANCE] = found.distance
    row[O_LAST] = pair
    state[HELD] += 1
    if state[HELD] > state[MOST_HELD]:
        state[MOST_HELD] = state[HELD]


@inline
def let_go(row, state, pairs):
    """Give back the blocks of a row that is done."""
    block = row[O_FIRST]
    last = row[O_LAST]
    while block >= 0:
        end = block + BLOCK - 1
        following = np.int64(-1)
        if block <= last < end:
            state[HELD] -= last - block + 1
        else:
            state[HELD] -= BLOCK - 1
            following = pairs[end, 0]
        pairs[end, 0] = state[FREE]
        state[FREE] = block
        block = following


@inline
def give_held(outer, band, queues, sizes, now, out, count):
    """Write what is held of the front row of the levels of a band, which all got the same so far.

    Returns the new count; when the room ends, ``given`` is how far it got.
    """
    row, given, pairs = outer.row, queues.given, queues.pool
    place = given[band.first]
    last = row[O_LAST]
    while place != last and count + sizes.shape[0] <= out.shape[0]:
        place = row[O_FIRST] if place < 0 else pair_after(place, pairs)
        pair = Pair(pairs[place, P_PARTNER], pairs[place, P_DISTANCE])
        count = release(outer, pair, band, queues.state, sizes, now, out, count)
    for each in range(band.first, band.until):
        given[each] = place
    return count


@inline
def is_given(row, level, given):
    """Return whether a level has got all that is held of its front row."""
    return given[level] == row[O_LAST]


@inline
def move_on(queue, state, done, links):
    """Let the head of a queue, which has finished its level, wait for the next one, if any."""
    done[queue + 1] += 1
    if queue + 2 < done.shape[0] and done[queue + 1] - done[queue + 2] == 1:
        join_queue(state, links, queue + 1, queue)
    if done[queue] == done[queue + 1]:
        leave_queue(state, links, queue)


@inline
def end_level(queue, queues, sizes, now, out, count):
    """Release what the head of a queue has finished, and move it on; for two sources.

    DONE, or FULL when the room ended and this has to be called again.
    """
    state, done, links, outers = queues.state, queues.done, queues.links, queues.outers
    given, pairs = queues.given, queues.pool
    mask = outers.shape[0] - 1
    end = done.shape[0] - 1
    number = done[queue + 1]
    row = outers[number & mask]
    if state[SCHEDULER] == SWF:
        limit = links[0, queue]
        level = queue
        while level < limit:
            run = level + 1
            while run < limit and given[run] == given[level]:
                run += 1
            outer = Outer(number, row)
            count = give_held(outer, Band(level, run), queues, sizes, now, out, count)
            if not is_given(row, level, given):
                return np.int64(FULL), count
            level = run
        given[queue] = -1
    elif state[SCHEDULER] == MQT and number + 1 < done[0]:
        following = Outer(number + 1, outers[(number + 1) & mask])
        count = give_held(following, Band(queue, queue + 1), queues, sizes, now, out, count)
        if not is_given(following.row, queue, given):
            return np.int64(FULL), count
        given[queue] = -1
    if queue + 1 == end:
        let_go(row, state, pairs)
    move_on(queue, state, done, links)
    state[ENDING] = 0
    return np.int64(DONE), count
