"""The rows of each group in an order of several words: insert, remove, the row of a rank.

Rows are nodes of treaps as in :mod:`muntin.kernels.order_statistics`, all in one pool, compared
word by word. Equal rows share a node that counts them. A removed node stays readable until the end
of the run, when :func:`release_rows` frees it: results of the run may still name it.
O(log n) per operation for n rows of a group.
"""

from __future__ import annotations

from typing import NamedTuple

from muntin.kernels.arrays import Integers, Table
from muntin.kernels.jit import inline
from muntin.kernels.order_statistics import (
    COUNT,
    FREE,
    LEFT,
    LIVE,
    NONE,
    RIGHT,
    SIZE,
    USED,
    goes_above,
    unlink_node,
    update_size,
)

PLACE = 0
NET = 5
LISTED = 6
WORDS = 7
"""Of each node: where its values are, its net change in the run, whether it is listed, its words.

The other fields are those of :mod:`muntin.kernels.order_statistics`.
"""


class RankedTrees(NamedTuple):
    """The nodes of all groups, the root of each group, counters, and scratch for a way down."""

    nodes: Table
    roots: Integers
    meta: Integers
    path: Integers


class WordRows(NamedTuple):
    """The words of the changes of a batch, and where the values of each will be."""

    words: Table
    places: Integers


@inline
def compare_words(nodes, node, words, row, count):
    """Return -1, 0 or 1 as a row is before, equal to or after a node in its first words."""
    for word in range(count):
        one = words[row, word]
        other = nodes[node, WORDS + word]
        if one != other:
            return -1 if one < other else 1
    return 0


@inline
def compare_nodes(nodes, one, other, count):
    """Return -1, 0 or 1 as a node is before, equal to or after another one in its first words."""
    for word in range(WORDS, WORDS + count):
        if nodes[one, word] != nodes[other, word]:
            return -1 if nodes[one, word] < nodes[other, word] else 1
    return 0


@inline
def size_of(nodes, node):
    """Return the number of rows in a tree."""
    return nodes[node, SIZE] if node != NONE else 0


@inline
def insert_row(trees, group, rows, row):
    """Put a row into its group; returns its node and its rank, behind equal rows."""
    nodes, roots, meta, path = trees
    words = rows.words
    depth = 0
    rank = 0
    node = roots[group]
    while node != NONE:
        nodes[node, SIZE] += 1
        order = compare_words(nodes, node, words, row, words.shape[1])
        before = size_of(nodes, nodes[node, LEFT])
        if order == 0:
            nodes[node, COUNT] += 1
            return node, rank + before + nodes[node, COUNT] - 1
        if order < 0:
            path[depth] = 2 * node + 1
            node = nodes[node, LEFT]
        else:
            path[depth] = 2 * node
            rank += before + nodes[node, COUNT]
            node = nodes[node, RIGHT]
        depth += 1
    new = meta[FREE]
    if new == NONE:
        new = meta[USED]
        meta[USED] += 1
    else:
        meta[FREE] = nodes[new, LEFT]
    meta[LIVE] += 1
    nodes[new, PLACE] = rows.places[row]
    nodes[new, COUNT] = 1
    nodes[new, SIZE] = 1
    nodes[new, LEFT] = NONE
    nodes[new, RIGHT] = NONE
    nodes[new, NET] = 0
    nodes[new, LISTED] = 0
    for word in range(words.shape[1]):
        nodes[new, WORDS + word] = words[row, word]
    while depth > 0 and goes_above(new, path[depth - 1] >> 1):
        depth -= 1
        parent = path[depth] >> 1
        if path[depth] & 1:
            nodes[parent, LEFT] = nodes[new, RIGHT]
            nodes[new, RIGHT] = parent
        else:
            nodes[parent, RIGHT] = nodes[new, LEFT]
            nodes[new, LEFT] = parent
        update_size(nodes, parent)
        update_size(nodes, new)
    if depth == 0:
        roots[group] = new
    else:
        nodes[path[depth - 1] >> 1, LEFT if path[depth - 1] & 1 else RIGHT] = new
    return new, rank


@inline
def remove_row(trees, group, rows, row):
    """Take a row, which is there, out of its group; returns its node and the rank it had."""
    nodes, roots, _, _ = trees
    parent = NONE
    left = False
    rank = 0
    node = roots[group]
    while True:
        nodes[node, SIZE] -= 1
        order = compare_words(nodes, node, rows.words, row, rows.words.shape[1])
        before = size_of(nodes, nodes[node, LEFT])
        if order == 0:
            break
        parent = node
        left = order < 0
        rank += 0 if left else before + nodes[node, COUNT]
        node = nodes[node, LEFT] if left else nodes[node, RIGHT]
    rank += before + nodes[node, COUNT] - 1
    nodes[node, COUNT] -= 1
    if nodes[node, COUNT] == 0:
        unlink_node(nodes, roots, group, parent, left, node)
    return node, rank


@inline
def node_of_rank(nodes, root, rank):
    """Return the node of a rank, which is there."""
    node = root
    while True:
        before = size_of(nodes, nodes[node, LEFT])
        if rank < before:
            node = nodes[node, LEFT]
        elif rank < before + nodes[node, COUNT]:
            return node
        else:
            rank -= before + nodes[node, COUNT]
            node = nodes[node, RIGHT]


@inline
def list_node(nodes, node, touched, count):
    """Note that a run has touched a node; returns how many are noted."""
    if nodes[node, LISTED] == 0:
        nodes[node, LISTED] = 1
        touched[count] = node
        count += 1
    return count


@inline
def release_rows(trees, touched, count):
    """Free the nodes that a run has left without rows, and forget which ones it has touched."""
    nodes, _, meta, _ = trees
    for at in range(count):
        node = touched[at]
        nodes[node, NET] = 0
        nodes[node, LISTED] = 0
        if nodes[node, COUNT] == 0:
            nodes[node, LEFT] = meta[FREE]
            meta[FREE] = node
            meta[LIVE] -= 1
