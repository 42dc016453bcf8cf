"""Depth-first enumeration of the partners of bound rows, step by step along a join order.

Two walks. :func:`probe` starts from one row that is already bound (the origin first, as in EAGER
and LAZY of [Golab03]) and stops a chain at the first row outside its window. :func:`sweep` accepts
an order in which the new rows are anywhere (NAIVE and GENERAL LAZY): above them nothing is known
about windows, so their step checks all rows bound before it.

Results are appended to ``out``: event (complemented for a retraction), time, and the position of
every source's row. Both walks return the new count; when it exceeds the room in ``out`` the results
beyond are lost, and the caller repeats the step with more room. (An array that could be replaced
while it is filled would be reference-counted at every call, which costs more than the join.)
"""

from __future__ import annotations

import numpy as np

from muntin.kernels.arrays import Stamp
from muntin.kernels.jit import inline
from muntin.kernels.layout import (
    BUCKETS,
    COUNT,
    EVER,
    FORWARD,
    HEAD_STEP,
    HEADS,
    KEY_COUNT,
    KIND,
    LINK,
    MODULAR,
    N_COMPARED,
    N_PROBES,
    N_SCANNED,
    N_STALE,
    NEXT,
    PARTITIONED,
    POSITION,
    PRIMARY,
    PROBE,
    PROBE_INSERT,
    SIZE,
    STEP_ARGUMENTS,
    STEP_CHECKS,
    STEP_INDEX,
    STEP_KEYS,
    STEP_SAME_LATER,
    STEP_STORE,
    STORED,
    TAIL,
    TIME,
)
from muntin.kernels.rows import (
    bucket_of,
    clean_bucket,
    dead,
    full_position,
    head_of,
    holds,
    mix,
    newest_in,
    row_address,
)


@inline
def set_limits(stores, time, counts, event, limits):
    """Set what a row must be above to be inside its window at an event."""
    for s in range(stores.shape[0]):
        kind = stores[s, KIND]
        if kind == TIME:
            limits[s] = time - stores[s, SIZE]
        elif kind == COUNT:
            limits[s] = counts[event, s] - stores[s, SIZE] - 1
        elif kind == PARTITIONED:
            limits[s] = counts[event, s]
        else:
            limits[s] = EVER


@inline
def step_bucket(words, indexes, flat, at, bound):
    """Return the bucket that a step looks into, from the codes of rows bound before it."""
    x = flat[at + STEP_INDEX]
    hashed = np.uint64(0)
    code = np.int64(0)
    for c in range(indexes[x, KEY_COUNT]):
        argument = at + STEP_ARGUMENTS + 2 * c
        code = words[bound[flat[argument]] + flat[argument + 1]]
        hashed = mix(np.int64(hashed) ^ code)
    return bucket_of(hashed, code, indexes[x, MODULAR], indexes[x, BUCKETS])


@inline
def begin(arena, flat, at, bound, limits, policy, counters):
    """Return the newest candidate of a step.

    The policies of [Kostowski06] clean its bucket first.
    """
    words, halves, stores, indexes = arena.words, arena.halves, arena.stores, arena.indexes
    s = flat[at + STEP_STORE]
    counters[N_PROBES] += 1
    x = flat[at + STEP_INDEX]
    if x < 0:
        return stores[s, NEXT] - 1
    bucket = step_bucket(words, indexes, flat, at, bound)
    if (policy == PROBE or policy == PROBE_INSERT) and x == stores[s, PRIMARY]:
        clean_bucket(arena, x, bucket, limits[s], counters)
    return newest_in(halves, stores, s, indexes, x, bucket)


@inline
def begin_before(arena, flat, at, walk, policy, counters):
    """Return the newest candidate of a step that is older than the bound of its store."""
    halves, stores, indexes, bounds = arena.halves, arena.stores, arena.indexes, walk.bounds
    s = flat[at + STEP_STORE]
    x = flat[at + STEP_INDEX]
    seq = begin(arena, flat, at, walk.bound, walk.limits, policy, counters)
    if x < 0:
        return min(seq, bounds[s] - 1)
    while seq >= bounds[s] and seq >= stores[s, TAIL]:
        distance = np.int64(halves[2 * row_address(stores, s, seq) + indexes[x, LINK]])
        seq = seq - distance if distance != 0 else np.int64(-1)
    return seq


@inline
def matches(words, flat, at, address, bound):
    """Return whether a candidate's codes agree with those of the rows bound before it."""
    argument = at + STEP_ARGUMENTS + 2 * flat[at + STEP_KEYS]
    for _ in range(flat[at + STEP_CHECKS]):
        other = words[bound[flat[argument + 2]] + flat[argument + 3]]
        if not holds(flat[argument], words[address + flat[argument + 1]], other):
            return False
        argument += 4
    return True


@inline
def emit(arena, bound, stamp, out, count):
    """Append one result where there is room, and count it in any case."""
    halves, stores = arena.halves, arena.stores
    if count < out.shape[1]:
        out[0, count] = stamp.tag
        out[1, count] = stamp.time
        for s in range(stores.shape[0]):
            out[2 + s, count] = full_position(stores, s, halves[2 * bound[s] + POSITION])
    return count + 1


@inline
def splice(arena, flat, at, bound, newer, older):
    """Remove dead rows from a chain: link the row before them, or the head, to the one behind.

    Rows die in the middle of a chain only in partitioned windows. They stay dead for all that
    comes, so each is met once; without this a partition with many rows would leave a long trail of
    dead ones in its bucket.
    """
    words, halves, stores, indexes = arena.words, arena.halves, arena.stores, arena.indexes
    s = flat[at + STEP_STORE]
    x = flat[at + STEP_INDEX]
    alive = older if older >= stores[s, TAIL] else np.int64(-1)
    if newer >= 0:
        link = 2 * row_address(stores, s, newer) + indexes[x, LINK]
        halves[link] = np.int32(newer - alive if alive >= 0 else 0)
    else:
        head = (
            indexes[x, HEADS] + step_bucket(words, indexes, flat, at, bound) * indexes[x, HEAD_STEP]
        )
        halves[head] = head_of(alive) if alive >= 0 else np.int32(0)


@inline
def probe(arena, program, origin, walk, policy, stamp, output, count):
    """Append all results with the one row bound so far, partners newest first; return the count.

    Partners are inside the limits of the walk and below its bounds.
    """
    words, halves, stores, indexes = arena.words, arena.halves, arena.stores, arena.indexes
    flat, stride = program.flat, program.stride
    bound, cursor, newest, limits = walk.bound, walk.cursor, walk.newest, walk.limits
    out, counters = output.out, output.counters
    steps = origin * stores.shape[0] * stride
    last = stores.shape[0] - 2
    if last < 0:
        return emit(arena, bound, stamp, out, count)
    level = 0
    scanned = np.int64(0)
    compared = np.int64(0)
    stale = np.int64(0)
    cursor[0] = begin_before(arena, flat, steps, walk, policy, counters)
    newest[0] = -1
    while level >= 0:
        at = steps + level * stride
        s = flat[at + STEP_STORE]
        x = flat[at + STEP_INDEX]
        tail = stores[s, TAIL]
        ordered = stores[s, KIND] != PARTITIONED
        seq = cursor[level]
        newer = newest[level]
        found = False
        while seq >= tail:
            address = row_address(stores, s, seq)
            scanned += 1
            older = seq - 1
            if x >= 0:
                distance = np.int64(halves[2 * address + indexes[x, LINK]])
                older = seq - distance if distance != 0 else np.int64(-1)
            if dead(words, stores, s, address, limits[s]):
                stale += 1
                if ordered:
                    break
                if x >= 0 and stores[s, FORWARD] < 0:
                    splice(arena, flat, at, bound, newer, older)
                seq = older
                continue
            compared += 1
            newer = seq
            seq = older
            if matches(words, flat, at, address, bound):
                bound[s] = address
                found = True
                break
        if not found:
            level -= 1
        else:
            cursor[level] = seq
            newest[level] = newer
            if level == last:
                count = emit(arena, bound, stamp, out, count)
            else:
                level += 1
                cursor[level] = begin_before(
                    arena, flat, steps + level * stride, walk, policy, counters
                )
                newest[level] = -1
    counters[N_SCANNED] += scanned
    counters[N_COMPARED] += compared
    counters[N_STALE] += stale
    return count


@inline
def precedes(stores, halves, s, address, bound_count):
    """Return whether a row is among the first ``bound_count`` rows of its stream.

    Those of a stored table always do.
    """
    return (
        stores[s, KIND] == STORED
        or full_position(stores, s, halves[2 * address + POSITION]) < bound_count
    )


@inline
def fits(arena, program, steps, place, walk, counts, event):
    """Return whether the rows bound before step ``place`` precede the new row and are alive."""
    words, halves, stores = arena.words, arena.halves, arena.stores
    flat, stride = program.flat, program.stride
    for level in range(place):
        s = flat[steps + level * stride + STEP_STORE]
        address = walk.bound[s]
        if dead(words, stores, s, address, walk.limits[s]):
            return False
        later = flat[steps + level * stride + STEP_SAME_LATER]
        if not precedes(stores, halves, s, address, counts[event, s] - later):
            return False
    return True


@inline
def sweep(arena, program, origin, arrived, events, walk, output, count):
    """Append all results whose newest row is one of the new rows of the origin; return the count.

    Every row of every store may be newer or older than such a row, so precedence is checked by
    stream counts: ``counts[event, s]`` rows of the stream of store ``s`` had come with the event.
    """
    words, halves, stores, indexes = arena.words, arena.halves, arena.stores, arena.indexes
    flat, stride = program.flat, program.stride
    bound, cursor, limits = walk.bound, walk.cursor, walk.limits
    times, counts = events.times, events.counts
    out, counters = output.out, output.counters
    low, high = arrived.low, arrived.high
    steps = origin * stores.shape[0] * stride
    last = stores.shape[0] - 1
    level = 0
    place = -1
    for i in range(last + 1):
        if flat[steps + i * stride + STEP_STORE] == origin:
            place = i
    event = np.int64(0)
    scanned = np.int64(0)
    compared = np.int64(0)
    stale = np.int64(0)
    cursor[0] = begin(arena, flat, steps, bound, limits, 0, counters)
    while level >= 0:
        at = steps + level * stride
        s = flat[at + STEP_STORE]
        x = flat[at + STEP_INDEX]
        floor = stores[s, TAIL]
        if level == place and low > floor:
            floor = low
        seq = cursor[level]
        found = False
        while seq >= floor:
            address = row_address(stores, s, seq)
            mine = seq
            scanned += 1
            seq = mine - 1
            if x >= 0:
                distance = np.int64(halves[2 * address + indexes[x, LINK]])
                seq = mine - distance if distance != 0 else np.int64(-1)
            if level == place:
                if mine >= high:
                    continue
                compared += 1
                if not matches(words, flat, at, address, bound):
                    continue
                event = arrived.events[arrived.first + mine - low]
                set_limits(stores, times[event], counts, event, limits)
                bound[s] = address
                if not fits(arena, program, steps, place, walk, counts, event):
                    stale += 1
                    continue
            elif level > place:
                if not precedes(
                    stores, halves, s, address, counts[event, s] - flat[at + STEP_SAME_LATER]
                ):
                    continue
                if dead(words, stores, s, address, limits[s]):
                    stale += 1
                    if stores[s, KIND] != PARTITIONED:
                        break
                    continue
                compared += 1
                if not matches(words, flat, at, address, bound):
                    continue
            else:
                compared += 1
                if not matches(words, flat, at, address, bound):
                    continue
            bound[s] = address
            found = True
            break
        if not found:
            level -= 1
        else:
            cursor[level] = seq
            if level == last:
                count = emit(arena, bound, Stamp(event, times[event]), out, count)
            else:
                level += 1
                cursor[level] = begin(
                    arena, flat, steps + level * stride, bound, limits, 0, counters
                )
    counters[N_SCANNED] += scanned
    counters[N_COMPARED] += compared
    counters[N_STALE] += stale
    return count
