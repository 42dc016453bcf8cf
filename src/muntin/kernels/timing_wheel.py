"""A timing wheel: slots of matches by the instants at which they end, in the order they came.

An entry is the end of a match, the next entry of its slot, and the positions of its members; free
entries are a list. A slot is for all instants with the same bits above ``SHIFT``, and those that
are a turn of the wheel apart. So a match comes and goes in O(1), as long as the wheel is as long as
the windows and has about as many slots as there are matches.
"""

from __future__ import annotations

import numpy as np

from muntin.kernels.jit import inline, kernel

END = 0
NEXT = 1
MEMBERS = 2
"""Words of an entry; positions from the last one on."""

FREE = 0
COUNT = 1
FROM = 2
SHIFT = 3
META = 4
"""The first free entry, entries in slots, an instant before which none ends, bits below a slot."""

NONE = -1
NEVER = 2**63 - 1


@inline
def next_end(entries, heads, meta, first):
    """Return the least end from a slot on, or one before it if that is a turn away."""
    if meta[COUNT] == 0:
        return np.int64(NEVER)
    shift = meta[SHIFT]
    slots = heads.shape[0]
    for number in range(first, first + slots):
        least = np.int64(NEVER)
        entry = heads[number & (slots - 1)]
        while entry != NONE:
            end = entries[entry, END]
            if end >> shift == number:
                least = min(least, end)
            entry = entries[entry, NEXT]
        if least < NEVER:
            return least
    return np.int64((first + slots) << shift)


@kernel(
    "(int64[:,::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[:,:])", part="changes"
)
def put_endings(entries, heads, tails, meta, ends, positions):
    """Take matches, given by their ends and positions; there are as many free entries."""
    mask = heads.shape[0] - 1
    for i in range(ends.shape[0]):
        entry = meta[FREE]
        meta[FREE] = entries[entry, NEXT]
        end = ends[i]
        entries[entry, END] = end
        entries[entry, NEXT] = NONE
        for source in range(positions.shape[0]):
            entries[entry, MEMBERS + source] = positions[source, i]
        slot = (end >> meta[SHIFT]) & mask
        if heads[slot] == NONE:
            heads[slot] = entry
        else:
            entries[tails[slot], NEXT] = entry
        tails[slot] = entry
        meta[FROM] = min(meta[FROM], end)
    meta[COUNT] += ends.shape[0]


@kernel(
    "int64(int64[:,::1], int64[::1], int64[::1], int64[::1], int64, int64[::1], int64[:,::1],"
    " int64)",
    part="changes",
)
def pop_endings(entries, heads, tails, meta, until, ends, positions, count):
    """Remove all that end up to an instant, append their ends and positions; return the new count.

    Those of one end come in the order in which they were taken. If the room is full, there may be
    more; the same call resumes.
    """
    shift = meta[SHIFT]
    slots = heads.shape[0]
    last = until >> shift
    first = max(meta[FROM] >> shift, last - slots + 1)
    for number in range(first, last + 1):
        slot = number & (slots - 1)
        before = NONE
        entry = heads[slot]
        while entry != NONE:
            after = entries[entry, NEXT]
            if entries[entry, END] > until:
                before = entry
                entry = after
                continue
            if count == ends.shape[0]:
                meta[FROM] = number << shift
                return count
            ends[count] = entries[entry, END]
            for source in range(positions.shape[0]):
                positions[source, count] = entries[entry, MEMBERS + source]
            count += 1
            if before == NONE:
                heads[slot] = after
            else:
                entries[before, NEXT] = after
            if after == NONE:
                tails[slot] = before
            entries[entry, NEXT] = meta[FREE]
            meta[FREE] = entry
            meta[COUNT] -= 1
            entry = after
    meta[FROM] = next_end(entries, heads, meta, last)
    return count


@kernel(
    "(int64[:,::1], int64[::1], int64[:,::1], int64[::1], int64[::1], int64[::1])", part="changes"
)
def move_endings(entries, heads, to, to_heads, to_tails, meta):
    """Move all entries into another wheel, which has room for them.

    ``SHIFT`` is that of the new one already.
    """
    mask = to_heads.shape[0] - 1
    count = 0
    for slot in range(to_heads.shape[0]):
        to_heads[slot] = NONE
        to_tails[slot] = NONE
    for slot in range(heads.shape[0]):
        entry = heads[slot]
        while entry != NONE:
            for word in range(entries.shape[1]):
                to[count, word] = entries[entry, word]
            to[count, NEXT] = NONE
            target = (to[count, END] >> meta[SHIFT]) & mask
            if to_heads[target] == NONE:
                to_heads[target] = count
            else:
                to[to_tails[target], NEXT] = count
            to_tails[target] = count
            count += 1
            entry = entries[entry, NEXT]
    for entry in range(count, to.shape[0]):
        to[entry, NEXT] = entry + 1
    meta[FREE] = count
