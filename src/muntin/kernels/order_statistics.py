"""The values of each group in order and their counts: least, greatest, value of a rank.

A group with few values has them in a sorted block of memory, where moving some of them costs less
than following links. Blocks have sizes of powers of two; one that is outgrown is the next of its
size to be given out. A group with many values has a treap, all of them in one pool of nodes. A
node's priority is a hash of its number, so trees are as deep as random ones, O(log n), and the same
input always gives the same trees. A group that has become a tree stays one until it is empty.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muntin.kernels.arrays import Integers, Reals, SlotArrays, Table
from muntin.kernels.jit import inline, kernel
from muntin.kernels.rows import mix

NONE = -1

KEY = 0
COUNT = 1
LEFT = 2
RIGHT = 3
SIZE = 4
NODE_FIELDS = 5

FREE = 0
USED = 1
LIVE = 2
META = 3

BLOCK = 0
ROOM = 1
HELD = 2
BLOCK_FIELDS = 3
"""Of each group: where its block begins, its room (0: none; -1: it is a tree), how many it has."""

SMALLEST = 2
"""The binary logarithm of the smallest block."""
SIZES = 24
"""Heads of the lists of free blocks, by the logarithm of their size, and the used length."""

DEEPEST = 1 << 12
"""Room for the way to a node: a treap so deep has no chance to come about."""

LEAST = 0
GREATEST = 1
LOWER = 2
UPPER = 3
DISCRETE = 4


class ValueBlocks(NamedTuple):
    """Values of small groups: the pool of blocks, its free blocks by size, a row per group.

    A group of more than ``most`` values becomes a tree.
    """

    pool: Integers
    sizes: Integers
    blocks: Table
    most: int


class ValueTrees(NamedTuple):
    """Values of large groups: nodes, the root and the number of values per group, and scratch."""

    nodes: Table
    roots: Integers
    distinct: Integers
    meta: Integers
    path: Integers


class Questions(NamedTuple):
    """Questions about a group: their kinds, and for ranks the fraction, also as a ratio."""

    kinds: Integers
    fractions: Reals
    ratios: Table


@inline
def goes_above(one, other):
    """Return whether a node has the higher priority."""
    first = np.int64(mix(one))
    second = np.int64(mix(other))
    return first > second or (first == second and one > other)


@inline
def update_size(nodes, node):
    """Count a node's values again from those of its children."""
    size = nodes[node, COUNT]
    if nodes[node, LEFT] != NONE:
        size += nodes[nodes[node, LEFT], SIZE]
    if nodes[node, RIGHT] != NONE:
        size += nodes[nodes[node, RIGHT], SIZE]
    nodes[node, SIZE] = size


@inline
def insert_value(nodes, roots, distinct, meta, path, group, key):
    """Put a value into the tree of a group."""
    depth = 0
    node = roots[group]
    while node != NONE:
        nodes[node, SIZE] += 1
        if nodes[node, KEY] == key:
            nodes[node, COUNT] += 1
            return
        path[depth] = node
        depth += 1
        node = nodes[node, LEFT] if key < nodes[node, KEY] else nodes[node, RIGHT]
    new = meta[FREE]
    if new == NONE:
        new = meta[USED]
        meta[USED] += 1
    else:
        meta[FREE] = nodes[new, LEFT]
    meta[LIVE] += 1
    distinct[group] += 1
    nodes[new, KEY] = key
    nodes[new, COUNT] = 1
    nodes[new, SIZE] = 1
    nodes[new, LEFT] = NONE
    nodes[new, RIGHT] = NONE
    while depth > 0 and goes_above(new, path[depth - 1]):
        # The new node takes its parent's place; the parent takes the part of its tree that lies
        # between them.
        depth -= 1
        parent = path[depth]
        if key < nodes[parent, KEY]:
            nodes[parent, LEFT] = nodes[new, RIGHT]
            nodes[new, RIGHT] = parent
        else:
            nodes[parent, RIGHT] = nodes[new, LEFT]
            nodes[new, LEFT] = parent
        update_size(nodes, parent)
        update_size(nodes, new)
    if depth == 0:
        roots[group] = new
    elif key < nodes[path[depth - 1], KEY]:
        nodes[path[depth - 1], LEFT] = new
    else:
        nodes[path[depth - 1], RIGHT] = new


@inline
def put_below(nodes, roots, group, parent, left, node):
    """Make a node the left or right child of another one, or the root."""
    if parent == NONE:
        roots[group] = node
    elif left:
        nodes[parent, LEFT] = node
    else:
        nodes[parent, RIGHT] = node


@inline
def unlink_node(nodes, roots, group, parent, left, node):
    """Take a node, given with its parent and its side, out of the tree of a group.

    The sizes of the nodes above it are already those without it.
    """
    lower = nodes[node, LEFT]
    upper = nodes[node, RIGHT]
    while lower != NONE and upper != NONE:
        if goes_above(lower, upper):
            put_below(nodes, roots, group, parent, left, lower)
            nodes[lower, SIZE] += nodes[upper, SIZE]
            parent = lower
            left = False
            lower = nodes[lower, RIGHT]
        else:
            put_below(nodes, roots, group, parent, left, upper)
            nodes[upper, SIZE] += nodes[lower, SIZE]
            parent = upper
            left = True
            upper = nodes[upper, LEFT]
    put_below(nodes, roots, group, parent, left, upper if lower == NONE else lower)


@inline
def remove_value(nodes, roots, distinct, meta, group, key):
    """Take a value, which is there, out of the tree of a group."""
    parent = np.int64(NONE)
    left = False
    node = roots[group]
    while nodes[node, KEY] != key:
        nodes[node, SIZE] -= 1
        parent = node
        left = key < nodes[node, KEY]
        node = nodes[node, LEFT] if left else nodes[node, RIGHT]
    if nodes[node, COUNT] > 1:
        nodes[node, COUNT] -= 1
        nodes[node, SIZE] -= 1
        return
    unlink_node(nodes, roots, group, parent, left, node)
    nodes[node, COUNT] = 0
    nodes[node, LEFT] = meta[FREE]
    meta[FREE] = node
    meta[LIVE] -= 1
    distinct[group] -= 1


@inline
def value_of_rank(nodes, root, rank):
    """Return the value of a rank in the tree."""
    node = root
    while True:
        before = nodes[nodes[node, LEFT], SIZE] if nodes[node, LEFT] != NONE else 0
        if rank < before:
            node = nodes[node, LEFT]
        elif rank < before + nodes[node, COUNT]:
            return nodes[node, KEY]
        else:
            rank -= before + nodes[node, COUNT]
            node = nodes[node, RIGHT]


@inline
def log_of(room):
    """Return the binary logarithm of the size of a block."""
    size = SMALLEST
    while (1 << size) < room:
        size += 1
    return size


@inline
def place_of(pool, start, held, key):
    """Return the first place in a sorted block whose value is not less than this one."""
    low = start
    high = start + held
    while low < high:
        middle = (low + high) >> 1
        if pool[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@inline
def give_back(pool, sizes, start, room):
    """Let a block be the next of its size to be given out."""
    size = log_of(room)
    pool[start] = sizes[size]
    sizes[size] = start


@inline
def enlarge_block(pool, sizes, blocks, group):
    """Move a group's values to a larger block; whether there was room for it."""
    room = blocks[group, ROOM]
    size = SMALLEST if room == 0 else log_of(room) + 1
    start = sizes[size]
    if start == NONE:
        start = sizes[SIZES - 1]
        if start + (1 << size) > pool.shape[0]:
            return False
        sizes[SIZES - 1] += 1 << size
    else:
        sizes[size] = pool[start]
    for i in range(blocks[group, HELD]):
        pool[start + i] = pool[blocks[group, BLOCK] + i]
    if room > 0:
        give_back(pool, sizes, blocks[group, BLOCK], room)
    blocks[group, BLOCK] = start
    blocks[group, ROOM] = 1 << size
    return True


@inline
def put_into_block(pool, blocks, distinct, group, key):
    """Put a value into a block that has room."""
    start = blocks[group, BLOCK]
    end = start + blocks[group, HELD]
    place = place_of(pool, start, blocks[group, HELD], key)
    if place == end or pool[place] != key:
        distinct[group] += 1
    for i in range(end, place, -1):
        pool[i] = pool[i - 1]
    pool[place] = key
    blocks[group, HELD] += 1


@inline
def take_from_block(pool, sizes, blocks, distinct, group, key):
    """Take a value, which is there, out of a block; an empty one is given back."""
    start = blocks[group, BLOCK]
    last = start + blocks[group, HELD] - 1
    place = place_of(pool, start, blocks[group, HELD], key)
    if place == last or pool[place + 1] != key:
        distinct[group] -= 1
    for i in range(place, last):
        pool[i] = pool[i + 1]
    blocks[group, HELD] -= 1
    if blocks[group, HELD] == 0:
        give_back(pool, sizes, start, blocks[group, ROOM])
        blocks[group, ROOM] = 0


@inline
def make_tree(pool, sizes, blocks, nodes, roots, distinct, meta, path, group):
    """Let a group with many values be a tree from now on."""
    distinct[group] = 0
    for i in range(blocks[group, HELD]):
        insert_value(nodes, roots, distinct, meta, path, group, pool[blocks[group, BLOCK] + i])
    give_back(pool, sizes, blocks[group, BLOCK], blocks[group, ROOM])
    blocks[group, ROOM] = -1
    blocks[group, HELD] = 0


@inline
def rank_of(kind, count, fraction, numerator, denominator):
    """Return the rank that a question is about, among ``count`` values."""
    if kind == LEAST:
        return 0
    if kind == GREATEST:
        return count - 1
    if kind == DISCRETE:
        return max(count - (count * denominator - count * numerator) // denominator, 1) - 1
    place = (count - 1) * fraction
    return np.int64(np.floor(place)) if kind == LOWER else np.int64(np.ceil(place))


@inline
def read_values(values, trees, group, questions, out, place):
    """Write the answers to the questions about a group; 0 where it has no values."""
    pool, blocks = values.pool, values.blocks
    nodes, roots = trees.nodes, trees.roots
    kinds, fractions, ratios = questions
    root = roots[group]
    held = blocks[group, HELD]
    for question in range(kinds.shape[0]):
        kind = kinds[question]
        if root == NONE and held == 0:
            out[question, place] = 0
        else:
            count = held if root == NONE else nodes[root, SIZE]
            rank = rank_of(
                kind, count, fractions[question], ratios[question, 0], ratios[question, 1]
            )
            if root == NONE:
                out[question, place] = pool[blocks[group, BLOCK] + rank]
            else:
                out[question, place] = value_of_rank(nodes, root, rank)


@kernel(
    SlotArrays, Integers, Integers, ValueBlocks, ValueTrees, Questions, int, int, Table,
    part="pipelines",
)  # fmt: skip
def order_slots(slots, weights, keys, values, trees, questions, first_run, first_row, out):
    """Add values to their groups (weight +1) or remove them (-1).

    ``out`` as in ``count_slots``, a row per question. Groups with more than ``most`` values become
    trees, for which there are nodes enough. Returns the run and the row at which the pool of blocks
    became too small, or the number of runs; the next call resumes there with a larger pool.
    """
    groups, run_rows, run_slots, slot_groups = slots
    pool, sizes, blocks, most = values
    nodes, roots, distinct, meta, path = trees
    for run in range(first_run, run_rows.shape[0] - 1):
        start = first_row
        if run > first_run or first_row <= run_rows[run]:
            start = run_rows[run]
            for slot in range(run_slots[run], run_slots[run + 1]):
                read_values(values, trees, slot_groups[slot], questions, out, 2 * slot)
        for i in range(start, run_rows[run + 1]):
            group = groups[i]
            if weights[i] > 0:
                if blocks[group, ROOM] == blocks[group, HELD]:
                    if blocks[group, HELD] >= most:
                        make_tree(pool, sizes, blocks, nodes, roots, distinct, meta, path, group)
                    elif not enlarge_block(pool, sizes, blocks, group):
                        return np.int64(run), np.int64(i)
                if blocks[group, ROOM] < 0:
                    insert_value(nodes, roots, distinct, meta, path, group, keys[i])
                else:
                    put_into_block(pool, blocks, distinct, group, keys[i])
            elif weights[i] < 0:
                if blocks[group, ROOM] > 0:
                    take_from_block(pool, sizes, blocks, distinct, group, keys[i])
                else:
                    remove_value(nodes, roots, distinct, meta, group, keys[i])
                    if roots[group] == NONE:
                        blocks[group, ROOM] = 0
        for slot in range(run_slots[run], run_slots[run + 1]):
            read_values(values, trees, slot_groups[slot], questions, out, 2 * slot + 1)
    return np.int64(run_rows.shape[0] - 1), np.int64(0)
