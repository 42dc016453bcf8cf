"""The join loop that also takes rows back: every row at the instant it leaves its window (EMIT CHANGES).

Returns what the loops of :mod:`muntin.kernels.nway_join` return, and is called again in the same way.
"""

from __future__ import annotations

import numpy as np

from muntin.kernels.jit import inline, kernel
from muntin.kernels.layout import (
    CAP,
    COORD,
    COUNT,
    COUNTERS,
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
def take_back(
    words,
    halves,
    stores,
    indexes,
    program,
    stride,
    s,
    seq,
    event,
    time,
    bound,
    cursor,
    newest,
    limits,
    out,
    count,
    kept,
    counters,
):
    """Retract every result that contains a row which leaves its window now, then let the row go.

    The row is joined with all rows still reachable: rows that left earlier are not, so every result is
    retracted once, by the first of its rows that leaves. Nothing changes when the results do not fit;
    ``kept`` remembers the count of the last step that did.
    """
    bound[s] = row_address(stores, s, seq)
    n = stores.shape[0]
    after = probe(
        words,
        halves,
        stores,
        indexes,
        program,
        s * n * stride,
        stride,
        bound,
        cursor,
        newest,
        stores[:, NEXT],
        limits,
        0,
        ~event,
        time,
        out,
        count,
        counters,
    )
    if after > out.shape[1]:
        return after
    if stores[s, KIND] == PARTITIONED:
        words[bound[s] + stores[s, END]] = 0
        while stores[s, TAIL] < stores[s, NEXT] and dead(
            words, stores, s, row_address(stores, s, stores[s, TAIL]), limits[s]
        ):
            step_tail(stores, s)
    else:
        step_tail(stores, s)
    stores[s, HELD] -= 1
    counters[N_EXPIRED] += 1
    counters[N_RETRACTED] += after - count
    kept[0] = after
    return after


@inline
def expire_due(
    words,
    halves,
    stores,
    indexes,
    program,
    stride,
    event,
    now,
    bound,
    cursor,
    newest,
    limits,
    out,
    count,
    kept,
    counters,
):
    """Retract for all rows of time windows that end at or before ``now``, in the order of their ends."""
    while count <= out.shape[1]:
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
        count = take_back(
            words, halves, stores, indexes, program, stride, which, stores[which, TAIL], event, due, bound, cursor, newest, limits,
            out, count, kept, counters,
        )  # fmt: skip
    return count


@inline
def expire_counted(
    words,
    halves,
    stores,
    indexes,
    program,
    stride,
    s,
    event,
    time,
    counts,
    bound,
    cursor,
    newest,
    limits,
    out,
    count,
    kept,
    counters,
):
    """Retract for all rows that the newest row of store ``s``'s stream pushes out of count windows over it."""
    for other in range(stores.shape[0]):
        if stores[other, STREAM] == stores[s, STREAM] and stores[other, KIND] == COUNT:
            limit = counts[event, other] - stores[other, SIZE] - 1
            while count <= out.shape[1] and stores[other, TAIL] < stores[other, NEXT]:
                tail = stores[other, TAIL]
                if words[row_address(stores, other, tail) + COORD] > limit:
                    break
                count = take_back(
                    words,
                    halves,
                    stores,
                    indexes,
                    program,
                    stride,
                    other,
                    tail,
                    event,
                    time,
                    bound,
                    cursor,
                    newest,
                    limits,
                    out,
                    count,
                    kept,
                    counters,
                )
    return count


@kernel(
    "(int64[::1], int32[::1], int64[:,::1], int64[:,::1], int64[::1], int64[::1], int64,"
    " int32[::1], int64[::1], int64[::1], int64[:,::1], int64[::1], int64[::1],"
    " int64, int64, int64, int64, int64, int64[:,::1], int64[::1], int64[::1])"
)
def join_signed(
    words, halves, stores, indexes, first_index, program, stride,
    aliases, offsets, times, counts, evicted, incoming,
    start, stop, resume, now, enough, out, counters, scratch,
):  # fmt: skip
    """Join and retract in total order up to event ``stop``, then retract what ends at or before ``now``.

    Tails are exact here (a row out of its window is unreachable before anything else happens), so a
    probe needs no window check: the limits let everything reachable through. Every step leaves ``count``
    above the room of ``out`` only if it changed nothing, so it can be repeated.
    """
    n = stores.shape[0]
    bound = scratch[:n]
    cursor = scratch[n : 2 * n]
    newest = scratch[4 * n + 1 + COUNTERS : 5 * n + 1 + COUNTERS]
    limits = scratch[2 * n : 3 * n]
    kept = scratch[3 * n : 3 * n + 1]
    for other in range(n):
        limits[other] = NEVER - 1 if stores[other, KIND] == PARTITIONED else EVER
    kept[0] = 0
    count = np.int64(0)
    room = out.shape[1]
    for e in range(start, stop):
        if count >= enough:
            return np.int64(FULL), np.int64(e), count, np.int64(0), np.int64(0)
        s = np.int64(aliases[e])
        time = times[e]
        event = np.int64(e)
        if resume == 0:
            count = expire_due(
                words,
                halves,
                stores,
                indexes,
                program,
                stride,
                event,
                time,
                bound,
                cursor,
                newest,
                limits,
                out,
                count,
                kept,
                counters,
            )
            if (
                count <= room
                and offsets[e] >= 0
                and stores[s, NEXT] - stores[s, TAIL] == stores[s, CAP]
            ):
                return np.int64(GROW), event, count, np.int64(0), np.int64(0)
            if count <= room:
                count = expire_counted(
                    words,
                    halves,
                    stores,
                    indexes,
                    program,
                    stride,
                    s,
                    event,
                    time,
                    counts,
                    bound,
                    cursor,
                    newest,
                    limits,
                    out,
                    count,
                    kept,
                    counters,
                )
            if count <= room and evicted[e] >= 0:
                seq = find_position(halves, stores, s, evicted[e])
                if seq >= 0:
                    count = take_back(
                        words,
                        halves,
                        stores,
                        indexes,
                        program,
                        stride,
                        s,
                        seq,
                        event,
                        time,
                        bound,
                        cursor,
                        newest,
                        limits,
                        out,
                        count,
                        kept,
                        counters,
                    )
            if count > room:
                return np.int64(OVERFLOW), event, kept[0], count - kept[0], np.int64(0)
            if offsets[e] < 0:
                continue
            insert(words, halves, stores, indexes, s, first_index, incoming, offsets[e], counters)
        resume = 0
        bound[s] = row_address(stores, s, stores[s, NEXT] - 1)
        count = probe(
            words,
            halves,
            stores,
            indexes,
            program,
            s * n * stride,
            stride,
            bound,
            cursor,
            newest,
            stores[:, NEXT],
            limits,
            0,
            event,
            time,
            out,
            count,
            counters,
        )
        if count > room:
            return np.int64(OVERFLOW), event, kept[0], count - kept[0], np.int64(1)
        kept[0] = count
    count = expire_due(
        words,
        halves,
        stores,
        indexes,
        program,
        stride,
        np.int64(stop),
        now,
        bound,
        cursor,
        newest,
        limits,
        out,
        count,
        kept,
        counters,
    )
    if count > room:
        return np.int64(OVERFLOW), np.int64(stop), kept[0], count - kept[0], np.int64(0)
    return np.int64(DONE), np.int64(stop), count, np.int64(0), np.int64(0)
