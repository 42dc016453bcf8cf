"""As-of joins: for each left row the last right row of its key that is not after it.

Rows of both sides stand in one order per key (:mod:`muntin.kernels.ordered_rows`), so the match of
a left row is the nearest right row before it, and the left rows of a right row are those up to the
next right row. All changes of an instant are one unit. Left rows that a unit touches are compared
with what they were in the result before it, so no row both comes and goes. A unit costs its changes
and the left rows that get another match.
"""

from __future__ import annotations

from typing import NamedTuple

from muntin.kernels.arrays import Integers, Table
from muntin.kernels.jit import inline, kernel
from muntin.kernels.ordered_rows import (
    ENDS,
    FIRST,
    LINKS,
    NEXT,
    NONE,
    PREVIOUS,
    ROOT,
    insert_node,
    remove_node,
)

WEIGHT = LINKS
BEFORE = LINKS + 1
STAMP = LINKS + 2
KEY = LINKS + 3
PLACE = LINKS + 4
MATCH = LINKS + 5
OLD = LINKS + 6
LISTED = LINKS + 7
WORDS = LINKS + 8
"""Of each row: how often it is there, how often it was before the last unit that touched it, that
unit, its key, the place of its values plus one; of a left row its match and the one before the
unit, of a right row that has left the left row behind it; the row touched before it; its words."""

USED = ENDS
KEY_FIELDS = ENDS + 1
"""Of each key besides its order: whether it has a number."""

UNIT = 0
LEFT_AT = 1
RIGHT_AT = 2
WRITTEN = 3
TOUCHED = 4
NOW = 5
GONE_KEYS = 6
GONE_LEFT = 7
GONE_RIGHT = 8
META = 9
"""Of the whole: the number of the last unit (never 0), what has been read, the changes written, the
left rows of the last unit that are not written yet, its instant, and what has nothing left."""

LEFT_OUT = 0
RIGHT_OUT = 1
TIME_OUT = 2
WEIGHT_OUT = 3
OUT_FIELDS = 4
"""Of each change: the places of the values of both rows (-1: NULLs), its time, and its weight."""

OUTER = 1
INSERTS = 2
"""Left rows without a match are in the result; only rows that come are wanted."""


class SideChanges(NamedTuple):
    """Changes of one side by time: keys, nodes, words, times, signs, and places of values."""

    keys: Integers
    nodes: Integers
    words: Table
    times: Integers
    signs: Integers
    places: Integers


class AsofArrays(NamedTuple):
    """What is kept of rows and of keys, and of the whole; nodes of right rows are odd."""

    nodes: Table
    keys: Table
    meta: Integers


@kernel(SideChanges, SideChanges, AsofArrays, int, Table, part="asof join")
def join_asof(left, right, kept, form, out):
    """Process units until all are or ``out``, of two rows at least, is full; return whether all."""
    nodes, keys, meta = kept
    lefts = left.times.shape[0]
    rights = right.times.shape[0]
    while True:
        if not _write_touched(nodes, meta, form, out):
            return False
        i = meta[LEFT_AT]
        j = meta[RIGHT_AT]
        if i == lefts and j == rights:
            return True
        if j == rights or (i < lefts and left.times[i] <= right.times[j]):
            now = left.times[i]
        else:
            now = right.times[j]
        next_i = i
        while next_i < lefts and left.times[next_i] == now:
            next_i += 1
        next_j = j
        while next_j < rights and right.times[next_j] == now:
            next_j += 1
        meta[NOW] = now
        meta[UNIT] += 1
        touched = _apply(left, i, next_i, nodes, keys, meta, NONE)
        changed = _apply(right, j, next_j, nodes, keys, meta, NONE)
        meta[TOUCHED] = touched
        _change_order(nodes, keys, meta, touched, changed)
        meta[LEFT_AT] = next_i
        meta[RIGHT_AT] = next_j


@kernel(SideChanges, SideChanges, AsofArrays, Integers, Integers, Integers, part="asof join")
def list_gone(left, right, kept, gone_keys, gone_left, gone_right):
    """List the rows and keys of a batch that have nothing left, each once, and forget them."""
    nodes, keys, meta = kept
    meta[GONE_LEFT] = _forget_rows(nodes, left.nodes, gone_left)
    meta[GONE_RIGHT] = _forget_rows(nodes, right.nodes, gone_right)
    count = _forget_keys(keys, left.keys, gone_keys, 0)
    meta[GONE_KEYS] = _forget_keys(keys, right.keys, gone_keys, count)


@inline
def _is_right(node):
    return (node & 1) == 1


@inline
def _touch(nodes, node, unit, before):
    """Note how a row was before a unit; return the last row that the unit has touched."""
    if nodes[node, STAMP] == unit:
        return before
    nodes[node, STAMP] = unit
    nodes[node, BEFORE] = nodes[node, WEIGHT]
    nodes[node, OLD] = nodes[node, MATCH]
    nodes[node, LISTED] = before
    return node


@inline
def _apply(changes, start, stop, nodes, keys, meta, touched):
    """Add the changes of a unit to the weights of rows; return the last row that is touched."""
    for at in range(start, stop):
        node = changes.nodes[at]
        key = changes.keys[at]
        keys[key, USED] = 1
        touched = _touch(nodes, node, meta[UNIT], touched)
        if changes.signs[at] > 0 and nodes[node, PLACE] == 0:
            nodes[node, PLACE] = changes.places[at] + 1
            nodes[node, KEY] = key
            for word in range(changes.words.shape[1]):
                nodes[node, WORDS + word] = changes.words[at, word]
        nodes[node, WEIGHT] += changes.signs[at]
    return touched


@inline
def _change_order(nodes, keys, meta, touched, changed):
    """Have the rows of a unit enter and leave the order, and find matches again.

    Left rows leave first and enter last, so right rows that change meet those only that stay.
    """
    _remove_touched(nodes, keys, touched)
    _remove_touched(nodes, keys, changed)
    node = changed
    while node != NONE:
        if nodes[node, BEFORE] == 0 and nodes[node, WEIGHT] > 0:
            insert_node(nodes, keys, nodes[node, KEY], node, WORDS)
        node = nodes[node, LISTED]
    node = changed
    while node != NONE:
        if nodes[node, BEFORE] == 0 and nodes[node, WEIGHT] > 0:
            _assign(nodes, meta, nodes[node, NEXT], node)
        node = nodes[node, LISTED]
    node = changed
    while node != NONE:
        if nodes[node, BEFORE] > 0 and nodes[node, WEIGHT] == 0:
            _replace_match(nodes, keys, meta, nodes[node, OLD])
        node = nodes[node, LISTED]
    node = touched
    while node != NONE:
        if nodes[node, BEFORE] == 0 and nodes[node, WEIGHT] > 0:
            insert_node(nodes, keys, nodes[node, KEY], node, WORDS)
            nodes[node, MATCH] = _match_at(nodes, nodes[node, PREVIOUS])
        node = nodes[node, LISTED]


@inline
def _remove_touched(nodes, keys, touched):
    """Take rows that leave out of the order; right rows note the left row behind them."""
    node = touched
    while node != NONE:
        if nodes[node, BEFORE] > 0 and nodes[node, WEIGHT] == 0:
            after = nodes[node, NEXT]
            if _is_right(node):
                nodes[node, OLD] = NONE if after == NONE or _is_right(after) else after
            remove_node(nodes, keys, nodes[node, KEY], node)
        node = nodes[node, LISTED]


@inline
def _match_at(nodes, node):
    """Return the match of a left row right behind a node, or behind none."""
    if node == NONE or _is_right(node):
        return node
    return nodes[node, MATCH]


@inline
def _assign(nodes, meta, node, match):
    """Give left rows from a node up to the next right row a match."""
    while node != NONE and not _is_right(node):
        meta[TOUCHED] = _touch(nodes, node, meta[UNIT], meta[TOUCHED])
        nodes[node, MATCH] = match
        node = nodes[node, NEXT]


@inline
def _lost_match(nodes, node):
    """Return whether the match of a left row has left."""
    return nodes[node, MATCH] != NONE and nodes[nodes[node, MATCH], WEIGHT] == 0


@inline
def _replace_match(nodes, keys, meta, node):
    """Give a left row, if its match has left, and its neighbors of that kind another one.

    Of left rows without a right row between them, those that have lost their match come last.
    """
    if node == NONE or not _lost_match(nodes, node):
        return
    key = nodes[node, KEY]
    before = nodes[node, PREVIOUS]
    while before != NONE and not _is_right(before) and _lost_match(nodes, before):
        before = nodes[before, PREVIOUS]
    first = keys[key, FIRST] if before == NONE else nodes[before, NEXT]
    _assign(nodes, meta, first, _match_at(nodes, before))


@inline
def _write_touched(nodes, meta, form, out):
    """Write what touched left rows change in the result; return whether there was room."""
    written = meta[WRITTEN]
    node = meta[TOUCHED]
    while node != NONE:
        if written + 2 > out.shape[0]:
            meta[WRITTEN] = written
            meta[TOUCHED] = node
            return False
        before = nodes[node, BEFORE]
        after = nodes[node, WEIGHT]
        old = nodes[node, OLD] if before > 0 else NONE
        new = nodes[node, MATCH] if after > 0 else NONE
        there = before
        if form & OUTER == 0:
            before = before if old != NONE else 0
            after = after if new != NONE else 0
        if old == new and before > 0 and after > 0:
            if after > before or (after < before and form & INSERTS == 0):
                _write(nodes, out, written, node, new, meta[NOW], after - before)
                written += 1
        else:
            if before > 0 and form & INSERTS == 0:
                _write(nodes, out, written, node, old, meta[NOW], -before)
                written += 1
            if form & INSERTS != 0 and new == NONE:
                after -= there
            if after > 0:
                _write(nodes, out, written, node, new, meta[NOW], after)
                written += 1
        node = nodes[node, LISTED]
    meta[WRITTEN] = written
    meta[TOUCHED] = NONE
    return True


@inline
def _write(nodes, out, at, left, right, time, weight):
    out[at, LEFT_OUT] = nodes[left, PLACE] - 1
    out[at, RIGHT_OUT] = NONE if right == NONE else nodes[right, PLACE] - 1
    out[at, TIME_OUT] = time
    out[at, WEIGHT_OUT] = weight


@inline
def _forget_rows(nodes, rows, gone):
    count = 0
    for at in range(rows.shape[0]):
        node = rows[at]
        if nodes[node, WEIGHT] == 0 and nodes[node, STAMP] != 0:
            nodes[node, STAMP] = 0
            nodes[node, PLACE] = 0
            gone[count] = node >> 1
            count += 1
    return count


@inline
def _forget_keys(keys, changed, gone, count):
    for at in range(changed.shape[0]):
        key = changed[at]
        if keys[key, ROOT] == NONE and keys[key, USED] == 1:
            keys[key, USED] = 0
            gone[count] = key
            count += 1
    return count
