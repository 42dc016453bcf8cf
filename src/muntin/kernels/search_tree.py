"""The search trees of a shared join: nodes and leaves in the pool of the scheduler state.

:mod:`muntin.kernels.tree_scan` walks over them; :mod:`muntin.kernels.scheduler_state` defines the
words of a node. A tree is freed in O(1): its nodes are freed one by one as places are needed.
"""

from __future__ import annotations

import numpy as np

from muntin.kernels.jit import inline
from muntin.kernels.scheduler_state import (
    FREE,
    HELD,
    O_KEPT,
    O_ROOT,
    T_COUNT,
    T_FIRST,
    T_LAST,
    T_LEAVES,
    T_NEXT,
    T_RESUME,
    T_ROW,
    T_WORDS,
    USED,
)

NONE = -1
LEAVES = T_WORDS - T_LEAVES
"""Leaves of a block."""


@inline
def new_node(state, pool, row, resume):
    """Return a node without children, or a block of leaves; -1 when the pool has no place.

    A free node brings the tree below it, whose places are freed when it is used.
    """
    node = state[FREE]
    if node >= 0:
        state[FREE] = pool[node, T_NEXT]
        if pool[node, T_FIRST] >= 0:
            pool[pool[node, T_LAST], T_NEXT] = state[FREE]
            state[FREE] = pool[node, T_FIRST]
    elif state[USED] < pool.shape[0]:
        node = state[USED]
        state[USED] = node + 1
    else:
        return np.int64(NONE)
    pool[node, T_NEXT] = NONE
    pool[node, T_FIRST] = NONE
    pool[node, T_RESUME] = resume
    pool[node, T_ROW] = row
    pool[node, T_LAST] = NONE
    pool[node, T_COUNT] = 0
    return node


@inline
def free_node(node, state, pool):
    """Return a node and the tree below it to the pool."""
    pool[node, T_NEXT] = state[FREE]
    state[FREE] = node


@inline
def is_exhausted(node, pool):
    """Return whether a partial match has no matches and no more candidates."""
    return pool[node, T_FIRST] < 0 and pool[node, T_RESUME] == NONE


@inline
def append_child(parent, child, pool):
    """Put a node behind the children of another one."""
    last = pool[parent, T_LAST]
    if last < 0:
        pool[parent, T_FIRST] = child
    else:
        pool[last, T_NEXT] = child
    pool[parent, T_LAST] = child


@inline
def add_leaf(node, row, state, pool):
    """Note a row that completes a partial match; False when the pool has no place."""
    count = pool[node, T_COUNT]
    if count % LEAVES == 0:
        block = new_node(state, pool, row, NONE)
        if block < 0:
            return False
        append_child(node, block, pool)
    pool[pool[node, T_LAST], T_LEAVES + count % LEAVES] = row
    pool[node, T_COUNT] = count + 1
    return True


@inline
def remove_child(parent, before, child, pool):
    """Take a node from between its siblings; ``before`` is the one in front of it, if any."""
    if before < 0:
        pool[parent, T_FIRST] = pool[child, T_NEXT]
    else:
        pool[before, T_NEXT] = pool[child, T_NEXT]
    if pool[parent, T_LAST] == child:
        pool[parent, T_LAST] = before


@inline
def drop_tree(row, state, pool):
    """Forget what an outer row has found."""
    if row[O_ROOT] >= 0:
        free_node(row[O_ROOT], state, pool)
    state[HELD] -= row[O_KEPT]
    row[O_ROOT] = NONE
    row[O_KEPT] = 0
