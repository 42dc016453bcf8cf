"""The rows of each group in order, as doubly linked lists, written out before and after each run.

Cost: O(1) per row that comes last or leaves first, else O(n) for n rows of the group; and O(n) per
slot, since the list itself is the result.
"""

from __future__ import annotations

from muntin.kernels.arrays import Integers, ListArrays, SlotArrays
from muntin.kernels.jit import inline, kernel

NONE = -1
GONE = -2
"""Where a place without a row points back to."""
BACK = 0
ON = 1
NUMBER = 2
NODE_FIELDS = 3
FREE = 0
USED = 1
META = 2
FIRST = 0
LAST = 1
END_FIELDS = 2


@inline
def write_list(lists, group, out, place):
    """Write the numbers of the rows of a group from a place on."""
    node = lists.ends[group, FIRST]
    while node != NONE:
        out[place] = lists.nodes[node, NUMBER]
        place += 1
        node = lists.nodes[node, ON]


@inline
def link(lists, group, number):
    """Insert a row behind those whose numbers are not above its own."""
    nodes, ends, meta = lists.nodes, lists.ends, lists.meta
    node = meta[FREE]
    if node == NONE:
        node = meta[USED]
        meta[USED] += 1
    else:
        meta[FREE] = nodes[node, ON]
    before, after = ends[group, LAST], NONE
    while before != NONE and nodes[before, NUMBER] > number:
        after, before = before, nodes[before, BACK]
    nodes[node, BACK], nodes[node, ON], nodes[node, NUMBER] = before, after, number
    if before == NONE:
        ends[group, FIRST] = node
    else:
        nodes[before, ON] = node
    if after == NONE:
        ends[group, LAST] = node
    else:
        nodes[after, BACK] = node


@inline
def unlink(lists, group, number):
    """Remove a row, which is there."""
    nodes, ends, meta = lists.nodes, lists.ends, lists.meta
    node = ends[group, FIRST]
    while nodes[node, NUMBER] != number:
        node = nodes[node, ON]
    before, after = nodes[node, BACK], nodes[node, ON]
    if before == NONE:
        ends[group, FIRST] = after
    else:
        nodes[before, ON] = after
    if after == NONE:
        ends[group, LAST] = before
    else:
        nodes[after, BACK] = before
    nodes[node, BACK], nodes[node, ON] = GONE, meta[FREE]
    meta[FREE] = node


@kernel(SlotArrays, Integers, Integers, ListArrays, Integers, Integers, part="pipelines")
def list_slots(slots, weights, numbers, lists, offsets, out):
    """Apply changes; ``out`` gets the lists of each slot before its run and after it.

    Rows that come are linked before others are removed, so that a row that does both is there.
    ``offsets`` has where each list begins.
    """
    groups, run_rows, run_slots, slot_groups = slots
    for run in range(run_rows.shape[0] - 1):
        for slot in range(run_slots[run], run_slots[run + 1]):
            write_list(lists, slot_groups[slot], out, offsets[2 * slot])
        for i in range(run_rows[run], run_rows[run + 1]):
            if weights[i] > 0:
                link(lists, groups[i], numbers[i])
        for i in range(run_rows[run], run_rows[run + 1]):
            if weights[i] < 0:
                unlink(lists, groups[i], numbers[i])
        for slot in range(run_slots[run], run_slots[run + 1]):
            write_list(lists, slot_groups[slot], out, offsets[2 * slot + 1])
