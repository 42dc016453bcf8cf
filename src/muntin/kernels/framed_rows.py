"""The rows of each group in order, with what aggregates over any range of them take.

Rows are nodes of treaps as in :mod:`muntin.kernels.ranked_rows`, but every row has a node, linked
to its neighbors in order. A node also has the sums over its subtree, in parts that are added and
subtracted without carries (:mod:`muntin.kernels.exact_sum`), and for each least or greatest value
the node below it that has it. So the aggregate over a range of ranks is made of O(log n) nodes.
O(log n) per operation for n rows of a group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muntin.kernels.arrays import Integers, Table
from muntin.kernels.exact_sum import LOW_BITS, add_bits
from muntin.kernels.jit import inline
from muntin.kernels.order_statistics import FREE, LEFT, LIVE, NONE, RIGHT, SIZE, USED, goes_above
from muntin.kernels.ranked_rows import PLACE, compare_words, size_of

BEFORE = 1
AFTER = 5
FRESH = 6
WORDS = 7
"""Of each node: its neighbors, whether it has no results yet, then its words.

The other fields are those of :mod:`muntin.kernels.ranked_rows`. The words are those that order
rows, then those of arguments and bounds of frames; behind them are the nodes of the least and
greatest values below, and the results.
"""

WHOLE = 0
REAL = 1
COUNTED = 2

KIND = 0
FIRST = 1
LIMBS = 2
BASE = 3
WORD = 4
MEASURE_FIELDS = 5
"""Of each measure, which is an argument that is added up: the kind of its numbers, the column of
sums where it begins, the number of limbs, the power of two of the first one, and the column of
nodes with its words: whether it is NULL, then the number in two words. One that is only
counted has no limbs, and no words of a number.
"""

POSITIVE = 0
NEGATIVE = 1
UNDEFINED = 2
COUNT = 3
HEAD = 4
"""What precedes the limbs of a sum: how many infinities of either sign, NaN, and values."""

BEST = 0
VALUE = 1
LEAST = 2
EXTREME_FIELDS = 3
"""Of each least or greatest value: the columns of nodes with the node that has it, and with
whether the value is NULL, then its code; and whether it is the least.
"""


class FramedTrees(NamedTuple):
    """The nodes of all groups and the sums below each, roots, counters, and scratch: a way down."""

    nodes: Table
    sums: Table
    roots: Integers
    meta: Integers
    path: Integers


class Subjects(NamedTuple):
    """What is kept of arguments, and the number of words that order rows."""

    measures: Table
    extremes: Table
    order: int


class FramedChanges(NamedTuple):
    """The words of the changes of a batch, and where the values of each will be.

    ``reach`` has for each bound of a frame the key up to which a change matters.
    """

    words: Table
    places: Integers
    reach: Table


@inline
def add_value(sums, row, first, nodes, node, measure, sign):
    """Add the value of a node to a sum, which begins at a column, or take it away."""
    word = measure[WORD]
    if nodes[node, word] != 0:
        return
    sums[row, first + COUNT] += sign
    if measure[KIND] == COUNTED:
        return
    low = nodes[node, word + 1]
    high = nodes[node, word + 2]
    limb = first + HEAD
    if measure[KIND] == WHOLE:
        sums[row, limb] += sign * (low & LOW_BITS)
        if measure[LIMBS] == 2:
            sums[row, limb + 1] += sign * (low >> 32)
        else:
            sums[row, limb + 1] += sign * ((low >> 32) & LOW_BITS)
            sums[row, limb + 2] += sign * (high & LOW_BITS)
            sums[row, limb + 3] += sign * (high >> 32)
    elif ((low >> 52) & 0x7FF) == 0x7FF:
        special = NEGATIVE if low < 0 else POSITIVE
        if (low << 12) != 0:
            special = UNDEFINED
        sums[row, first + special] += sign
    else:
        base = measure[BASE] - 32 * limb
        add_bits(sums, sums, row, low, sign, base)
        add_bits(sums, sums, row, high, sign, base)


@inline
def add_row(sums, row, nodes, node, measures, sign):
    """Add the values of a node to a row of sums, or take them away."""
    for m in range(measures.shape[0]):
        add_value(sums, row, measures[m, FIRST], nodes, node, measures[m], sign)


@inline
def add_sums(sums, row, other, sign):
    """Add a row of sums to another one, or take it away."""
    for column in range(sums.shape[1]):
        sums[row, column] += sign * sums[other, column]


@inline
def better(nodes, one, other, extreme):
    """Return which of two nodes has the least or greatest value; either may be none."""
    if one == NONE:
        return other
    if other == NONE:
        return one
    first = nodes[one, extreme[VALUE] + 1]
    second = nodes[other, extreme[VALUE] + 1]
    if first == second:
        return one
    return one if (first < second) == (extreme[LEAST] == 1) else other


@inline
def own_best(nodes, node, extreme):
    """Return a node if it has a value, otherwise none."""
    return node if nodes[node, extreme[VALUE]] == 0 else NONE


@inline
def best_below(nodes, node, extreme):
    """Return the node that has the least or greatest value of a subtree."""
    return nodes[node, extreme[BEST]] if node != NONE else NONE


@inline
def update_best(nodes, node, extremes):
    """Find the least and greatest values below a node again."""
    for e in range(extremes.shape[0]):
        best = better(
            nodes,
            own_best(nodes, node, extremes[e]),
            best_below(nodes, nodes[node, LEFT], extremes[e]),
            extremes[e],
        )
        best = better(nodes, best, best_below(nodes, nodes[node, RIGHT], extremes[e]), extremes[e])
        nodes[node, extremes[e, BEST]] = best


@inline
def update_node(trees, subjects, node):
    """Find again what is kept of the rows below a node."""
    nodes, sums, _, _, _ = trees
    left = nodes[node, LEFT]
    right = nodes[node, RIGHT]
    nodes[node, SIZE] = size_of(nodes, left) + size_of(nodes, right) + 1
    for column in range(sums.shape[1]):
        total = sums[left, column] if left != NONE else 0
        sums[node, column] = total + (sums[right, column] if right != NONE else 0)
    add_row(sums, node, nodes, node, subjects.measures, 1)
    update_best(nodes, node, subjects.extremes)


@inline
def new_node(trees, subjects, rows, row):
    """Return a node for a row that is in no tree yet."""
    nodes, _, _, meta, _ = trees
    new = meta[FREE]
    if new == NONE:
        new = meta[USED]
        meta[USED] += 1
    else:
        meta[FREE] = nodes[new, LEFT]
    meta[LIVE] += 1
    nodes[new, PLACE] = rows.places[row]
    nodes[new, LEFT] = NONE
    nodes[new, RIGHT] = NONE
    nodes[new, FRESH] = 1
    for word in range(rows.words.shape[1]):
        nodes[new, WORDS + word] = rows.words[row, word]
    update_node(trees, subjects, new)
    return new


@inline
def link_neighbors(nodes, before, after):
    """Make two nodes neighbors; either may be none."""
    if before != NONE:
        nodes[before, AFTER] = after
    if after != NONE:
        nodes[after, BEFORE] = before


@inline
def insert_framed(trees, subjects, group, rows, row):
    """Put a row into its group, behind equal rows."""
    nodes, sums, roots, _, path = trees
    extremes = subjects.extremes
    new = new_node(trees, subjects, rows, row)
    before = NONE
    after = NONE
    depth = 0
    node = roots[group]
    while node != NONE:
        nodes[node, SIZE] += 1
        add_row(sums, node, nodes, new, subjects.measures, 1)
        for e in range(extremes.shape[0]):
            best = better(
                nodes, nodes[node, extremes[e, BEST]], nodes[new, extremes[e, BEST]], extremes[e]
            )
            nodes[node, extremes[e, BEST]] = best
        if compare_words(nodes, node, rows.words, row, subjects.order) < 0:
            path[depth] = 2 * node + 1
            after = node
            node = nodes[node, LEFT]
        else:
            path[depth] = 2 * node
            before = node
            node = nodes[node, RIGHT]
        depth += 1
    link_neighbors(nodes, before, new)
    link_neighbors(nodes, new, after)
    while depth > 0 and goes_above(new, path[depth - 1] >> 1):
        depth -= 1
        parent = path[depth] >> 1
        if path[depth] & 1:
            nodes[parent, LEFT] = nodes[new, RIGHT]
            nodes[new, RIGHT] = parent
        else:
            nodes[parent, RIGHT] = nodes[new, LEFT]
            nodes[new, LEFT] = parent
        update_node(trees, subjects, parent)
    update_node(trees, subjects, new)
    if depth == 0:
        roots[group] = new
    else:
        nodes[path[depth - 1] >> 1, LEFT if path[depth - 1] & 1 else RIGHT] = new


@inline
def attach(nodes, roots, group, holder, node):
    """Put a subtree where ``holder`` says: twice a node and 1 for its left; -1 for the root."""
    if holder < 0:
        roots[group] = node
    elif holder & 1:
        nodes[holder >> 1, LEFT] = node
    else:
        nodes[holder >> 1, RIGHT] = node


@inline
def remove_framed(trees, subjects, group, rows, row):
    """Take a row, which is there, out of its group; returns its node, which keeps its results."""
    nodes, sums, roots, meta, path = trees
    extremes = subjects.extremes
    depth = 0
    node = roots[group]
    while True:
        order = compare_words(nodes, node, rows.words, row, subjects.order)
        if order == 0:
            break
        path[depth] = 2 * node + (1 if order < 0 else 0)
        depth += 1
        node = nodes[node, LEFT] if order < 0 else nodes[node, RIGHT]
    for at in range(depth):
        nodes[path[at] >> 1, SIZE] -= 1
        add_row(sums, path[at] >> 1, nodes, node, subjects.measures, -1)
    holder = path[depth - 1] if depth > 0 else np.int64(-1)
    left = nodes[node, LEFT]
    right = nodes[node, RIGHT]
    while left != NONE and right != NONE:
        upper = left if goes_above(left, right) else right
        lower = right if upper == left else left
        nodes[upper, SIZE] += nodes[lower, SIZE]
        add_sums(sums, upper, lower, 1)
        for e in range(extremes.shape[0]):
            column = extremes[e, BEST]
            best = better(nodes, nodes[upper, column], nodes[lower, column], extremes[e])
            nodes[upper, column] = best
        attach(nodes, roots, group, holder, upper)
        if upper == left:
            holder = 2 * upper
            left = nodes[upper, RIGHT]
        else:
            holder = 2 * upper + 1
            right = nodes[upper, LEFT]
    attach(nodes, roots, group, holder, left if left != NONE else right)
    if extremes.shape[0] > 0:
        for at in range(depth - 1, -1, -1):
            update_best(nodes, path[at] >> 1, extremes)
    link_neighbors(nodes, nodes[node, BEFORE], nodes[node, AFTER])
    nodes[node, SIZE] = 0
    nodes[node, LEFT] = meta[FREE]
    meta[FREE] = node
    meta[LIVE] -= 1
    return node
