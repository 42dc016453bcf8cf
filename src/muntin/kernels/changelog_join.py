"""The join loop that also retracts: for every row at the instant it leaves its window.

It runs EMIT CHANGES, returns what the loops of :mod:`muntin.kernels.nway_join` return, and is
called again in the same way.
"""

from __future__ import annotations

import numpy as np

from muntin.kernels.arrays import Arena, EventArrays, Output, Program, Span, Stamp
from muntin.kernels.jit import inline, kernel
from muntin.kernels.layout import (
    CAP,
    COORD,
    COUNT,
    DONE,
    END,
    EVER,
    FULL,
    GROW,
    HELD,
    KIND,
    N_EXPIRED,
    N_RETRACTED,
    NEVER,
    NEXT,
    OVERFLOW,
    PARTITIONED,
    SIZE,
    STREAM,
    TAIL,
    TAIL_SLOT,
    TIME,
)
from muntin.kernels.nway_join import make_walk
from muntin.kernels.probe import probe
from muntin.kernels.rows import (
    dead,
    find_position,
    insert,
    row_address,
)


@inline
def step_tail(stores, s):
    """Move the tail over one row."""
    stores[s, TAIL] += 1
    slot = stores[s, TAIL_SLOT] + 1
    stores[s, TAIL_SLOT] = 0 if slot == stores[s, CAP] else slot


@inline
def retract(arena, program, s, seq, stamp, walk, output, count):
    """Retract every result that contains a row which leaves its window now, then expire the row.

    The row is joined with all rows still reachable: rows that left earlier are not, so every result
    is retracted once, by the first of its rows that leaves. Nothing changes when the results do not
    fit; the cell of the scratch behind the limits has the count of the last step that did.
    """
    words, stores = arena.words, arena.stores
    bound, counters = walk.bound, output.counters
    bound[s] = row_address(stores, s, seq)
    after = probe(arena, program, s, walk, 0, stamp, output, count)
    if after > output.out.shape[1]:
        return after
    if stores[s, KIND] == PARTITIONED:
        words[bound[s] + stores[s, END]] = 0
        while stores[s, TAIL] < stores[s, NEXT] and dead(
            words, stores, s, row_address(stores, s, stores[s, TAIL]), walk.limits[s]
        ):
            step_tail(stores, s)
    else:
        step_tail(stores, s)
    stores[s, HELD] -= 1
    counters[N_EXPIRED] += 1
    counters[N_RETRACTED] += after - count
    output.scratch[3 * stores.shape[0]] = after
    return after


@inline
def expire_due(arena, program, event, now, walk, output, count):
    """Retract for all rows of time windows that end by ``now``, in order of their ends."""
    words, stores = arena.words, arena.stores
    while count <= output.out.shape[1]:
        due = now + 1
        which = -1
        for s in range(stores.shape[0]):
            if stores[s, KIND] == TIME and stores[s, TAIL] < stores[s, NEXT]:
                end = words[row_address(stores, s, stores[s, TAIL]) + COORD] + stores[s, SIZE]
                if end < due:
                    due = end
                    which = s
        if which < 0:
            break
        stamp = Stamp(~event, due)
        count = retract(arena, program, which, stores[which, TAIL], stamp, walk, output, count)
    return count


@inline
def expire_counted(arena, program, s, stamp, counts, walk, output, count):
    """Retract for all rows that the newest row of a stream pushes out of count windows over it."""
    words, stores = arena.words, arena.stores
    for other in range(stores.shape[0]):
        if stores[other, STREAM] == stores[s, STREAM] and stores[other, KIND] == COUNT:
            limit = counts[~stamp.tag, other] - stores[other, SIZE] - 1
            while count <= output.out.shape[1] and stores[other, TAIL] < stores[other, NEXT]:
                tail = stores[other, TAIL]
                if words[row_address(stores, other, tail) + COORD] > limit:
                    break
                count = retract(arena, program, other, tail, stamp, walk, output, count)
    return count


@kernel(Arena, Program, EventArrays, Span, int, Output)
def join_signed(arena, program, events, span, now, output):
    """Join and retract in total order up to ``stop``, then retract what ends at or before ``now``.

    Tails are exact here (a row out of its window is unreachable before anything else happens), so a
    probe needs no window check: the limits let everything reachable through. Every step leaves
    ``count`` above the room of ``out`` only if it changed nothing, so it can be repeated.
    """
    halves, stores = arena.halves, arena.stores
    offsets, times = events.offsets, events.times
    out, counters, scratch = output.out, output.counters, output.scratch
    start, stop, resume, enough = span
    n = stores.shape[0]
    limits = scratch[2 * n : 3 * n]
    kept = scratch[3 * n : 3 * n + 1]
    walk = make_walk(stores, scratch, limits)
    bound = walk.bound
    for other in range(n):
        limits[other] = NEVER - 1 if stores[other, KIND] == PARTITIONED else EVER
    kept[0] = 0
    count = np.int64(0)
    room = out.shape[1]
    for e in range(start, stop):
        if count >= enough:
            return np.int64(FULL), np.int64(e), count, np.int64(0), np.int64(0)
        s = np.int64(events.sources[e])
        time = times[e]
        event = np.int64(e)
        if resume == 0:
            count = expire_due(arena, program, event, time, walk, output, count)
            if (
                count <= room
                and offsets[e] >= 0
                and stores[s, NEXT] - stores[s, TAIL] == stores[s, CAP]
            ):
                return np.int64(GROW), event, count, np.int64(0), np.int64(0)
            leaving = Stamp(~event, time)
            if count <= room:
                count = expire_counted(
                    arena, program, s, leaving, events.counts, walk, output, count
                )
            if count <= room and events.pushed[e] >= 0:
                seq = find_position(halves, stores, s, events.pushed[e])
                if seq >= 0:
                    count = retract(arena, program, s, seq, leaving, walk, output, count)
            if count > room:
                return np.int64(OVERFLOW), event, kept[0], count - kept[0], np.int64(0)
            if offsets[e] < 0:
                continue
            insert(arena, s, events.incoming, offsets[e], counters)
        resume = np.int64(0)
        bound[s] = row_address(stores, s, stores[s, NEXT] - 1)
        count = probe(arena, program, s, walk, 0, Stamp(event, time), output, count)
        if count > room:
            return np.int64(OVERFLOW), event, kept[0], count - kept[0], np.int64(1)
        kept[0] = count
    count = expire_due(arena, program, np.int64(stop), now, walk, output, count)
    if count > room:
        return np.int64(OVERFLOW), np.int64(stop), kept[0], count - kept[0], np.int64(0)
    return np.int64(DONE), np.int64(stop), count, np.int64(0), np.int64(0)
