"""Moving the rows of a store to a ring of another size, and looking over what it holds."""

from __future__ import annotations

import numpy as np

from muntin.kernels.arrays import Arena, Bytes, Integers
from muntin.kernels.jit import kernel
from muntin.kernels.layout import (
    END,
    FORWARD,
    HEAD_STEP,
    HEADS,
    KIND,
    LINK,
    NEXT,
    OLDEST,
    PARTITIONED,
    PRIMARY,
    TAIL,
)
from muntin.kernels.memory import prefetch
from muntin.kernels.rows import dead, head_of, head_row, insert, mix, row_address, row_bucket

_AHEAD = 24


@kernel(Arena, int, int, Arena, Integers)
def move_rows(arena, s, limit, target, counters):
    """Insert the rows that a store still needs into its new, empty ring; return how many.

    Rows that a partitioned window pushed out, or that their bucket released, stay behind: this is
    where their memory is reclaimed when older rows keep the tail from moving.
    """
    words, halves, stores, indexes = arena.words, arena.halves, arena.stores, arena.indexes
    moved = 0
    cleaned = stores[s, FORWARD] >= 0
    x = stores[s, PRIMARY]
    for seq in range(stores[s, TAIL], stores[s, NEXT]):
        address = row_address(stores, s, seq)
        if stores[s, KIND] == PARTITIONED and words[address + stores[s, END]] <= limit:
            continue
        if cleaned:
            oldest = np.int64(halves[indexes[x, OLDEST] + row_bucket(words, indexes, x, address)])
            if oldest == 0 or head_row(stores, s, oldest) > seq:
                continue
        insert(target, s, words, address, counters)
        moved += 1
    return moved


@kernel(Arena, int)
def link_rows(arena, s):
    """Chain all rows of a store, which were copied, in indexes whose heads are empty."""
    words, halves, stores, indexes = arena.words, arena.halves, arena.stores, arena.indexes
    for x in range(arena.first_index[s], arena.first_index[s + 1]):
        for seq in range(stores[s, TAIL], stores[s, NEXT]):
            if seq + _AHEAD < stores[s, NEXT]:
                bucket = row_bucket(words, indexes, x, row_address(stores, s, seq + _AHEAD))
                prefetch(halves, indexes[x, HEADS] + bucket * indexes[x, HEAD_STEP])
            address = row_address(stores, s, seq)
            head = (
                indexes[x, HEADS] + row_bucket(words, indexes, x, address) * indexes[x, HEAD_STEP]
            )
            newest = head_row(stores, s, np.int64(halves[head]))
            halves[2 * address + indexes[x, LINK]] = np.int32(
                0 if newest < stores[s, TAIL] else seq - newest
            )
            halves[head] = head_of(seq)


@kernel(Arena, int, int)
def count_inside(arena, s, limit):
    """Return how many rows of a store are inside their window."""
    words, stores = arena.words, arena.stores
    inside = 0
    for seq in range(stores[s, TAIL], stores[s, NEXT]):
        if not dead(words, stores, s, row_address(stores, s, seq), limit):
            inside += 1
    return inside


@kernel(Arena, int, int, Integers)
def positions_inside(arena, s, limit, out):
    """Write the low halves of the positions of a store's rows inside their window.

    Return how many.
    """
    words, halves, stores = arena.words, arena.halves, arena.stores
    inside = 0
    for seq in range(stores[s, TAIL], stores[s, NEXT]):
        address = row_address(stores, s, seq)
        if not dead(words, stores, s, address, limit):
            out[inside] = halves[2 * address + 2]
            inside += 1
    return inside


@kernel(Arena, int, int, Bytes)
def mark_codes(arena, s, word, marks):
    """Mark the place of every row's code.

    Return how many of the ``marks``, a power of two, are set.
    """
    words, stores = arena.words, arena.stores
    marked = 0
    for seq in range(stores[s, TAIL], stores[s, NEXT]):
        place = np.int64(
            mix(words[row_address(stores, s, seq) + word]) & np.uint64(marks.shape[0] - 1)
        )
        if marks[place] == 0:
            marks[place] = 1
            marked += 1
    return marked
