"""Rows under keys.

Chains that rows join and leave in O(1), and all rows of a chain for each of many keys.
"""

from __future__ import annotations

from muntin.kernels.jit import kernel

NONE = -1


@kernel("(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])", part="pipelines")
def chain_rows(rows, keys, heads, nexts, befores):
    """Put rows in front of the chains of their keys."""
    for i in range(rows.shape[0]):
        row = rows[i]
        first = heads[keys[i]]
        nexts[row] = first
        befores[row] = NONE
        if first != NONE:
            befores[first] = row
        heads[keys[i]] = row


@kernel("(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])", part="pipelines")
def unchain_rows(rows, keys, heads, nexts, befores):
    """Take rows out of the chains of their keys."""
    for i in range(rows.shape[0]):
        row = rows[i]
        after = nexts[row]
        before = befores[row]
        if before == NONE:
            heads[keys[i]] = after
        else:
            nexts[before] = after
        if after != NONE:
            befores[after] = before


@kernel("int64(int64[::1], int64[::1], int64[::1])", part="pipelines")
def count_chained(keys, heads, nexts):
    """Return how many rows the chains of keys have, taken together."""
    count = 0
    for i in range(keys.shape[0]):
        row = heads[keys[i]]
        while row != NONE:
            count += 1
            row = nexts[row]
    return count


@kernel("(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])", part="pipelines")
def list_chained(keys, heads, nexts, places, rows):
    """Return the rows of the chains of keys, each with the place of its key."""
    count = 0
    for i in range(keys.shape[0]):
        row = heads[keys[i]]
        while row != NONE:
            places[count] = i
            rows[count] = row
            count += 1
            row = nexts[row]
