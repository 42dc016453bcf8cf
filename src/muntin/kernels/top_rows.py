"""The first rows of each group, in an order of their words, as changes from instant to instant.

:func:`cut_slots` has rows enter and leave a span of ranks; :func:`number_slots` gives each row its
number too. Both take the changes of one instant as a unit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muntin.kernels.arrays import Integers, SlotArrays, Table
from muntin.kernels.jit import inline, kernel
from muntin.kernels.order_statistics import COUNT, LEFT, NONE, RIGHT
from muntin.kernels.ranked_rows import (
    NET,
    PLACE,
    RankedTrees,
    WordRows,
    compare_nodes,
    compare_words,
    insert_row,
    list_node,
    node_of_rank,
    release_rows,
    remove_row,
    size_of,
)

ROW_NUMBER = 0
RANK = 1
DENSE_RANK = 2

ROW = 0
SPOT = 1
SIGN = 2
NUMBER = 3
OUT_FIELDS = 4
"""Of each result: a change of its instant, the place of its values, its sign, its number."""


class RankRange(NamedTuple):
    """The ranks that are kept, from ``start`` to ``stop - 1``."""

    start: int
    stop: int


class Numbering(NamedTuple):
    """How rows are numbered: the kind, the words that order peers, and the greatest number kept."""

    kind: int
    peers: int
    bound: int


class Scratch(NamedTuple):
    """Memory of a call.

    Touched nodes; per group the first rank that a run may change; per slot where its rows before
    the run are listed; and those lists, a node and a number each.
    """

    touched: Integers
    lows: Integers
    starts: Integers
    listed: Table


@inline
def note_change(nodes, node, sign, touched, count):
    """Add to the net change of a node in the run; returns how many nodes are noted."""
    nodes[node, NET] += sign
    return list_node(nodes, node, touched, count)


@inline
def write_result(out, written, row, place, sign, number):
    """Write a result; returns how many there are."""
    out[written, ROW] = row
    out[written, SPOT] = place
    out[written, SIGN] = sign
    out[written, NUMBER] = number
    return written + 1


@kernel(SlotArrays, Integers, WordRows, RankedTrees, RankRange, Integers, Table, part="top rows")
def cut_slots(slots, weights, rows, trees, span, touched, out):
    """Apply changes, and write which rows enter and leave the span; returns how many do.

    A change moves every later row by one rank, so at most one row passes each end of the span.
    """
    groups, run_rows, _, _ = slots
    nodes, roots, _, _ = trees
    start, stop = span
    written = 0
    for run in range(run_rows.shape[0] - 1):
        count = 0
        for i in range(run_rows[run], run_rows[run + 1]):
            group = groups[i]
            if weights[i] > 0:
                node, rank = insert_row(trees, group, rows, i)
                root = roots[group]
                if rank < stop:
                    size = size_of(nodes, root)
                    if size > stop:
                        out_node = node_of_rank(nodes, root, stop)
                        count = note_change(nodes, out_node, -1, touched, count)
                    if rank >= start:
                        count = note_change(nodes, node, 1, touched, count)
                    elif size > start:
                        in_node = node_of_rank(nodes, root, start)
                        count = note_change(nodes, in_node, 1, touched, count)
            elif weights[i] < 0:
                node, rank = remove_row(trees, group, rows, i)
                count = list_node(nodes, node, touched, count)
                root = roots[group]
                if rank < stop:
                    size = size_of(nodes, root)
                    if rank >= start:
                        nodes[node, NET] -= 1
                    elif size >= start:
                        out_node = node_of_rank(nodes, root, start - 1)
                        count = note_change(nodes, out_node, -1, touched, count)
                    if size >= stop:
                        in_node = node_of_rank(nodes, root, stop - 1)
                        count = note_change(nodes, in_node, 1, touched, count)
        for sign in (-1, 1):
            for at in range(count):
                node = touched[at]
                for _ in range(sign * nodes[node, NET]):
                    written = write_result(out, written, run_rows[run], nodes[node, PLACE], sign, 0)
        release_rows(trees, touched, count)
    return np.int64(written)


@inline
def first_rank(trees, group, rows, row, numbering):
    """Return the first rank of a group that a change of a row may number anew."""
    nodes, roots, _, _ = trees
    if numbering.kind == DENSE_RANK:
        return 0
    count = rows.words.shape[1] if numbering.kind == ROW_NUMBER else numbering.peers
    rank = 0
    node = roots[group]
    while node != NONE:
        if compare_words(nodes, node, rows.words, row, count) > 0:
            rank += size_of(nodes, nodes[node, LEFT]) + nodes[node, COUNT]
            node = nodes[node, RIGHT]
        else:
            node = nodes[node, LEFT]
    return rank


@inline
def list_numbered(trees, root, low, numbering, listed, end):
    """List the rows of a tree from a rank on with their numbers; returns where the list ends."""
    nodes, _, _, path = trees
    kind, peers, bound = numbering
    depth = 0
    skipped = low
    node = root
    while node != NONE:  # the way to the rank; nodes whose left part is left out stay on the path
        before = size_of(nodes, nodes[node, LEFT])
        if skipped < before:
            path[depth] = node
            depth += 1
            node = nodes[node, LEFT]
        elif skipped == before:
            path[depth] = node
            depth += 1
            node = NONE
        else:
            skipped -= before + nodes[node, COUNT]
            node = nodes[node, RIGHT]
    position = low
    number = low
    last = NONE
    while depth > 0:
        depth -= 1
        node = path[depth]
        fresh = last == NONE or compare_nodes(nodes, last, node, peers) != 0
        if kind == DENSE_RANK and fresh:
            number += 1
        elif kind == RANK and fresh:
            number = position + 1
        for _ in range(nodes[node, COUNT]):
            position += 1
            if kind == ROW_NUMBER:
                number = position
            if number > bound:
                return end
            listed[end, 0] = node
            listed[end, 1] = number
            end += 1
        last = node
        node = nodes[node, RIGHT]
        while node != NONE:
            path[depth] = node
            depth += 1
            node = nodes[node, LEFT]
    return end


@inline
def write_differences(nodes, words, listed, before, after, out, written, row):
    """Write what differs between two lists in order; returns how many results there are."""
    one, middle = before
    other, end = after
    while one < middle or other < end:
        if one == middle:
            order = 1
        elif other == end:
            order = -1
        else:
            order = compare_nodes(nodes, listed[one, 0], listed[other, 0], words)
        if order == 0 and listed[one, 1] == listed[other, 1]:
            one += 1
            other += 1
            continue
        if order <= 0:
            place = nodes[listed[one, 0], PLACE]
            written = write_result(out, written, row, place, -1, listed[one, 1])
            one += 1
        if order >= 0:
            place = nodes[listed[other, 0], PLACE]
            written = write_result(out, written, row, place, 1, listed[other, 1])
            other += 1
    return written


@inline
def room_for(slots, trees, run, numbering):
    """Return an upper bound of the rows that a run lists, before and after it together."""
    _, run_rows, run_slots, slot_groups = slots
    total = 0
    for slot in range(run_slots[run], run_slots[run + 1]):
        size = size_of(trees.nodes, trees.roots[slot_groups[slot]])
        total += min(size, numbering.bound) if numbering.kind == ROW_NUMBER else size
    return 2 * (total + run_rows[run + 1] - run_rows[run])


@kernel(
    SlotArrays, Integers, WordRows, RankedTrees, Numbering, int, Scratch, Table, part="top rows"
)
def number_slots(slots, weights, rows, trees, numbering, first, scratch, out):
    """Apply changes, and write the rows whose numbers change, with the old and the new ones.

    Returns the run at which ``out`` became too small (or the number of runs), how many results
    there are, and the room that the run needs; the next call resumes there.
    """
    groups, run_rows, run_slots, slot_groups = slots
    nodes, roots, _, _ = trees
    touched, lows, starts, listed = scratch
    words = rows.words.shape[1]
    written = 0
    for run in range(first, run_rows.shape[0] - 1):
        room = room_for(slots, trees, run, numbering)
        if written + room > out.shape[0] or room > listed.shape[0]:
            return np.int64(run), np.int64(written), np.int64(room)
        for slot in range(run_slots[run], run_slots[run + 1]):
            lows[slot_groups[slot]] = size_of(nodes, roots[slot_groups[slot]])
        for i in range(run_rows[run], run_rows[run + 1]):
            rank = first_rank(trees, groups[i], rows, i, numbering)
            lows[groups[i]] = min(lows[groups[i]], rank)
        end = 0
        for slot in range(run_slots[run], run_slots[run + 1]):
            group = slot_groups[slot]
            starts[slot] = end
            end = list_numbered(trees, roots[group], lows[group], numbering, listed, end)
        starts[run_slots[run + 1]] = end
        count = 0
        for i in range(run_rows[run], run_rows[run + 1]):
            if weights[i] > 0:
                insert_row(trees, groups[i], rows, i)
            elif weights[i] < 0:
                node, _ = remove_row(trees, groups[i], rows, i)
                count = list_node(nodes, node, touched, count)
        for slot in range(run_slots[run], run_slots[run + 1]):
            group = slot_groups[slot]
            stop = list_numbered(trees, roots[group], lows[group], numbering, listed, end)
            before = (starts[slot], starts[slot + 1])
            written = write_differences(
                nodes, words, listed, before, (end, stop), out, written, run_rows[run]
            )
        release_rows(trees, touched, count)
    return np.int64(run_rows.shape[0] - 1), np.int64(written), np.int64(0)
