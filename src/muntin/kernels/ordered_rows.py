"""The rows of each key in an order of several words: a treap whose nodes know their neighbors.

A node's priority is a hash of its number, so trees are as deep as random ones. A row that comes
behind all others or before them, as rows of streams do, is attached without a search; others are
looked for from the last node, O(log d) for d rows in between. Nodes know their parents, so a row is
taken out without a search: O(1) rotations on average either way.
"""

from __future__ import annotations

from muntin.kernels.jit import inline
from muntin.kernels.order_statistics import goes_above

NONE = -1

PARENT = 0
BELOW = 1
ABOVE = 2
PREVIOUS = 3
NEXT = 4
LINKS = 5
"""Of each node: its parent, its lower and upper child, and its neighbors in the order."""

ROOT = 0
FIRST = 1
LAST = 2
ENDS = 3
"""Of each key: the root of its tree, and its first and last node."""


@inline
def is_before(nodes, one, other, first):
    """Return whether a node's words, from field ``first`` on, are less than those of another."""
    for word in range(first, nodes.shape[1]):
        if nodes[one, word] != nodes[other, word]:
            return nodes[one, word] < nodes[other, word]
    return False


@inline
def replace_child(nodes, keys, key, parent, child, other):
    """Put another node, or none, in the place of a child; the root if there is no parent."""
    if parent == NONE:
        keys[key, ROOT] = other
    elif nodes[parent, BELOW] == child:
        nodes[parent, BELOW] = other
    else:
        nodes[parent, ABOVE] = other
    if other != NONE:
        nodes[other, PARENT] = parent


@inline
def rotate_up(nodes, keys, key, node):
    """Exchange a node with its parent, which keeps the order."""
    parent = nodes[node, PARENT]
    replace_child(nodes, keys, key, nodes[parent, PARENT], parent, node)
    if nodes[parent, BELOW] == node:
        inner = nodes[node, ABOVE]
        nodes[parent, BELOW] = inner
        nodes[node, ABOVE] = parent
    else:
        inner = nodes[node, BELOW]
        nodes[parent, ABOVE] = inner
        nodes[node, BELOW] = parent
    if inner != NONE:
        nodes[inner, PARENT] = parent
    nodes[parent, PARENT] = node


@inline
def link_above(nodes, keys, key, parent, node):
    """Attach a node as the upper child of one that has none: it comes right behind it."""
    after = nodes[parent, NEXT]
    nodes[parent, ABOVE] = node
    nodes[parent, NEXT] = node
    nodes[node, PREVIOUS] = parent
    nodes[node, NEXT] = after
    if after == NONE:
        keys[key, LAST] = node
    else:
        nodes[after, PREVIOUS] = node


@inline
def link_below(nodes, keys, key, parent, node):
    """Attach a node as the lower child of one that has none: it comes right before it."""
    before = nodes[parent, PREVIOUS]
    nodes[parent, BELOW] = node
    nodes[parent, PREVIOUS] = node
    nodes[node, NEXT] = parent
    nodes[node, PREVIOUS] = before
    if before == NONE:
        keys[key, FIRST] = node
    else:
        nodes[before, NEXT] = node


@inline
def insert_node(nodes, keys, key, node, words):
    """Put a node into the order of a key, behind those with equal words from field ``words`` on."""
    nodes[node, BELOW] = NONE
    nodes[node, ABOVE] = NONE
    at = keys[key, LAST]
    if at == NONE:
        nodes[node, PARENT] = NONE
        nodes[node, PREVIOUS] = NONE
        nodes[node, NEXT] = NONE
        keys[key, ROOT] = node
        keys[key, FIRST] = node
        keys[key, LAST] = node
        return
    if is_before(nodes, node, keys[key, FIRST], words):
        at = keys[key, FIRST]
    else:
        while is_before(nodes, node, at, words) and nodes[at, PARENT] != NONE:
            at = nodes[at, PARENT]
    while True:
        goes_below = is_before(nodes, node, at, words)
        child = nodes[at, BELOW] if goes_below else nodes[at, ABOVE]
        if child == NONE:
            break
        at = child
    nodes[node, PARENT] = at
    if goes_below:
        link_below(nodes, keys, key, at, node)
    else:
        link_above(nodes, keys, key, at, node)
    while nodes[node, PARENT] != NONE and goes_above(node, nodes[node, PARENT]):
        rotate_up(nodes, keys, key, node)


@inline
def remove_node(nodes, keys, key, node):
    """Take a node out of the order of a key."""
    below = nodes[node, BELOW]
    above = nodes[node, ABOVE]
    while below != NONE and above != NONE:
        rotate_up(nodes, keys, key, below if goes_above(below, above) else above)
        below = nodes[node, BELOW]
        above = nodes[node, ABOVE]
    child = below if below != NONE else above
    replace_child(nodes, keys, key, nodes[node, PARENT], node, child)
    before = nodes[node, PREVIOUS]
    after = nodes[node, NEXT]
    if before == NONE:
        keys[key, FIRST] = after
    else:
        nodes[before, NEXT] = after
    if after == NONE:
        keys[key, LAST] = before
    else:
        nodes[after, PREVIOUS] = before
