"""The last n rows of every partition, and which row a new row pushes out.

A hash table with open addressing maps a partition's key (two words) to a block of the pool that
holds the positions of its last rows as a ring. Blocks start small and double up to ``n``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muntin.kernels.arrays import Integers, Table
from muntin.kernels.jit import inline, kernel
from muntin.kernels.rows import mix

KEY = 0
KEY_HIGH = 1
BLOCK = 2
ROOM = 3
USED = 4
FIRST = 5
ENTRY_FIELDS = 6

FIRST_ROOM = 4


@inline
def find_entry(table, low, high):
    """Return the entry of a key, or the empty one where it belongs; the table is never full."""
    mask = table.shape[0] - 1
    at = np.int64(mix(low ^ np.int64(mix(high)))) & mask
    while table[at, ROOM] != 0 and (table[at, KEY] != low or table[at, KEY_HIGH] != high):
        at = (at + 1) & mask
    return at


class PartitionArrays(NamedTuple):
    """Partitions of a window: a hash table, a pool of positions, and how much of each is used."""

    table: Table
    pool: Integers
    sizes: Integers


@kernel(PartitionArrays, int, Integers, Integers, int, Integers, Integers)
def push_partitions(partitions, rows, low, high, start, positions, pushed):
    """Add rows from ``start`` on to their partitions, of at most ``rows`` rows each.

    ``pushed`` gets the position that each one pushes out, or -1. ``sizes`` holds the partitions in
    the table and the used length of the pool. Returns the number of rows done; fewer than all when
    the table or the pool is too small for the next one.
    """
    table, pool, sizes = partitions
    for i in range(start, low.shape[0]):
        at = find_entry(table, low[i], high[i])
        used = table[at, USED]
        room = table[at, ROOM]
        if used == room and room < rows:
            # A new partition, or one whose block is full but not yet of full size: its ring has not
            # turned, so the rows are in order from the block's start.
            larger = min(rows, max(FIRST_ROOM, 2 * room))
            if 2 * (sizes[0] + 1) > table.shape[0] or sizes[1] + larger > pool.shape[0]:
                return i
            for j in range(used):
                pool[sizes[1] + j] = pool[table[at, BLOCK] + j]
            if room == 0:
                table[at, KEY] = low[i]
                table[at, KEY_HIGH] = high[i]
                sizes[0] += 1
            table[at, BLOCK] = sizes[1]
            table[at, ROOM] = larger
            sizes[1] += larger
        pushed[i] = -1
        if used == rows:
            first = table[at, BLOCK] + table[at, FIRST]
            pushed[i] = pool[first]
            pool[first] = positions[i]
            table[at, FIRST] = (table[at, FIRST] + 1) % rows
        else:
            pool[table[at, BLOCK] + used] = positions[i]
            table[at, USED] = used + 1
    return low.shape[0]


@kernel("(int64[:,::1], int64[::1], int64[:,::1], int64[::1], int64[::1])")
def move_partitions(table, pool, new_table, new_pool, sizes):
    """Copy all partitions to a larger table and pool; blocks that were outgrown stay behind."""
    sizes[0] = 0
    sizes[1] = 0
    for old in range(table.shape[0]):
        if table[old, ROOM] == 0:
            continue
        at = find_entry(new_table, table[old, KEY], table[old, KEY_HIGH])
        for field in range(ENTRY_FIELDS):
            new_table[at, field] = table[old, field]
        new_table[at, BLOCK] = sizes[1]
        for j in range(table[old, USED]):
            new_pool[sizes[1] + j] = pool[table[old, BLOCK] + j]
        sizes[0] += 1
        sizes[1] += table[old, ROOM]
