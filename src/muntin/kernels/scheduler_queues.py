"""The queues of a shared join: which are not empty, and which of them SWF and MQT serve next.

:mod:`muntin.kernels.scheduler_state` defines the arrays. Serving the next queue costs O(1) under
LWO and SWF; under MQT, O(queues that are not empty) unless the choice is remembered.
"""

from __future__ import annotations

import numpy as np

from muntin.kernels.jit import inline
from muntin.kernels.scheduler_state import BUSY, MQT, O_OWN, SCHEDULER

_LOW = 0xFFFFFFFF
_SURELY = 1.0 + 1e-12
"""Factor by which a rounded ratio must be larger to be larger for certain."""


@inline
def join_queue(state, links, queue, behind):
    """Chain a queue that is no longer empty behind a smaller one (or the end of the chain)."""
    state[BUSY] ^= np.int64(1) << (queue & 63)
    after = links[0, behind]
    links[0, behind] = queue
    links[0, queue] = after
    links[1, after] = queue
    links[1, queue] = behind


@inline
def leave_queue(state, links, queue):
    """Take a queue that has become empty out of the chain."""
    state[BUSY] ^= np.int64(1) << (queue & 63)
    links[0, links[1, queue]] = links[0, queue]
    links[1, links[0, queue]] = links[1, queue]


@inline
def product_high(number, width):
    """Return the upper part of a product of a number below 2**31 and a width below 2**63."""
    return number * (width >> np.uint64(32)) + (
        (number * (width & np.uint64(_LOW))) >> np.uint64(32)
    )


@inline
def product_low(number, width):
    """Return the lower 32 bits of the same product."""
    return (number * (width & np.uint64(_LOW))) & np.uint64(_LOW)


@inline
def at_least(queries, width, other_queries, other_width):
    """Return whether ``queries / width`` is not less than the other ratio, exactly.

    A width of 0 makes a ratio infinite.
    """
    one, other = np.uint64(queries), np.uint64(other_queries)
    wide, otherwise = np.uint64(width), np.uint64(other_width)
    left, right = product_high(one, otherwise), product_high(other, wide)
    if left != right:
        return left > right
    return product_low(one, otherwise) >= product_low(other, wide)


@inline
def ratio_of(table, queue, limit, reach, served, best):
    """Return the most that the head of a queue can serve: queries, and the distance to look at.

    It is behind a row that has finished ``limit`` levels.
    """
    until = np.int64(best[table, queue * reach.shape[1] + limit - 1])
    width = reach[table, until]
    if queue > 0:
        width -= reach[table, queue - 1]
    return served[until + 1] - served[queue], width


@inline
def choose(levels_in, queues):
    """Return the queue whose head scans next, -1 when all are empty."""
    state, done, links, outers = queues.state, queues.done, queues.links, queues.outers
    tables, reach, served = levels_in.tables, levels_in.reach, levels_in.served
    best, quotients, chosen_of = levels_in.best, levels_in.quotients, queues.chosen
    end = done.shape[0] - 1
    if links[0, end] == end:
        return np.int64(-1)
    queue = links[1, end]
    if state[SCHEDULER] != MQT or links[0, end] == queue:
        return links[0, end]
    remembered = chosen_of.shape[0] > 1
    if remembered and chosen_of[state[BUSY]] >= 0:
        return np.int64(chosen_of[state[BUSY]])
    mask = outers.shape[0] - 1
    levels = reach.shape[1]
    chosen = np.int64(-1)
    its_table = np.int64(0)
    its_limit = np.int64(0)
    most = 0.0
    limit = np.int64(end)
    table = np.int64(0)
    while queue != end:
        if reach.shape[0] > 1:
            table = tables[outers[done[queue + 1] & mask, O_OWN] & 15]
        own = quotients[table, queue * levels + limit - 1]
        better = chosen < 0 or own > most * _SURELY
        if not better and own * _SURELY >= most:
            # Too close to tell by rounded numbers; of equal ones the smaller window wins.
            one_queries, one_width = ratio_of(table, queue, limit, reach, served, best)
            queries, width = ratio_of(its_table, chosen, its_limit, reach, served, best)
            better = at_least(one_queries, one_width, queries, width)
        if better:
            chosen, its_table, its_limit, most = queue, table, limit, own
        limit = queue
        queue = links[1, queue]
    if remembered:
        chosen_of[state[BUSY]] = chosen
    return chosen
