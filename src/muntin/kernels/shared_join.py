"""A shared join under LWO, SWF or MQT ([Hammad03]): pairs of an outer row and a level, in order.

:mod:`muntin.testing.schedules` defines what happens in which order, step by step;
:mod:`muntin.kernels.scheduler_state` defines the arrays. A call runs until all work is done, room
runs out, or it is time to return; the next call resumes what was begun.

Why no result is lost or doubled when a call ends early: a scan keeps its pointer
(:mod:`muntin.kernels.level_scan`), or its tree (:mod:`muntin.kernels.tree_scan`). A row that has
finished a level is marked (``ENDING``) until all its results are out; ``given`` is what each level
has got of its front row.

A row costs what it costs alone, and a few nanoseconds per level.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from muntin.kernels.arrays import (
    Arena,
    EventArrays,
    Integers,
    LevelArrays,
    Output,
    Program,
    QueueArrays,
    Table,
)
from muntin.kernels.clock import now_ns
from muntin.kernels.jit import inline, kernel
from muntin.kernels.layout import (
    CAP,
    DONE,
    GROW,
    LAST,
    LINK,
    N_PROBES,
    NEXT,
    STEP_ARGUMENTS,
    STEP_CHECKS,
    STEP_INDEX,
    STEP_KEYS,
    TAIL,
)
from muntin.kernels.level_scan import Clock, Scanned, limit_when, make_scan
from muntin.kernels.memory import prefetch
from muntin.kernels.probe import step_bucket
from muntin.kernels.result_router import end_level, move_on
from muntin.kernels.rows import (
    expire_tail,
    expire_two,
    insert,
    newest_in,
    row_address,
)
from muntin.kernels.scheduler_queues import choose, join_queue
from muntin.kernels.scheduler_state import (
    ENDING,
    EVENT,
    FOUND,
    MORE_ROWS,
    MOST_WAITING,
    O_ARRIVAL,
    O_CODE,
    O_FIRST,
    O_KEPT,
    O_LAST,
    O_OWN,
    O_POSITION,
    O_RESUME,
    O_TIME,
    PAUSED,
    R_FROM,
    R_UNTIL,
    UNTIL,
)
from muntin.kernels.tree_scan import make_scan_many

_AHEAD = 6
"""Outer rows of a queue whose next candidate is fetched early."""
_ANY = (1 << 62) - 1


@inline
def take(arena, program, events, arrivals, queues, bound, counters):
    """Store the next row and let it wait for the smallest window; DONE, or what ran out."""
    words, halves, stores, indexes = arena.words, arena.halves, arena.stores, arena.indexes
    flat, stride = program.flat, program.stride
    times, counts = events.times, events.counts
    state, done, links, outers = queues.state, queues.done, queues.links, queues.outers
    bases, bounds = queues.bases, queues.bounds
    e = state[EVENT]
    n = stores.shape[0]
    end = done.shape[0] - 1
    mask = outers.shape[0] - 1
    s = np.int64(events.sources[e])
    number = done[0]
    if number - done[end] > mask:
        return np.int64(MORE_ROWS)
    slot = number & mask
    if bases.shape[0] > 1:
        for other in range(n):
            bases[slot, other] = counts[e, other] - 1
    # Rows that the oldest waiting row may still look at stay; the new row itself if none waits.
    oldest = done[end]
    time = times[e]
    since = slot
    if oldest < number:
        since = oldest & mask
        time = outers[since, O_TIME]
    limit = limit_when(stores, s, time, bases, since if bases.shape[0] > 1 else 0)
    if stores[s, NEXT] - stores[s, TAIL] == stores[s, CAP]:
        expire_tail(words, stores, s, limit, counters)
        if stores[s, NEXT] - stores[s, TAIL] == stores[s, CAP]:
            return np.int64(GROW)
    own = insert(arena, s, events.incoming, events.offsets[e], counters)
    expire_two(words, stores, s, limit, counters)
    row = outers[slot]
    row[O_TIME] = times[e]
    row[O_OWN] = 16 * (stores[s, NEXT] - 1) + s
    row[O_ARRIVAL] = arrivals[e] if arrivals.shape[0] > 1 else arrivals[0]
    row[O_FIRST] = -1
    row[O_LAST] = -1
    row[O_POSITION] = stores[s, LAST]
    row[O_CODE] = 0
    at = s * n * stride
    if n == 2:
        bound[s] = own
        o = 1 - s
        x = flat[at + STEP_INDEX]
        if x < 0:
            row[O_RESUME] = stores[o, NEXT] - 1
        else:
            row[O_RESUME] = newest_in(
                halves, stores, o, indexes, x, step_bucket(words, indexes, flat, at, bound)
            )
        if flat[at + STEP_CHECKS] > 0:
            row[O_CODE] = words[own + flat[at + STEP_ARGUMENTS + 2 * flat[at + STEP_KEYS] + 3]]
        counters[N_PROBES] += 1
    else:
        row[O_KEPT] = 0
        for other in range(n):
            bounds[slot, other] = stores[other, NEXT]
    state[EVENT] = e + 1
    done[0] = number + 1
    if done[0] - done[1] == 1:
        join_queue(state, links, np.int64(0), np.int64(end))
    if done[0] - done[end] > state[MOST_WAITING]:
        state[MOST_WAITING] = done[0] - done[end]
    return np.int64(DONE)


def make_schedule(policy: Clock) -> Any:
    """Return the loop of a shared join by a clock; see :func:`run_schedule`."""
    read, has_come, note_taken = policy.read, policy.has_come, policy.note_taken
    wait, record = policy.wait, policy.record
    scan, scan_many = make_scan(policy), make_scan_many(policy)

    @inline
    def run(arena, program, events, arrivals, levels, queues, clock, output):
        """Take rows and work them off."""
        words, stores, offsets = arena.words, arena.stores, events.offsets
        state, done, outers = queues.state, queues.done, queues.outers
        sizes, out, counters, scratch = levels.sizes, output.out, output.counters, output.scratch
        n = stores.shape[0]
        mask = outers.shape[0] - 1
        bound = scratch[:n]
        count = state[FOUND]
        stop = np.int64(events.times.shape[0])
        stepped = False
        if state[ENDING] > 0:
            status, count = end_level(state[ENDING] - 1, queues, sizes, read(clock), out, count)
            state[FOUND] = count
            if status != DONE:
                return status
        now = read(clock)
        while True:
            while state[EVENT] < stop:
                e = state[EVENT]
                if not has_come(clock, arrivals[e] if arrivals.shape[0] > 1 else arrivals[0], now):
                    break
                if offsets[e] < 0:
                    state[EVENT] = e + 1
                    continue
                status = take(arena, program, events, arrivals, queues, bound, counters)
                if status != DONE:
                    return status
                note_taken(clock, e)
            if (now >= state[UNTIL] and stepped) or state[UNTIL] == 0:
                return np.int64(PAUSED)
            stepped = True
            queue = choose(levels, queues)
            if queue < 0:
                if state[EVENT] == stop:
                    return np.int64(DONE)
                e = state[EVENT]
                now = wait(clock, arrivals[e] if arrivals.shape[0] > 1 else arrivals[0], now)
                continue
            number = done[queue + 1]
            begin = now
            if n == 2:
                if number + _AHEAD < done[queue]:
                    ahead = outers[(number + _AHEAD) & mask]
                    other = 1 - (ahead[O_OWN] & 15)
                    if ahead[O_RESUME] >= stores[other, TAIL]:
                        prefetch(words, row_address(stores, other, ahead[O_RESUME]))
                status, count, looked, finished, now = scan(
                    arena, program, levels, queues, clock, queue, output, count, now
                )
            else:
                status, count, looked = scan_many(
                    arena, program, levels, queues, clock, queue, output, count
                )
                finished = status == DONE
                now = read(clock)
            state[FOUND] = count
            record(clock, Scanned(number, queue, looked, finished), begin)
            if finished and n > 2:
                move_on(queue, state, done, queues.links)
            elif finished:
                state[ENDING] = queue + 1
                ended, count = end_level(queue, queues, sizes, now, out, count)
                state[FOUND] = count
                if ended != DONE:
                    return ended
            if status != DONE:
                return status

    return run


# -- the machine's clock ---------------------------------------------------------------------------


@inline
def read_machine(_clock):
    """Return the time of the machine."""
    return now_ns()


@inline
def passes(_clock):
    """Return True: time passes while the kernel works."""
    return True


@inline
def spend_nothing(_clock, _looked, _found):
    """Return 0: nobody asks for it."""
    return np.int64(0)


@inline
def any_candidates(_clock):
    """Return more than any scan looks at: no row arrives during a call."""
    return np.int64(_ANY)


@inline
def all_here(_clock, _arrival, _now):
    """Return True: every row of the events is here."""
    return True


@inline
def ignore_taken(_clock, _event):
    """Do nothing."""


@inline
def never_wait(_clock, _arrival, now):
    """Return the time as it is: rows that are here are taken at once."""
    return now


@inline
def ignore_scan(_clock, _scanned, _begin):
    """Do nothing."""


_run = make_schedule(
    Clock(
        read=read_machine,
        is_measured=passes,
        spend=spend_nothing,
        most_candidates=any_candidates,
        has_come=all_here,
        note_taken=ignore_taken,
        wait=never_wait,
        record=ignore_scan,
    )
)


@kernel(Arena, Program, EventArrays, Integers, LevelArrays, QueueArrays, Output, part="schedule")
def run_schedule(arena, program, events, arrivals, levels, queues, output):
    """Take rows and work them off; DONE (nothing is left), PAUSED (it is time), or what ran out.

    However little time there is, at least one step is made; with ``UNTIL`` 0 rows are only taken.
    """
    return _run(arena, program, events, arrivals, levels, queues, 0, output)


@kernel(Arena, Program, QueueArrays, Integers, part="schedule")
def find_resumes(arena, program, queues, scratch):
    """Find where waiting rows resume after a store moved.

    With other buckets a chain has other rows. The next candidate is the newest row of the outer
    row's bucket that is not newer than the one where it was to resume. For two sources.
    """
    words, halves, stores, indexes = arena.words, arena.halves, arena.stores, arena.indexes
    flat, stride = program.flat, program.stride
    done, outers = queues.done, queues.outers
    mask = outers.shape[0] - 1
    bound = scratch[:2]
    for number in range(done[done.shape[0] - 1], done[0]):
        row = outers[number & mask]
        s = row[O_OWN] & 15
        o = 1 - s
        at = s * 2 * stride
        x = flat[at + STEP_INDEX]
        if x < 0 or row[O_RESUME] < 0:
            continue
        bound[s] = row_address(stores, s, row[O_OWN] >> 4)
        seq = newest_in(halves, stores, o, indexes, x, step_bucket(words, indexes, flat, at, bound))
        while seq > row[O_RESUME] and seq >= stores[o, TAIL]:
            step = np.int64(halves[2 * row_address(stores, o, seq) + indexes[x, LINK]])
            seq = seq - step if step != 0 else np.int64(-1)
        row[O_RESUME] = seq


@kernel(Table, int, int, int, Integers, part="schedule")
def results_of_level(out, count, row, level, chosen):
    """Write the places of a level's results, in order; return how many.

    ``row`` is that of ``R_FROM``.
    """
    found = 0
    for place in range(count):
        if out[place, row + R_FROM] <= level < out[place, row + R_UNTIL]:
            chosen[found] = place
            found += 1
    return found
