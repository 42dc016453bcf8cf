"""Ranks, rows and aggregates of ranges of ranks, in the trees of :mod:`muntin.kernels.framed_rows`.

Each is found on one way down, O(log n) for n rows of a group.
"""

from __future__ import annotations

from muntin.kernels.framed_rows import (
    FIRST,
    HEAD,
    LIMBS,
    WORDS,
    add_value,
    best_below,
    better,
    own_best,
)
from muntin.kernels.jit import inline
from muntin.kernels.order_statistics import LEFT, NONE, RIGHT
from muntin.kernels.ranked_rows import size_of


@inline
def rank_by(nodes, root, key, count, behind):
    """Return how many rows have words before ``key``; with ``behind``, those equal to it too."""
    rank = 0
    node = root
    while node != NONE:
        order = 0
        for word in range(count):
            if key[word] != nodes[node, WORDS + word]:
                order = -1 if key[word] < nodes[node, WORDS + word] else 1
                break
        if order > 0 or (order == 0 and behind):
            rank += size_of(nodes, nodes[node, LEFT]) + 1
            node = nodes[node, RIGHT]
        else:
            node = nodes[node, LEFT]
    return rank


@inline
def node_at(nodes, root, rank):
    """Return the node of a rank, which is there."""
    node = root
    while True:
        before = size_of(nodes, nodes[node, LEFT])
        if rank < before:
            node = nodes[node, LEFT]
        elif rank == before:
            return node
        else:
            rank -= before + 1
            node = nodes[node, RIGHT]


@inline
def best_between(nodes, root, low, high, extreme):
    """Return the node with the least or greatest value from one rank to another, or none."""
    base = 0
    node = root
    while node != NONE:
        rank = base + size_of(nodes, nodes[node, LEFT])
        if high < rank:
            node = nodes[node, LEFT]
        elif low > rank:
            base = rank + 1
            node = nodes[node, RIGHT]
        else:
            break
    if node == NONE:
        return node
    top = base + size_of(nodes, nodes[node, LEFT])
    best = own_best(nodes, node, extreme)
    below = nodes[node, LEFT]
    while below != NONE:  # what is behind `low` on the left
        rank = base + size_of(nodes, nodes[below, LEFT])
        if low <= rank:
            best = better(nodes, best, own_best(nodes, below, extreme), extreme)
            best = better(nodes, best, best_below(nodes, nodes[below, RIGHT], extreme), extreme)
            below = nodes[below, LEFT]
        else:
            base = rank + 1
            below = nodes[below, RIGHT]
    base = top + 1
    below = nodes[node, RIGHT]
    while below != NONE:  # and what is before `high` on the right
        rank = base + size_of(nodes, nodes[below, LEFT])
        if high >= rank:
            best = better(nodes, best, own_best(nodes, below, extreme), extreme)
            best = better(nodes, best, best_below(nodes, nodes[below, LEFT], extreme), extreme)
            base = rank + 1
            below = nodes[below, RIGHT]
        else:
            below = nodes[below, LEFT]
    return best


@inline
def add_subtree(trees, node, measure, sums, row):
    """Add what a measure is below a node, which may be none, to a sum."""
    if node != NONE:
        first = measure[FIRST]
        for column in range(HEAD + measure[LIMBS]):
            sums[row, column] += trees.sums[node, first + column]


@inline
def sum_between(trees, root, low, high, measure, sums, row):
    """Add what a measure is from one rank to another, which are there, to a sum."""
    nodes = trees.nodes
    base = 0
    node = root
    while True:
        rank = base + size_of(nodes, nodes[node, LEFT])
        if high < rank:
            node = nodes[node, LEFT]
        elif low > rank:
            base = rank + 1
            node = nodes[node, RIGHT]
        else:
            break
    add_value(sums, row, 0, nodes, node, measure, 1)
    top = base + size_of(nodes, nodes[node, LEFT])
    below = nodes[node, LEFT]
    while below != NONE:
        rank = base + size_of(nodes, nodes[below, LEFT])
        if low <= rank:
            add_value(sums, row, 0, nodes, below, measure, 1)
            add_subtree(trees, nodes[below, RIGHT], measure, sums, row)
            below = nodes[below, LEFT]
        else:
            base = rank + 1
            below = nodes[below, RIGHT]
    base = top + 1
    below = nodes[node, RIGHT]
    while below != NONE:
        rank = base + size_of(nodes, nodes[below, LEFT])
        if high >= rank:
            add_value(sums, row, 0, nodes, below, measure, 1)
            add_subtree(trees, nodes[below, LEFT], measure, sums, row)
            base = rank + 1
            below = nodes[below, RIGHT]
        else:
            below = nodes[below, LEFT]
