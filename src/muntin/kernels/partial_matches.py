"""The partial matches of a join tree: rows of row numbers, chained per bucket from new to old.

A node is a segment of ``members``, its chains one of ``links``; a link or a head is a slot plus
one, 0 for none. :mod:`muntin.kernels.layout` defines the fields of a node. Storing and removing the
last partial match are O(1); :func:`drop_dead` looks at all partial matches of a node.
"""

from __future__ import annotations

import numpy as np

from muntin.kernels.arrays import Arena, Integers, TreeNodes
from muntin.kernels.jit import inline, kernel
from muntin.kernels.layout import (
    NODE_BUCKETS,
    NODE_CAP,
    NODE_HEADS,
    NODE_KEY_COUNT,
    NODE_LINKS,
    NODE_MEMBERS,
    NODE_SOURCES,
    NODE_USED,
    NODE_WIDTH,
    TAIL,
)
from muntin.kernels.rows import (
    bucket_of,
    dead,
    mix,
    row_address,
)


@inline
def partial_match_bucket(arena, tree, node, slot):
    """Return the bucket of a stored partial match; its members are still in their rings."""
    words, stores, nodes, members = arena.words, arena.stores, tree.nodes, tree.members
    sources = NODE_SOURCES + stores.shape[0]
    first = nodes[node, NODE_MEMBERS] + slot * nodes[node, NODE_WIDTH]
    hashed = np.uint64(0)
    for c in range(nodes[node, NODE_KEY_COUNT]):
        at = sources + 2 * c
        member = nodes[node, at]
        s = nodes[node, NODE_SOURCES + member]
        code = words[row_address(stores, s, members[first + member]) + nodes[node, at + 1]]
        hashed = mix(np.int64(hashed) ^ code)
    return bucket_of(hashed, np.int64(0), np.int64(0), nodes[node, NODE_BUCKETS])


@inline
def alive(arena, tree, node, slot, limits):
    """Return whether all members of a partial match are inside their windows."""
    stores, nodes = arena.stores, tree.nodes
    first = nodes[node, NODE_MEMBERS] + slot * nodes[node, NODE_WIDTH]
    for member in range(nodes[node, NODE_WIDTH]):
        s = nodes[node, NODE_SOURCES + member]
        seq = tree.members[first + member]
        if seq < stores[s, TAIL] or dead(
            arena.words, stores, s, row_address(stores, s, seq), limits[s]
        ):
            return False
    return True


@inline
def link_partial_match(arena, tree, node, slot):
    """Make a partial match the head of its bucket."""
    nodes, links = tree.nodes, tree.links
    head = nodes[node, NODE_HEADS] + partial_match_bucket(arena, tree, node, slot)
    links[nodes[node, NODE_LINKS] + slot] = links[head]
    links[head] = np.int32(slot + 1)


@inline
def keep_partial_match(arena, tree, node, rows):
    """Store the rows bound so far in a node; return False when it is full."""
    nodes = tree.nodes
    slot = nodes[node, NODE_USED]
    if slot == nodes[node, NODE_CAP]:
        return False
    first = nodes[node, NODE_MEMBERS] + slot * nodes[node, NODE_WIDTH]
    for member in range(nodes[node, NODE_WIDTH]):
        tree.members[first + member] = rows[nodes[node, NODE_SOURCES + member]]
    nodes[node, NODE_USED] = slot + 1
    link_partial_match(arena, tree, node, slot)
    return True


@inline
def undo(arena, tree, marks):
    """Remove the partial matches that were made since ``marks``."""
    nodes, links = tree.nodes, tree.links
    for node in range(nodes.shape[0]):
        while nodes[node, NODE_USED] > marks[node]:
            slot = nodes[node, NODE_USED] - 1
            head = nodes[node, NODE_HEADS] + partial_match_bucket(arena, tree, node, slot)
            links[head] = links[nodes[node, NODE_LINKS] + slot]
            nodes[node, NODE_USED] = slot


@kernel(Arena, TreeNodes, Integers, int)
def drop_dead(arena, tree, limits, node):
    """Move the live partial matches of a node together, in order; return how many there are.

    Their chains are to be made again.
    """
    nodes, members = tree.nodes, tree.members
    width = nodes[node, NODE_WIDTH]
    base = nodes[node, NODE_MEMBERS]
    kept = np.int64(0)
    for slot in range(nodes[node, NODE_USED]):
        if alive(arena, tree, node, slot, limits):
            for member in range(width):
                members[base + kept * width + member] = members[base + slot * width + member]
            kept += 1
    nodes[node, NODE_USED] = kept
    return kept


@kernel(Arena, TreeNodes, int)
def link_partial_matches(arena, tree, node):
    """Chain all partial matches of a node, whose heads are empty."""
    for slot in range(tree.nodes[node, NODE_USED]):
        link_partial_match(arena, tree, node, slot)
