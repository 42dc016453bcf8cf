"""Semi and anti joins by key: which left rows come into the result and leave it, by instant.

All changes of an instant are one unit. A left row that changes at the instant, or whose key gains
its first right row or loses the last, is compared with how often it was in the result before; so no
row both comes and goes. Left rows of a key are in a chain while they are there.
"""

from __future__ import annotations

from typing import NamedTuple

from muntin.kernels.arrays import Integers, Table
from muntin.kernels.jit import inline, kernel

RIGHT = 0
ROWS = 1
FIRST = 2
KEY_STAMP = 3
KEY_BEFORE = 4
KEY_FIELDS = 5
"""Of each key: its right rows, the left rows in its chain, the first of them plus one, the last
unit that looked at it, and whether it had right rows before that."""

WEIGHT = 0
NEXT = 1
PREVIOUS = 2
KEY = 3
PLACE = 4
ROW_STAMP = 5
ROW_BEFORE = 6
ROW_FIELDS = 7
"""Of each left row: how often it is there, its neighbors in the chain plus one, its key, the place
of its values plus one, the last unit that changed it, and how often it was there before that."""

UNIT = 0
LEFT_AT = 1
RIGHT_AT = 2
WRITTEN = 3
NEEDED = 4
GONE_KEYS = 5
GONE_ROWS = 6
META = 7
"""Of the whole: the number of the last unit (never 0), what has been read, the changes written, the
room that the next unit needs if it is missing, and the keys and rows without anything left."""

PLACE_OUT = 0
TIME_OUT = 1
WEIGHT_OUT = 2
OUT_FIELDS = 3


class LeftChanges(NamedTuple):
    """Changes of the left side by time, with their keys, rows, and the places of their values."""

    keys: Integers
    rows: Integers
    times: Integers
    signs: Integers
    places: Integers


class RightChanges(NamedTuple):
    """Changes of the right side by time, with their keys."""

    keys: Integers
    times: Integers
    signs: Integers


class SemiJoinArrays(NamedTuple):
    """What is kept of keys and of rows, and of the whole."""

    keys: Table
    rows: Table
    meta: Integers


@kernel(LeftChanges, RightChanges, SemiJoinArrays, int, Integers, Integers, Table, part="pipelines")
def join_units(left, right, kept, anti, some_keys, some_rows, out):
    """Process units until all are or ``out`` is full; then ``meta`` says how much room is needed.

    ``some_keys`` and ``some_rows`` are scratch for those of one unit.
    """
    keys, rows, meta = kept
    lefts = left.times.shape[0]
    rights = right.times.shape[0]
    i = meta[LEFT_AT]
    j = meta[RIGHT_AT]
    written = meta[WRITTEN]
    meta[NEEDED] = 0
    while i < lefts or j < rights:
        if j == rights or (i < lefts and left.times[i] <= right.times[j]):
            now = left.times[i]
        else:
            now = right.times[j]
        meta[UNIT] += 1
        unit = meta[UNIT]
        next_i = i
        while next_i < lefts and left.times[next_i] == now:
            next_i += 1
        next_j = j
        turned = 0
        room = next_i - i
        while next_j < rights and right.times[next_j] == now:
            key = right.keys[next_j]
            if _look_at(keys, key, unit):
                some_keys[turned] = key
                turned += 1
                room += keys[key, ROWS]
            next_j += 1
        if written + room > out.shape[0]:
            meta[NEEDED] = room
            break
        for at in range(j, next_j):
            keys[right.keys[at], RIGHT] += right.signs[at]
        changed = 0
        for at in range(i, next_i):
            row = left.rows[at]
            _look_at(keys, left.keys[at], unit)
            if rows[row, ROW_STAMP] != unit:
                rows[row, ROW_STAMP] = unit
                rows[row, ROW_BEFORE] = rows[row, WEIGHT]
                rows[row, KEY] = left.keys[at]
                some_rows[changed] = row
                changed += 1
            if rows[row, PLACE] == 0 and left.signs[at] > 0:
                rows[row, PLACE] = left.places[at] + 1
            rows[row, WEIGHT] += left.signs[at]
        for at in range(changed):
            row = some_rows[at]
            key = rows[row, KEY]
            before = rows[row, ROW_BEFORE] if keys[key, KEY_BEFORE] != anti else 0
            after = rows[row, WEIGHT] if (keys[key, RIGHT] > 0) != anti else 0
            if before != after:
                _write(out, written, rows[row, PLACE] - 1, now, after - before)
                written += 1
            _chain(keys, rows, row, key)
        for at in range(turned):
            key = some_keys[at]
            has = 1 if keys[key, RIGHT] > 0 else 0
            if has == keys[key, KEY_BEFORE]:
                continue
            sign = 1 if has != anti else -1
            row = keys[key, FIRST] - 1
            while row >= 0:
                if rows[row, ROW_STAMP] != unit:
                    _write(out, written, rows[row, PLACE] - 1, now, sign * rows[row, WEIGHT])
                    written += 1
                row = rows[row, NEXT] - 1
        i = next_i
        j = next_j
    meta[LEFT_AT] = i
    meta[RIGHT_AT] = j
    meta[WRITTEN] = written


@kernel(LeftChanges, RightChanges, SemiJoinArrays, Integers, Integers, part="pipelines")
def list_gone(left, right, kept, gone_keys, gone_rows):
    """List the rows and keys of a batch that have nothing left, each once, and forget them."""
    keys, rows, meta = kept
    count = 0
    for at in range(left.rows.shape[0]):
        row = left.rows[at]
        if rows[row, WEIGHT] == 0 and rows[row, ROW_STAMP] != 0:
            rows[row, ROW_STAMP] = 0
            rows[row, PLACE] = 0
            gone_rows[count] = row
            count += 1
    meta[GONE_ROWS] = count
    count = 0
    for at in range(left.keys.shape[0]):
        count = _forget_key(keys, left.keys[at], gone_keys, count)
    for at in range(right.keys.shape[0]):
        count = _forget_key(keys, right.keys[at], gone_keys, count)
    meta[GONE_KEYS] = count


@inline
def _look_at(keys, key, unit):
    """Note how a key was before a unit; return whether the unit looks at it for the first time."""
    if keys[key, KEY_STAMP] == unit:
        return False
    keys[key, KEY_STAMP] = unit
    keys[key, KEY_BEFORE] = 1 if keys[key, RIGHT] > 0 else 0
    return True


@inline
def _write(out, place, values, time, weight):
    """Write down a change of the result."""
    out[place, PLACE_OUT] = values
    out[place, TIME_OUT] = time
    out[place, WEIGHT_OUT] = weight


@inline
def _chain(keys, rows, row, key):
    """Put a row that has come into the chain of its key, and take one that has gone out of it."""
    was = rows[row, ROW_BEFORE] != 0
    if was == (rows[row, WEIGHT] != 0):
        return
    if was:
        after = rows[row, NEXT]
        previous = rows[row, PREVIOUS]
        if previous == 0:
            keys[key, FIRST] = after
        else:
            rows[previous - 1, NEXT] = after
        if after != 0:
            rows[after - 1, PREVIOUS] = previous
        keys[key, ROWS] -= 1
        return
    first = keys[key, FIRST]
    rows[row, NEXT] = first
    rows[row, PREVIOUS] = 0
    if first != 0:
        rows[first - 1, PREVIOUS] = row + 1
    keys[key, FIRST] = row + 1
    keys[key, ROWS] += 1


@inline
def _forget_key(keys, key, gone, count):
    """List a key that has no rows of either side, unless it is listed already."""
    if keys[key, RIGHT] == 0 and keys[key, ROWS] == 0 and keys[key, KEY_STAMP] != 0:
        keys[key, KEY_STAMP] = 0
        gone[count] = key
        return count + 1
    return count
