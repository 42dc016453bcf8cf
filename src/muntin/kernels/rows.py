"""Steps on the rows of an arena that all join kernels share.

Address, hash, insert, walk, expire.
"""

from __future__ import annotations

import numpy as np

from muntin.kernels.jit import inline
from muntin.kernels.layout import (
    BUCKETS,
    CAP,
    COORD,
    END,
    EQ,
    FORWARD,
    GE,
    GT,
    HEAD_STEP,
    HEADS,
    HELD,
    KEY_COUNT,
    KEYS,
    KIND,
    LAST,
    LE,
    LINK,
    LT,
    MODULAR,
    N_EXPIRED,
    N_EXPIRY_CHECKS,
    N_INSERTED,
    NEXT,
    OLDEST,
    OWNER,
    PARTITIONED,
    PEAK,
    POSITION,
    PRIMARY,
    ROWS,
    STORED,
    TAIL,
    TAIL_SLOT,
    WIDTH,
)

_LOW = 0xFFFFFFFF
_HEAD = 0x7FFFFFFF


@inline
def row_address(stores, s, seq):
    """Word offset of a row of the ring."""
    slot = stores[s, TAIL_SLOT] + (seq - stores[s, TAIL])
    if slot >= stores[s, CAP]:
        slot -= stores[s, CAP]
    return stores[s, ROWS] + slot * stores[s, WIDTH]


@inline
def full_position(stores, s, low):
    """Return the position in the stream from its low half.

    No row is 2**32 positions behind the last one.
    """
    last = stores[s, LAST]
    return last - ((last - np.int64(low)) & _LOW)


@inline
def mix(code):
    """Scatter the bits of a code."""
    x = np.uint64(code)
    x = (x ^ (x >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    x = (x ^ (x >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return x ^ (x >> np.uint64(32))


@inline
def bucket_of(hashed, code, modular, buckets):
    """Return the bucket of a key.

    By division where the user fixed the number, by multiplication otherwise.
    """
    if modular:
        return np.int64(np.uint64(code) % np.uint64(buckets))
    return np.int64(((hashed >> np.uint64(32)) * np.uint64(buckets)) >> np.uint64(32))


@inline
def row_bucket(words, indexes, x, address):
    """Return the bucket of a row under an index; the row may also be one that has not come yet."""
    hashed = np.uint64(0)
    code = np.int64(0)
    for c in range(indexes[x, KEY_COUNT]):
        code = words[address + indexes[x, KEYS + c]]
        hashed = mix(np.int64(hashed) ^ code)
    return bucket_of(hashed, code, indexes[x, MODULAR], indexes[x, BUCKETS])


@inline
def dead(words, stores, s, address, limit):
    """Return whether a row is outside its window.

    ``limit`` is a coordinate, or a stream count if partitioned.
    """
    kind = stores[s, KIND]
    if kind == PARTITIONED:
        return words[address + stores[s, END]] <= limit
    if kind == STORED:
        return False
    return words[address + COORD] <= limit


@inline
def holds(operator, mine, other):
    """Return whether ``mine operator other``."""
    if operator == EQ:
        return mine == other
    if operator == LT:
        return mine < other
    if operator == LE:
        return mine <= other
    if operator == GT:
        return mine > other
    if operator == GE:
        return mine >= other
    return mine != other


@inline
def head_row(stores, s, head):
    """Sequence number of the row that a bucket head names, or -1."""
    if head == 0:
        return np.int64(-1)
    newest = stores[s, NEXT] - 1
    return newest - ((newest - (head - 1)) & _HEAD)


@inline
def head_of(seq):
    """Return the bucket head that names a row.

    The low 31 bits of its number plus one, which is never 0.
    """
    return np.int32((seq & _HEAD) + 1)


@inline
def insert(arena, s, incoming, offset, counters):
    """Append a formatted row to a store that has room, link it, and return its address."""
    words, halves, stores, indexes = arena.words, arena.halves, arena.stores, arena.indexes
    seq = stores[s, NEXT]
    stores[s, NEXT] = seq + 1
    address = row_address(stores, s, seq)
    for w in range(stores[s, WIDTH]):
        words[address + w] = incoming[offset + w]
    low = halves[2 * address + POSITION]
    last = stores[s, LAST]
    # Positions only grow, so the full one is the next number after the last that ends in `low`.
    stores[s, LAST] = last + ((np.int64(low) - last) & _LOW)
    if stores[s, FORWARD] >= 0:
        # A row that moves brings the link of its old ring, and the row it led to may have stayed
        # behind.
        halves[2 * address + stores[s, FORWARD]] = np.int32(0)
    for x in range(arena.first_index[s], arena.first_index[s + 1]):
        bucket = row_bucket(words, indexes, x, address)
        head = indexes[x, HEADS] + bucket * indexes[x, HEAD_STEP]
        newest = head_row(stores, s, np.int64(halves[head]))
        distance = seq - newest if newest >= stores[s, TAIL] else np.int64(0)
        halves[2 * address + indexes[x, LINK]] = np.int32(distance)
        halves[head] = head_of(seq)
        if stores[s, FORWARD] >= 0 and x == stores[s, PRIMARY]:
            oldest = indexes[x, OLDEST] + bucket
            if distance == 0 or halves[oldest] == 0:
                halves[oldest] = head_of(seq)
            else:
                before = row_address(stores, s, seq - distance)
                halves[2 * before + stores[s, FORWARD]] = np.int32(distance)
    stores[s, HELD] += 1
    if seq + 1 - stores[s, TAIL] > stores[s, PEAK]:
        stores[s, PEAK] = seq + 1 - stores[s, TAIL]
    counters[N_INSERTED] += 1
    return address


@inline
def newest_in(halves, stores, s, indexes, x, bucket):
    """Sequence number of the newest row of a bucket, or -1."""
    return head_row(stores, s, np.int64(halves[indexes[x, HEADS] + bucket * indexes[x, HEAD_STEP]]))


@inline
def expire_tail(words, stores, s, limit, counters):
    """Move the tail past rows outside the window; links into them are dead then."""
    if stores[s, KIND] == STORED:
        return
    tail = stores[s, TAIL]
    slot = stores[s, TAIL_SLOT]
    checks = np.int64(1)
    while tail < stores[s, NEXT]:
        address = stores[s, ROWS] + slot * stores[s, WIDTH]
        if not dead(words, stores, s, address, limit):
            break
        tail += 1
        slot += 1
        checks += 1
        if slot == stores[s, CAP]:
            slot = 0
    gone = tail - stores[s, TAIL]
    stores[s, TAIL] = tail
    stores[s, TAIL_SLOT] = slot
    if stores[s, KIND] != PARTITIONED:
        # A partitioned window has let its rows go when they were pushed out.
        stores[s, HELD] -= gone
    counters[N_EXPIRED] += gone
    counters[N_EXPIRY_CHECKS] += checks


@inline
def expire_two(words, stores, s, limit, counters):
    """Expire at most two old rows.

    One row comes, two may leave, so a ring never holds many that are dead.
    """
    if stores[s, KIND] == STORED:
        return
    for _ in range(2):
        counters[N_EXPIRY_CHECKS] += 1
        address = stores[s, ROWS] + stores[s, TAIL_SLOT] * stores[s, WIDTH]
        # The ring is not empty: it holds the row that was just inserted, and that one is alive.
        if not dead(words, stores, s, address, limit):
            return
        slot = stores[s, TAIL_SLOT] + 1
        stores[s, TAIL_SLOT] = 0 if slot == stores[s, CAP] else slot
        stores[s, TAIL] += 1
        if stores[s, KIND] != PARTITIONED:
            stores[s, HELD] -= 1
        counters[N_EXPIRED] += 1


@inline
def clean_bucket(arena, x, bucket, limit, counters):
    """Unlink the expired rows of one bucket from its old end: 1 + stale comparisons.

    [Kostowski06, section 2].
    """
    words, halves, stores, indexes = arena.words, arena.halves, arena.stores, arena.indexes
    s = indexes[x, OWNER]
    cell = indexes[x, OLDEST] + bucket
    first = np.int64(halves[cell])
    if first == 0:
        return
    seq = head_row(stores, s, first)
    while True:
        counters[N_EXPIRY_CHECKS] += 1
        address = row_address(stores, s, seq)
        if not dead(words, stores, s, address, limit):
            halves[cell] = head_of(seq)
            return
        counters[N_EXPIRED] += 1
        if stores[s, KIND] != PARTITIONED:
            stores[s, HELD] -= 1
        step = np.int64(halves[2 * address + stores[s, FORWARD]])
        if step == 0:
            halves[cell] = np.int32(0)
            return
        seq += step


@inline
def clean_all(arena, x, limit, counters):
    """Clean every bucket of an index."""
    for bucket in range(arena.indexes[x, BUCKETS]):
        clean_bucket(arena, x, bucket, limit, counters)


@inline
def free_cleaned(arena, s):
    """Move the tail past rows that their buckets released, so that their slots are reused."""
    words, halves, stores, indexes = arena.words, arena.halves, arena.stores, arena.indexes
    x = stores[s, PRIMARY]
    while stores[s, TAIL] < stores[s, NEXT]:
        tail = stores[s, TAIL]
        address = row_address(stores, s, tail)
        oldest = np.int64(halves[indexes[x, OLDEST] + row_bucket(words, indexes, x, address)])
        if oldest != 0 and head_row(stores, s, oldest) <= tail:
            return
        stores[s, TAIL] = tail + 1
        slot = stores[s, TAIL_SLOT] + 1
        stores[s, TAIL_SLOT] = 0 if slot == stores[s, CAP] else slot


@inline
def find_position(halves, stores, s, position):
    """Sequence number of the row at a stream position, or -1 when the store does not hold it."""
    low = stores[s, TAIL]
    high = stores[s, NEXT]
    while low < high:
        middle = (low + high) >> 1
        if (
            full_position(stores, s, halves[2 * row_address(stores, s, middle) + POSITION])
            < position
        ):
            low = middle + 1
        else:
            high = middle
    if (
        low < stores[s, NEXT]
        and full_position(stores, s, halves[2 * row_address(stores, s, low) + POSITION]) == position
    ):
        return low
    return np.int64(-1)
