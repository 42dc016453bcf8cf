"""The join loops: events in total order in, results out.

:func:`join_arrivals` handles each row as it comes (EAGER, or NAIVE with the row at its place in the
global order) under any expiry policy. :func:`join_interval` inserts all rows of an interval first
and joins them afterwards (LAZY and GENERAL LAZY); :func:`join_intervals` does that for many
intervals. :func:`join_snapshot` computes the answer of an instant. (EMIT CHANGES has its own loop
in :mod:`muntin.kernels.changelog_join`.)

All return ``(status, event, count, need, resume)``: the first ``count`` columns of ``out`` are
results, and the caller resumes from ``event``. FULL: enough results are waiting. GROW: the store of
the event's row is full. OVERFLOW: the results of the next step do not fit; nothing of the step was
kept, it needs ``need`` columns, and ``resume`` (to be passed on) says whether the event's row is in
its store already. ``scratch`` has SCRATCH numbers and five a store; what it holds means nothing
between calls.
"""

from __future__ import annotations

import numpy as np

from muntin.kernels.arrays import (
    Arena,
    Arrived,
    EventArrays,
    Integers,
    Output,
    Program,
    Span,
    Stamp,
    Walk,
)
from muntin.kernels.jit import inline, kernel
from muntin.kernels.layout import (
    ALL,
    CAP,
    COUNTERS,
    DONE,
    EAGER,
    END,
    FORWARD,
    FULL,
    GROW,
    HELD,
    LAZY,
    NEVER,
    NEXT,
    OVERFLOW,
    OWN,
    PRIMARY,
    PROBE_ALL,
    PROBE_INSERT,
    SILENT,
    TAIL,
)
from muntin.kernels.prefetch import fetch_first, fetch_heads, fetch_second
from muntin.kernels.probe import probe, set_limits, sweep
from muntin.kernels.rows import (
    clean_all,
    clean_bucket,
    dead,
    expire_tail,
    expire_two,
    find_position,
    free_cleaned,
    insert,
    row_address,
    row_bucket,
)

_HEADS_AHEAD = 24
_FIRST_AHEAD = 16
_SECOND_AHEAD = 8
_PIPE = 31


@inline
def copy_counters(source, target):
    """Remember the counters before a step that may have to be repeated."""
    for i in range(COUNTERS):
        target[i] = source[i]


@inline
def push_out(words, halves, stores, s, position, count):
    """Note in a row of a partitioned window that it left when the stream had ``count`` rows."""
    seq = find_position(halves, stores, s, position)
    if seq >= 0:
        end = row_address(stores, s, seq) + stores[s, END]
        if words[end] == NEVER:
            words[end] = count
            stores[s, HELD] -= 1


@inline
def expire_before(arena, policy, origin, limits, counters):
    """Expire what a policy expires on an arrival before the row probes."""
    words, stores = arena.words, arena.stores
    for s in range(stores.shape[0]):
        if policy == EAGER:
            expire_tail(words, stores, s, limits[s], counters)
        elif stores[s, PRIMARY] >= 0 and (policy == ALL or (policy == PROBE_ALL and s != origin)):
            clean_all(arena, stores[s, PRIMARY], limits[s], counters)


@inline
def make_walk(stores, scratch, limits):
    """Return scratch for a walk that may bind all rows in store; ``saved`` counters follow it."""
    n = stores.shape[0]
    newest = scratch[4 * n + 1 + COUNTERS : 5 * n + 1 + COUNTERS]
    return Walk(scratch[:n], scratch[n : 2 * n], newest, stores[:, NEXT], limits)


@kernel(Arena, Program, EventArrays, int, int, Integers, Span, Output)
def join_arrivals(arena, program, events, naive, policy, expiry, span, output):
    """Join rows one by one in total order; see the module docstring for the result.

    ``expiry`` is the next instant at which LAZY expires rows, and its interval.
    """
    words, halves, stores, indexes = arena.words, arena.halves, arena.stores, arena.indexes
    sources, offsets, times, counts = events.sources, events.offsets, events.times, events.counts
    flat, stride = program.flat, program.stride
    out, counters, scratch = output.out, output.counters, output.scratch
    start, stop, resume, enough = span
    n = stores.shape[0]
    limits = scratch[2 * n : 3 * n]
    walk = make_walk(stores, scratch, limits)
    bound = walk.bound
    single = scratch[3 * n : 3 * n + 1]
    saved = scratch[4 * n + 1 : 4 * n + 1 + COUNTERS]
    count = np.int64(0)
    looking = n > 1 and not naive
    pipe = scratch[scratch.shape[0] - _PIPE - 1 :]
    for place in range(_PIPE + 1):
        pipe[place] = -1
    for e in range(start, stop):
        if count >= enough:
            return np.int64(FULL), np.int64(e), count, np.int64(0), np.int64(0)
        s = np.int64(sources[e])
        time = times[e]
        if looking:
            ahead = e + _HEADS_AHEAD
            if ahead < stop and offsets[ahead] >= 0:
                other = np.int64(sources[ahead])
                fetch_heads(
                    arena, flat, other * n * stride, other, events.incoming, offsets[ahead],
                    pipe, ahead & _PIPE,
                )  # fmt: skip
            ahead = e + _FIRST_AHEAD
            if ahead < stop and offsets[ahead] >= 0:
                at = np.int64(sources[ahead]) * n * stride
                fetch_first(arena, flat, at, pipe, ahead & _PIPE)
            ahead = e + _SECOND_AHEAD
            if ahead < stop and offsets[ahead] >= 0:
                at = np.int64(sources[ahead]) * n * stride
                fetch_second(arena, flat, at, pipe, ahead & _PIPE)
        set_limits(stores, time, counts, e, limits)
        if resume == 0:
            if offsets[e] >= 0 and stores[s, NEXT] - stores[s, TAIL] == stores[s, CAP]:
                if stores[s, FORWARD] >= 0:
                    free_cleaned(arena, s)
                elif policy != LAZY:
                    expire_tail(words, stores, s, limits[s], counters)
                if stores[s, NEXT] - stores[s, TAIL] == stores[s, CAP]:
                    return np.int64(GROW), np.int64(e), count, np.int64(0), np.int64(0)
            if events.pushed[e] >= 0:
                push_out(words, halves, stores, s, events.pushed[e], counts[e, s])
            if policy == LAZY and time >= expiry[0]:
                for other in range(n):
                    expire_tail(words, stores, other, limits[other], counters)
                expiry[0] = time - time % expiry[1] + expiry[1]
            if offsets[e] < 0:
                continue
            if policy == EAGER or policy == PROBE_ALL or policy == ALL:
                expire_before(arena, policy, s, limits, counters)
            insert(arena, s, events.incoming, offsets[e], counters)
            if policy == OWN:
                expire_two(words, stores, s, limits[s], counters)
        seq = stores[s, NEXT] - 1
        bound[s] = row_address(stores, s, seq)
        resume = 0
        before = count
        copy_counters(counters, saved)
        if naive:
            single[0] = e
            arrived = Arrived(seq, seq + 1, single, 0)
            count = sweep(arena, program, s, arrived, events, walk, output, count)
        else:
            stamp = Stamp(np.int64(e), time)
            count = probe(arena, program, s, walk, policy, stamp, output, count)
        if count > out.shape[1]:
            copy_counters(saved, counters)
            return np.int64(OVERFLOW), np.int64(e), before, count - before, np.int64(1)
        if policy == PROBE_INSERT and stores[s, PRIMARY] >= 0:
            x = stores[s, PRIMARY]
            bucket = row_bucket(words, indexes, x, bound[s])
            clean_bucket(arena, x, bucket, limits[s], counters)
    return np.int64(DONE), np.int64(stop), count, np.int64(0), np.int64(0)


@inline
def join_new(arena, program, events, span, order, output, count):
    """Insert the rows of the events, then join the new rows of each source; return the count.

    All stores have room. ``resume`` 1: the rows are in already; SILENT: only insert. ``order`` has
    a place per row. If the results do not fit, the counters are as after the insertion.
    """
    words, halves, stores = arena.words, arena.halves, arena.stores
    sources, offsets, counts = events.sources, events.offsets, events.counts
    out, counters, scratch = output.out, output.counters, output.scratch
    start, stop, resume = span.start, span.stop, span.resume
    n = stores.shape[0]
    walk = make_walk(stores, scratch, scratch[2 * n : 3 * n])
    cursor = walk.cursor
    begins = scratch[3 * n : 4 * n + 1]
    saved = scratch[4 * n + 1 : 4 * n + 1 + COUNTERS]
    for other in range(n + 1):
        begins[other] = 0
    for e in range(start, stop):
        if offsets[e] >= 0:
            begins[sources[e] + 1] += 1
    for s in range(n):
        begins[s + 1] += begins[s]
    for other in range(n):
        cursor[other] = begins[other]
    for e in range(start, stop):
        s = np.int64(sources[e])
        if resume != 1 and events.pushed[e] >= 0:
            push_out(words, halves, stores, s, events.pushed[e], counts[e, s])
        if offsets[e] < 0:
            continue
        if resume != 1:
            insert(arena, s, events.incoming, offsets[e], counters)
        order[cursor[s]] = e
        cursor[s] += 1
    copy_counters(counters, saved)
    for s in range(n):
        new = begins[s + 1] - begins[s]
        if new > 0 and resume != SILENT:
            arrived = Arrived(stores[s, NEXT] - new, stores[s, NEXT], order, begins[s])
            count = sweep(arena, program, s, arrived, events, walk, output, count)
    if count > out.shape[1]:
        copy_counters(saved, counters)
    return count


@kernel(Arena, Program, EventArrays, Span, Integers, Output)
def join_interval(arena, program, events, span, order, output):
    """Insert the rows of the events, then join the new rows of each source; all stores have room.

    ``resume`` 1: the rows are in already; SILENT: only insert. ``order`` has a place per row.
    """
    count = join_new(arena, program, events, span, order, output, np.int64(0))
    if count > output.out.shape[1]:
        return np.int64(OVERFLOW), np.int64(span.start), np.int64(0), count, np.int64(1)
    return np.int64(DONE), np.int64(span.stop), count, np.int64(0), np.int64(0)


@inline
def has_room(stores, events, start, stop, arriving):
    """Return whether the rows of some events fit into their stores; ``arriving`` is scratch."""
    for s in range(stores.shape[0]):
        arriving[s] = stores[s, NEXT] - stores[s, TAIL]
    for e in range(start, stop):
        if events.offsets[e] >= 0:
            arriving[events.sources[e]] += 1
    fits_in = True
    for s in range(stores.shape[0]):
        fits_in = fits_in and arriving[s] <= stores[s, CAP]
    return fits_in


@kernel(Arena, Program, EventArrays, Integers, Integers, int, Integers, Span, Integers, Output)
def join_intervals(arena, program, events, stops, instants, policy, expiry, span, order, output):
    """Join interval after interval; see the module docstring for the result.

    An interval ends before event ``stops[i]``, at an instant after which rows that have left may
    expire; ``policy`` is OWN or, at instants of ``expiry`` only, LAZY. GROW and OVERFLOW concern
    the interval that begins with the event.
    """
    words, stores = arena.words, arena.stores
    counters, scratch = output.counters, output.scratch
    n = stores.shape[0]
    limits = scratch[2 * n : 3 * n]
    start, _, resume, enough = span
    count = np.int64(0)
    for i in range(stops.shape[0]):
        stop = stops[i]
        if stop <= start:
            continue
        if count >= enough:
            return np.int64(FULL), np.int64(start), count, np.int64(0), np.int64(0)
        if resume != 1 and not has_room(stores, events, start, stop, limits):
            return np.int64(GROW), np.int64(start), count, np.int64(0), np.int64(0)
        before = count
        count = join_new(arena, program, events, Span(start, stop, resume, 0), order, output, count)
        if count > output.out.shape[1]:
            return np.int64(OVERFLOW), np.int64(start), before, count - before, np.int64(1)
        if policy != LAZY or instants[i] >= expiry[0]:
            if policy == LAZY:
                expiry[0] = instants[i] - instants[i] % expiry[1] + expiry[1]
            set_limits(stores, events.times[stop - 1], events.counts, stop - 1, limits)
            for s in range(n):
                expire_tail(words, stores, s, limits[s], counters)
        start = stop
        resume = np.int64(0)
    return np.int64(DONE), np.int64(span.stop), count, np.int64(0), np.int64(0)


@kernel(Arena, Integers, int, Integers)
def expire_all(arena, limits, policy, counters):
    """Expire between batches what a policy lets go: move the tails."""
    words, stores = arena.words, arena.stores
    for s in range(stores.shape[0]):
        if stores[s, FORWARD] >= 0:
            free_cleaned(arena, s)
        elif policy != LAZY:
            expire_tail(words, stores, s, limits[s], counters)


@kernel(Arena, Program, int, Integers, Span, Output)
def join_snapshot(arena, program, origin, limits, span, output):
    """Join the rows inside ``limits`` with the rows of the span in the origin's store."""
    words, stores = arena.words, arena.stores
    walk = make_walk(stores, output.scratch, limits)
    bound, stamp = walk.bound, Stamp(np.int64(0), np.int64(0))
    count = np.int64(0)
    for seq in range(span.start, span.stop):
        bound[origin] = row_address(stores, origin, seq)
        if dead(words, stores, origin, bound[origin], limits[origin]):
            continue
        before = count
        count = probe(arena, program, origin, walk, 0, stamp, output, count)
        if count > output.out.shape[1]:
            return np.int64(OVERFLOW), np.int64(seq), before, count - before, np.int64(0)
    return np.int64(DONE), np.int64(span.stop), count, np.int64(0), np.int64(0)
