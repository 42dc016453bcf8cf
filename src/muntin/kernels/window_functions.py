"""The values of window functions, as changes from instant to instant.

:func:`frame_slots` takes the changes of an instant as a unit. A row that comes or goes matters only
to the rows whose frames have it, or whose frames it moves: those are a range of ranks per frame,
found in the order after the changes. Their values are read again and compared with the results that
their nodes have, so what is written has changed. O(log n) per change and per row of these ranges
for n rows of a group; while a frame slides along a range, sums follow it row by row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muntin.kernels.arrays import Integers, RealTable, SlotArrays, Table
from muntin.kernels.exact_sum import LOW_BITS, read_sum
from muntin.kernels.framed_ranges import best_between, node_at, sum_between
from muntin.kernels.framed_rows import (
    AFTER,
    BASE,
    COUNT,
    COUNTED,
    FRESH,
    HEAD,
    KIND,
    LIMBS,
    REAL,
    FramedChanges,
    FramedTrees,
    Subjects,
    add_value,
    insert_framed,
    remove_framed,
)
from muntin.kernels.frames import Calls, find_frame, find_range
from muntin.kernels.jit import inline, kernel
from muntin.kernels.order_statistics import NONE
from muntin.kernels.ranked_rows import PLACE, size_of

NUMBER = 0
SUM = 1
EXTREME = 2
NTH = 3
"""What is read of a frame: its number of rows, a measure, a least or greatest value, a row."""

READING = 0
SUBJECT = 1
FRAME = 2
RESULT = 3
SIZE_OF = 4
ROW_OF = 5
READING_FIELDS = 6
"""Of each reading: its kind; the measure, the least or greatest value, or the column of nodes with
the two words of a value; the frame; where its results are and how many; and which row of the frame,
counted from its beginning, -1 for the last one.
"""

MISSING = -1
"""The place of a value that there is not."""

AT = 0
SPOT = 1
SIGN = 2
RESULTS = 3
"""Of each result: a change of its instant, the place of its row, its sign, then the values."""

LOW = 0
HIGH = 1
LOW_NODE = 2
HIGH_NODE = 3
VALID = 4
CURSOR_FIELDS = 5
"""Of each reading: the frame of its sum, the nodes at both ends, and whether they are known."""

STEPS = 16
"""Rows by which a frame slides; one that moves farther is read anew."""

_RANKS = 32
_MASK = (1 << _RANKS) - 1


class Reader(NamedTuple):
    """Memory of a call.

    Per frame its first and last rank; per reading a cursor and a sum; a sum to be rounded, the
    numbers that come of it, and their bits; the results of a row; a key; and ranges of ranks.
    """

    spans: Table
    cursors: Table
    sums: Table
    limbs: Table
    specials: Table
    carries: Integers
    numbers: RealTable
    bits: Table
    fresh: Integers
    key: Integers
    ranges: Table


@inline
def move_sum(trees, root, reading, measure, span, reader, more):
    """Make the sum of a reading that of a frame; ``more`` if rows behind this one follow."""
    nodes = trees.nodes
    low, high = span
    sums = reader.sums
    cursor = reader.cursors[reading]
    if (
        cursor[VALID] != 0
        and cursor[LOW] <= low <= cursor[HIGH] <= high
        and low - cursor[LOW] + high - cursor[HIGH] <= STEPS
    ):
        while cursor[HIGH] < high:
            cursor[HIGH_NODE] = nodes[cursor[HIGH_NODE], AFTER]
            add_value(sums, reading, 0, nodes, cursor[HIGH_NODE], measure, 1)
            cursor[HIGH] += 1
        while cursor[LOW] < low:
            add_value(sums, reading, 0, nodes, cursor[LOW_NODE], measure, -1)
            cursor[LOW_NODE] = nodes[cursor[LOW_NODE], AFTER]
            cursor[LOW] += 1
        return
    for column in range(sums.shape[1]):
        sums[reading, column] = 0
    cursor[VALID] = 0
    if low <= high:
        sum_between(trees, root, low, high, measure, sums, reading)
        if more:
            cursor[VALID] = 1
            cursor[LOW] = low
            cursor[HIGH] = high
            cursor[LOW_NODE] = node_at(nodes, root, low)
            cursor[HIGH_NODE] = node_at(nodes, root, high)


@inline
def write_sum(reading, measure, at, reader):
    """Write a sum into the results of a row: the number of values, then the words of the sum."""
    sums, fresh = reader.sums, reader.fresh
    fresh[at] = sums[reading, COUNT]
    if measure[KIND] == COUNTED:
        return
    if measure[KIND] == REAL:
        for limb in range(reader.limbs.shape[1]):
            reader.limbs[0, limb] = sums[reading, HEAD + limb]
        for special in range(COUNT):
            reader.specials[0, special] = sums[reading, special]
        read_sum(reader.limbs, reader.specials, 0, reader.carries, measure[BASE], reader.numbers, 0)
        fresh[at + 1] = reader.bits[0, 0]
        fresh[at + 2] = reader.bits[0, 1]
        return
    carry = np.int64(0)
    for word in range(3):
        for half in range(2):
            limb = 2 * word + half
            value = carry
            if limb < measure[LIMBS]:
                value += sums[reading, HEAD + limb]
            if half == 0:
                fresh[at + 1 + word] = value & LOW_BITS
            else:
                fresh[at + 1 + word] |= (value & LOW_BITS) << 32
            carry = value >> 32


@inline
def read_row(trees, subjects, root, calls, reader, more):
    """Read the values of a row, whose frames are known, into ``fresh``."""
    nodes = trees.nodes
    readings, fresh = calls.readings, reader.fresh
    for reading in range(readings.shape[0]):
        kind = readings[reading, READING]
        subject = readings[reading, SUBJECT]
        at = readings[reading, RESULT]
        low = reader.spans[readings[reading, FRAME], 0]
        high = reader.spans[readings[reading, FRAME], 1]
        if kind == NUMBER:
            fresh[at] = max(high - low + 1, 0)
        elif kind == SUM:
            measure = subjects.measures[subject]
            move_sum(trees, root, reading, measure, (low, high), reader, more)
            write_sum(reading, measure, at, reader)
        elif kind == EXTREME:
            extreme = subjects.extremes[subject]
            node = best_between(nodes, root, low, high, extreme) if low <= high else NONE
            fresh[at] = nodes[node, PLACE] if node != NONE else MISSING
            fresh[at + 1] = nodes[node, extreme[1] + 1] if node != NONE else 0
        else:
            number = readings[reading, ROW_OF]
            rank = high if number < 0 else low + number
            there = low <= rank <= high
            node = node_at(nodes, root, rank) if there else NONE
            fresh[at] = nodes[node, PLACE] if there else MISSING
            fresh[at + 1] = nodes[node, subject] if there else 0
            fresh[at + 2] = nodes[node, subject + 1] if there else 0


@inline
def differs(nodes, node, calls, fresh):
    """Return whether the values of a row are others than those that its node has."""
    readings = calls.readings
    for reading in range(readings.shape[0]):
        at = readings[reading, RESULT]
        first = nodes[node, calls.results + at]
        if readings[reading, READING] < EXTREME:
            if first != fresh[at]:
                return True
        elif (first == MISSING) != (fresh[at] == MISSING):
            return True
        for word in range(at + 1, at + readings[reading, SIZE_OF]):
            if nodes[node, calls.results + word] != fresh[word]:
                return True
    return False


@inline
def write_row(nodes, node, row, sign, results, out, written):
    """Write a row with the results that its node has; returns how many there are."""
    out[written, AT] = row
    out[written, SPOT] = nodes[node, PLACE]
    out[written, SIGN] = sign
    for word in range(out.shape[1] - RESULTS):
        out[written, RESULTS + word] = nodes[node, results + word]
    return written + 1


@inline
def renew_rows(trees, subjects, root, span, calls, reader, row, out, written):
    """Read the values of a range of ranks, and write those that changed; returns how many."""
    nodes = trees.nodes
    low, high = span
    for reading in range(reader.cursors.shape[0]):
        reader.cursors[reading, VALID] = 0
    node = node_at(nodes, root, low)
    for rank in range(low, high + 1):
        for frame in range(calls.frames.shape[0]):
            find_frame(nodes, root, node, rank, calls, frame, (reader.key, reader.spans))
        read_row(trees, subjects, root, calls, reader, rank < high)
        fresh = nodes[node, FRESH] != 0
        changed = fresh or differs(nodes, node, calls, reader.fresh)
        if changed and not fresh:
            written = write_row(nodes, node, row, -1, calls.results, out, written)
        for word in range(reader.fresh.shape[0]):
            nodes[node, calls.results + word] = reader.fresh[word]
        if changed:
            nodes[node, FRESH] = 0
            written = write_row(nodes, node, row, 1, calls.results, out, written)
        node = nodes[node, AFTER]
    return written


@inline
def sort_ranges(ranges, count):
    """Sort ranges by group and first rank (Shell's method: no memory, few of them as a rule)."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for at in range(gap, count):
            low = ranges[at, 0]
            high = ranges[at, 1]
            place = at
            while place >= gap and ranges[place - gap, 0] > low:
                ranges[place, 0] = ranges[place - gap, 0]
                ranges[place, 1] = ranges[place - gap, 1]
                place -= gap
            ranges[place, 0] = low
            ranges[place, 1] = high
        gap //= 3


@inline
def room_for(slots, trees, run):
    """Return an upper bound of the results of a run."""
    _, run_rows, run_slots, slot_groups = slots
    total = run_rows[run + 1] - run_rows[run]
    for slot in range(run_slots[run], run_slots[run + 1]):
        total += size_of(trees.nodes, trees.roots[slot_groups[slot]])
    return 2 * total


@kernel(
    SlotArrays, Integers, FramedChanges, FramedTrees, Subjects, Calls, int, Reader, Table,
    part="window functions",
)  # fmt: skip
def frame_slots(slots, weights, rows, trees, subjects, calls, first, reader, out):
    """Apply changes, and write the rows whose values change, with the old and the new ones.

    Returns the run at which ``out`` became too small (or the number of runs), how many results
    there are, and the room that the run needs; the next call resumes there.
    """
    groups, run_rows, _, _ = slots
    nodes, roots = trees.nodes, trees.roots
    ranges = reader.ranges
    written = 0
    for run in range(first, run_rows.shape[0] - 1):
        room = room_for(slots, trees, run)
        if written + room > out.shape[0]:
            return np.int64(run), np.int64(written), np.int64(room)
        row = run_rows[run]
        for i in range(row, run_rows[run + 1]):
            if weights[i] > 0:
                insert_framed(trees, subjects, groups[i], rows, i)
            elif weights[i] < 0:
                node = remove_framed(trees, subjects, groups[i], rows, i)
                if nodes[node, FRESH] == 0:
                    written = write_row(nodes, node, row, -1, calls.results, out, written)
        count = 0
        for i in range(row, run_rows[run + 1]):
            group = groups[i]
            low, high = find_range(nodes, roots[group], rows, i, calls, subjects.order, reader.key)
            if low <= high and weights[i] != 0:
                ranges[count, 0] = (group << _RANKS) | low
                ranges[count, 1] = high
                count += 1
        sort_ranges(ranges, count)
        at = 0
        while at < count:
            group = ranges[at, 0] >> _RANKS
            low = ranges[at, 0] & _MASK
            high = ranges[at, 1]
            at += 1
            while at < count and ranges[at, 0] <= ((group << _RANKS) | (high + 1)):
                high = max(high, ranges[at, 1])
                at += 1
            written = renew_rows(
                trees, subjects, roots[group], (low, high), calls, reader, row, out, written
            )
    return np.int64(run_rows.shape[0] - 1), np.int64(written), np.int64(0)
