"""Prefetching: loading memory before it is needed.

A probe is a chain of dependent cache misses: bucket head, first row, second row. All are known some
events ahead, so the join loop asks for them early, in three stages of a pipe that remembers what
each stage found. Nothing depends on what the pipe holds: it may be out of date, and only the time
of the join would change.
"""

from __future__ import annotations

import numpy as np

from muntin.kernels.jit import inline
from muntin.kernels.layout import (
    BUCKETS,
    HEAD_STEP,
    HEADS,
    KEY_COUNT,
    LINK,
    MODULAR,
    NEXT,
    STEP_ARGUMENTS,
    STEP_INDEX,
    STEP_STORE,
    TAIL,
)
from muntin.kernels.memory import prefetch
from muntin.kernels.rows import bucket_of, head_row, mix, row_address, row_bucket


@inline
def probed_bucket(indexes, flat, at, incoming, offset):
    """Return the bucket into which a row that has not come yet will look first."""
    x = flat[at + STEP_INDEX]
    hashed = np.uint64(0)
    code = np.int64(0)
    for c in range(indexes[x, KEY_COUNT]):
        code = incoming[offset + flat[at + STEP_ARGUMENTS + 2 * c + 1]]
        hashed = mix(np.int64(hashed) ^ code)
    return bucket_of(hashed, code, indexes[x, MODULAR], indexes[x, BUCKETS])


@inline
def fetch_heads(arena, flat, at, s, incoming, offset, pipe, place):
    """Prefetch the bucket heads that a coming row will read and change; note the one it reads."""
    halves, indexes, first_index = arena.halves, arena.indexes, arena.first_index
    x = flat[at + STEP_INDEX]
    pipe[place] = -1
    if x >= 0:
        pipe[place] = (
            indexes[x, HEADS]
            + probed_bucket(indexes, flat, at, incoming, offset) * indexes[x, HEAD_STEP]
        )
        prefetch(halves, pipe[place])
    for own in range(first_index[s], first_index[s + 1]):
        prefetch(
            halves,
            indexes[own, HEADS]
            + row_bucket(incoming, indexes, own, offset) * indexes[own, HEAD_STEP],
        )


@inline
def fetch_first(arena, flat, at, pipe, place):
    """Prefetch the first row that a coming row will meet; note it instead of the head."""
    words, halves, stores = arena.words, arena.halves, arena.stores
    head = pipe[place]
    pipe[place] = -1
    if head >= 0:
        s = flat[at + STEP_STORE]
        seq = head_row(stores, s, np.int64(halves[head]))
        if stores[s, TAIL] <= seq < stores[s, NEXT]:
            pipe[place] = seq
            prefetch(words, row_address(stores, s, seq))


@inline
def fetch_second(arena, flat, at, pipe, place):
    """Prefetch the row behind the first one in its bucket."""
    words, halves, stores, indexes = arena.words, arena.halves, arena.stores, arena.indexes
    seq = pipe[place]
    s = flat[at + STEP_STORE]
    if seq >= stores[s, TAIL]:
        link = halves[2 * row_address(stores, s, seq) + indexes[flat[at + STEP_INDEX], LINK]]
        seq -= np.int64(link)
        if link != 0 and seq >= stores[s, TAIL]:
            prefetch(words, row_address(stores, s, seq))
