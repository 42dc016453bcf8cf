"""The schedulers LWO, SWF and MQT of paper 1, compiled: a shared join works off pairs of an outer row and a level in their order.

What happens in which order is defined by :mod:`muntin.testing.schedules`, whose steps these are, one by one; :mod:`muntin.kernels.scheduler_state`
says where things stand. A call goes on until all work is done, room is wanting, or the moment to return has come; whatever was begun is
resumed by the next call.

Why no result is lost or doubled when a call ends early: a scan keeps its pointer, and looks at a candidate only when there is room for
what it may yield. A row that has finished a level is marked (``ENDING``) until all its results are out; what a level has got of its
front row is kept in ``given``.

Joins of more than two sources have no single pointer to resume. There a row looks for the combinations of a level all over again, among
the rows that were there when it was taken (``bounds``), and they go to that level alone: what the join costs is the sum over the levels,
what it keeps is shared.
"""

from __future__ import annotations

import numpy as np

from muntin.kernels.arrays import (
    Arena,
    EventArrays,
    Integers,
    LevelArrays,
    Output,
    Program,
    QueueArrays,
    Stamp,
    Table,
    Walk,
)
from muntin.kernels.clock import now_ns
from muntin.kernels.jit import inline, kernel
from muntin.kernels.layout import (
    CAP,
    COORD,
    COUNTERS,
    DONE,
    EQ,
    EVER,
    FULL,
    GROW,
    KIND,
    LAST,
    LINK,
    N_COMPARED,
    N_PROBES,
    N_SCANNED,
    NEXT,
    OVERFLOW,
    POSITION,
    SIZE,
    STEP_ARGUMENTS,
    STEP_CHECKS,
    STEP_INDEX,
    STEP_KEYS,
    STORED,
    TAIL,
    TIME,
)
from muntin.kernels.memory import prefetch
from muntin.kernels.nway_join import copy_counters
from muntin.kernels.probe import matches, probe, step_bucket
from muntin.kernels.result_router import Band, Outer, Pair, end_level, hold, release
from muntin.kernels.rows import (
    expire_tail,
    expire_two,
    full_position,
    insert,
    newest_in,
    row_address,
)
from muntin.kernels.scheduler_queues import choose, join_queue
from muntin.kernels.scheduler_state import (
    CLOCK,
    CONTAINED,
    COUNTED,
    ENDING,
    EVENLY,
    EVENT,
    FOUND,
    FREE,
    GAP,
    IDLE,
    LOST,
    LWO,
    MEASURED,
    MORE_PAIRS,
    MORE_ROWS,
    MOST_WAITING,
    NEED,
    NOW,
    O_ARRIVAL,
    O_CODE,
    O_FIRST,
    O_LAST,
    O_OWN,
    O_POSITION,
    O_RESUME,
    O_TIME,
    PAUSED,
    PROBE_COST,
    PUNCTUAL,
    R_ARRIVAL,
    R_FROM,
    R_RELEASED,
    R_UNTIL,
    RESULT_COST,
    SCHEDULER,
    SEEN,
    SINCE,
    SLICE,
    SPEED,
    SWF,
    T_BEGIN,
    T_END,
    T_FINISHED,
    T_LEVEL,
    T_LOOKED,
    T_OUTER,
    TRACED,
    UNTIL,
    USED,
    WAITS,
)

_GLANCE = 64
"""Candidates between looks at the machine's clock; a result counts for several."""
_RESULT = 8
_AHEAD = 6
"""Outer rows of a queue whose next candidate is fetched early."""


@inline
def moment(state):
    """What time it is."""
    if state[CLOCK] == MEASURED:
        read = now_ns()
        if state[GAP] > 0:
            # For measurements on a machine that does other things, too: work looks at the clock more often than that.
            if read - state[SEEN] > state[GAP]:
                state[LOST] += read - state[SEEN]
                state[SINCE] += read - state[SEEN]
            state[SEEN] = read
            return state[NOW] + ((read - state[SINCE]) * state[SPEED] >> EVENLY)
        return read + state[NOW]
    return state[NOW]


@inline
def base_of(stores, s, time, bases, slot):
    """Where distances to rows of a store are measured from: the outer row's time, or the last position of its moment."""
    if stores[s, KIND] == TIME:
        return time
    if stores[s, KIND] == STORED:
        return np.int64(0)
    return bases[slot, s]


@inline
def limit_when(stores, s, time, bases, slot):
    """What rows of a store must be above to be inside the largest window at an outer row."""
    if stores[s, KIND] == STORED:
        return np.int64(EVER)
    return base_of(stores, s, time, bases, slot) - stores[s, SIZE]


# -- taking --------------------------------------------------------------------------------------------


@inline
def take(arena, program, events, arrivals, queues, bound, counters, now):
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
    # What the oldest row that is waiting may still look at stays; the new row itself if none is.
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
        for other in range(n):
            bounds[slot, other] = stores[other, NEXT]
    if state[CLOCK] == MEASURED and now - row[O_ARRIVAL] > state[WAITS]:
        state[WAITS] = now - row[O_ARRIVAL]
    state[EVENT] = e + 1
    done[0] = number + 1
    if done[0] - done[1] == 1:
        join_queue(state, links, np.int64(0), np.int64(end))
    if done[0] - done[end] > state[MOST_WAITING]:
        state[MOST_WAITING] = done[0] - done[end]
    return np.int64(DONE)


# -- scanning ------------------------------------------------------------------------------------------


@inline
def scan(arena, program, levels_of, queues, queue, output, count, now):
    """Let the head of a queue look at candidates up to the edge of a level.

    Returns why it stopped, results, candidates looked at, whether it finished, and when. By the
    machine's clock a result is released when the clock was read after it.
    """
    words, halves, stores, indexes = arena.words, arena.halves, arena.stores, arena.indexes
    flat, stride = program.flat, program.stride
    edges, sizes = levels_of.edges, levels_of.sizes
    state, links, bases, pairs = queues.state, queues.links, queues.bases, queues.pairs
    out, counters, bound = output.out, output.counters, output.scratch[:2]
    room = np.int64(out.shape[0])
    number = queues.done[queue + 1]
    slot = number & (queues.outers.shape[0] - 1)
    row = queues.outers[slot]
    outer = Outer(number, row)
    if bases.shape[0] == 1:
        slot = np.int64(0)
    s = row[O_OWN] & 15
    o = 1 - s
    at = s * 2 * stride
    levels = sizes.shape[0]
    scheduler = state[SCHEDULER]
    edge = edges[levels - 1, o] if scheduler == LWO else edges[queue, o]
    base = base_of(stores, o, row[O_TIME], bases, slot)
    stored = stores[o, KIND] == STORED
    limit = np.int64(EVER) if stored else base - edge
    x = flat[at + STEP_INDEX]
    checks = flat[at + STEP_CHECKS]
    argument = at + STEP_ARGUMENTS + 2 * flat[at + STEP_KEYS]
    simple = checks == 1 and flat[argument] == EQ
    word = flat[argument + 1]
    code = row[O_CODE]
    if not simple:
        bound[s] = row_address(stores, s, row[O_OWN] >> 4)
    until = np.int64(levels) if scheduler == LWO else links[0, queue]
    band = np.int64(0) if scheduler == LWO else queue
    costly = state[PROBE_COST]
    measured = state[CLOCK] == MEASURED
    glance = _GLANCE
    fresh = count
    tail = stores[o, TAIL]
    seq = row[O_RESUME]
    looked = np.int64(0)
    status = np.int64(DONE)
    finished = True
    while seq >= tail:
        address = row_address(stores, o, seq)
        coordinate = words[address + COORD]
        if coordinate <= limit and not stored:
            break
        if looked == state[SLICE]:
            finished = False
            break
        if count + levels > room:
            status = np.int64(FULL)
            finished = False
            break
        if state[FREE] < 0 and state[USED] == pairs.shape[0]:
            status = np.int64(MORE_PAIRS)
            finished = False
            break
        looked += 1
        if measured:
            glance -= 1
            if glance <= 0:
                now = moment(state)
                glance = _GLANCE
                while fresh < count:
                    out[fresh, 4 + R_RELEASED] = now
                    fresh += 1
                if now >= state[UNTIL]:
                    # This candidate is looked at yet; the next call goes on behind it.
                    status = np.int64(PAUSED)
        else:
            state[NOW] += costly
            now = state[NOW]
            if now >= state[UNTIL]:
                status = np.int64(PAUSED)
        found = (
            words[address + word] == code if simple else matches(words, flat, at, address, bound)
        )
        if found:
            if measured:
                glance -= _RESULT - 1
            else:
                state[NOW] += state[RESULT_COST]
                now = state[NOW]
            partner = full_position(stores, o, halves[2 * address + POSITION])
            pair = Pair(partner, np.int64(0) if stored else base - coordinate)
            if scheduler == LWO and state[CONTAINED]:
                while pair.distance >= sizes[band, o]:
                    band += 1
            if scheduler != SWF:
                levels_now = Band(band, until)
                count = release(outer, pair, levels_now, state, sizes, now, out, count)
            if scheduler == SWF or until < levels:
                hold(row, pair, state, pairs)
        if x >= 0:
            step = np.int64(halves[2 * address + indexes[x, LINK]])
            seq = seq - step if step != 0 else np.int64(-1)
        else:
            seq -= 1
        if status == PAUSED:
            finished = False
            break
    row[O_RESUME] = seq
    counters[N_SCANNED] += looked
    counters[N_COMPARED] += looked
    now = moment(state)
    if measured:
        while fresh < count:
            out[fresh, 4 + R_RELEASED] = now
            fresh += 1
    return status, count, looked, finished, now


@inline
def scan_many(arena, program, levels_of, queues, queue, output, count):
    """Find the combinations of a level for the head of a queue, in a join of more than two sources.

    OVERFLOW when they do not fit.
    """
    stores, state, bases = arena.stores, queues.state, queues.bases
    out, counters, scratch = output.out, output.counters, output.scratch
    sizes = levels_of.sizes
    n = stores.shape[0]
    number = queues.done[queue + 1]
    slot = number & (queues.outers.shape[0] - 1)
    row, bounds = queues.outers[slot], queues.bounds[slot]
    if bases.shape[0] == 1:
        slot = np.int64(0)
    bound = scratch[:n]
    cursor = scratch[n : 2 * n]
    limits = scratch[2 * n : 3 * n]
    newest = scratch[4 * n + 1 + COUNTERS : 5 * n + 1 + COUNTERS]
    s = row[O_OWN] & 15
    bound[s] = row_address(stores, s, row[O_OWN] >> 4)
    for other in range(n):
        limits[other] = (
            EVER
            if stores[other, KIND] == STORED
            else base_of(stores, other, row[O_TIME], bases, slot) - sizes[queue, other]
        )
    saved = scratch[4 * n + 1 : 4 * n + 1 + COUNTERS]
    copy_counters(counters, saved)
    walk = Walk(bound, cursor, newest, bounds, limits)
    columns = Output(out.T, counters, scratch)
    stamp = Stamp(number, row[O_TIME])
    after = probe(arena, program, s, walk, 0, stamp, columns, count)
    looked = counters[N_SCANNED] - saved[N_SCANNED]
    if after > out.shape[0]:
        copy_counters(saved, counters)
        state[NEED] = after - count
        return np.int64(OVERFLOW), count, looked
    if state[CLOCK] == COUNTED:
        state[NOW] += looked * state[PROBE_COST] + (after - count) * state[RESULT_COST]
    now = moment(state)
    for result in range(count, after):
        out[result, 2 + n + R_FROM] = queue
        out[result, 2 + n + R_UNTIL] = queue + 1
        out[result, 2 + n + R_ARRIVAL] = row[O_ARRIVAL]
        out[result, 2 + n + R_RELEASED] = now
    return np.int64(DONE), after, looked


@inline
def write_trace(trace, state, number, level, looked, finished, begin):
    """Note a step, where notes are wanted."""
    place = state[TRACED]
    if place < trace.shape[0]:
        trace[place, T_OUTER] = number
        trace[place, T_LEVEL] = level
        trace[place, T_LOOKED] = looked
        trace[place, T_FINISHED] = finished
        trace[place, T_BEGIN] = begin
        trace[place, T_END] = moment(state)
        state[TRACED] = place + 1


@kernel(
    Arena, Program, EventArrays, Integers, LevelArrays, QueueArrays, Table, Output, part="schedule"
)
def run_schedule(arena, program, events, arrivals, levels_of, queues, trace, output):
    """Take rows and work them off; DONE (nothing is left), PAUSED (it is time), or what ran out.

    However little time there is, at least one step is made; with ``UNTIL`` 0 rows are only taken.
    """
    words, stores, offsets = arena.words, arena.stores, events.offsets
    state, done, outers = queues.state, queues.done, queues.outers
    sizes, out, counters, scratch = levels_of.sizes, output.out, output.counters, output.scratch
    n = stores.shape[0]
    mask = outers.shape[0] - 1
    bound = scratch[:n]
    count = state[FOUND]
    stop = np.int64(events.times.shape[0])
    stepped = False
    if state[ENDING] > 0:
        status, count = end_level(state[ENDING] - 1, queues, sizes, moment(state), out, count)
        state[FOUND] = count
        if status != DONE:
            return status
    now = moment(state)
    while True:
        while state[EVENT] < stop:
            e = state[EVENT]
            if state[PUNCTUAL] and (arrivals[e] if arrivals.shape[0] > 1 else arrivals[0]) > now:
                break
            if offsets[e] < 0:
                state[EVENT] = e + 1
                continue
            status = take(arena, program, events, arrivals, queues, bound, counters, now)
            if status != DONE:
                return status
            if state[EVENT] % _RESULT == 0 and state[GAP] > 0:
                moment(state)
        if (now >= state[UNTIL] and stepped) or state[UNTIL] == 0:
            return np.int64(PAUSED)
        stepped = True
        queue = choose(levels_of, queues)
        if queue < 0:
            if state[EVENT] == stop:
                return np.int64(DONE)
            # Nothing to do before the next row comes: the clock is put forward.
            now = moment(state)
            idle = (arrivals[state[EVENT]] if arrivals.shape[0] > 1 else arrivals[0]) - now
            if idle > 0:
                state[NOW] += idle
                state[IDLE] += idle
                now += idle
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
                arena, program, levels_of, queues, queue, output, count, now
            )
        else:
            status, count, looked = scan_many(
                arena, program, levels_of, queues, queue, output, count
            )
            finished = status == DONE
            now = moment(state)
        state[FOUND] = count
        if trace.shape[0] > 0:
            write_trace(trace, state, number, queue, looked, finished, begin)
        if finished:
            state[ENDING] = queue + 1
            ended, count = end_level(queue, queues, sizes, now, out, count)
            state[FOUND] = count
            if ended != DONE:
                return ended
        if status != DONE:
            return status


@kernel(Arena, Program, QueueArrays, Integers, part="schedule")
def find_resumes(arena, program, queues, scratch):
    """Find where waiting rows resume after a store moved: with other buckets a chain has other rows.

    The next candidate is the newest row of the outer row's bucket that is not newer than the one
    where it was to resume. For two sources.
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
    """Which results a level gets, in their order; ``row`` is that of ``R_FROM``. Returns how many."""
    found = 0
    for place in range(count):
        if out[place, row + R_FROM] <= level < out[place, row + R_UNTIL]:
            chosen[found] = place
            found += 1
    return found
