"""The schedulers LWO, SWF and MQT of paper 1, compiled: a shared join works off pairs of an outer row and a level in their order.

What happens in which order is defined by :mod:`muntin.testing.schedules`, whose steps these are, one by one; :mod:`muntin.kernels.agenda`
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

from muntin.kernels.agenda import (
    APART,
    BLOCK,
    BUSY,
    CLOCK,
    CONTAINED,
    COUNTED,
    ENDING,
    EVENLY,
    EVENT,
    FOUND,
    FREE,
    GAP,
    HELD,
    IDLE,
    LOST,
    LWO,
    MEASURED,
    MORE_PAIRS,
    MORE_ROWS,
    MOST_HELD,
    MOST_WAITING,
    MQT,
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
    P_DISTANCE,
    P_PARTNER,
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
from muntin.kernels.clock import now_ns
from muntin.kernels.compiling import inline, kernel
from muntin.kernels.joining import copy_counters
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
from muntin.kernels.probing import matches, probe, step_bucket
from muntin.kernels.rows import expire_tail, expire_two, full_position, insert, newest_in, row_address

_LOW = 0xFFFFFFFF
_GLANCE = 64
"""Candidates between looks at the machine's clock; a result counts for several."""
_RESULT = 8
_SURELY = 1.0 + 1e-12
"""Factor by which a rounded ratio must be larger to be larger for certain."""
_AHEAD = 6
"""Outer rows of a queue whose next candidate is fetched early."""


@inline
def moment(desk):
    """What time it is."""
    if desk[CLOCK] == MEASURED:
        read = now_ns()
        if desk[GAP] > 0:
            # For measurements on a machine that does other things, too: work looks at the clock more often than that.
            if read - desk[SEEN] > desk[GAP]:
                desk[LOST] += read - desk[SEEN]
                desk[SINCE] += read - desk[SEEN]
            desk[SEEN] = read
            return desk[NOW] + ((read - desk[SINCE]) * desk[SPEED] >> EVENLY)
        return read + desk[NOW]
    return desk[NOW]


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


# -- queues --------------------------------------------------------------------------------------------


@inline
def join_queue(desk, links, queue, behind):
    """Chain a queue that is no longer empty behind a smaller one (or the end of the chain)."""
    desk[BUSY] ^= np.int64(1) << (queue & 63)
    after = links[0, behind]
    links[0, behind] = queue
    links[0, queue] = after
    links[1, after] = queue
    links[1, queue] = behind


@inline
def leave_queue(desk, links, queue):
    """Take a queue that has become empty out of the chain."""
    desk[BUSY] ^= np.int64(1) << (queue & 63)
    links[0, links[1, queue]] = links[0, queue]
    links[1, links[0, queue]] = links[1, queue]


@inline
def product_high(number, width):
    """The upper part of a product of a number below 2**31 and a width below 2**63."""
    return number * (width >> np.uint64(32)) + ((number * (width & np.uint64(_LOW))) >> np.uint64(32))


@inline
def product_low(number, width):
    """The lower 32 bits of the same product."""
    return (number * (width & np.uint64(_LOW))) & np.uint64(_LOW)


@inline
def at_least(queries, width, other_queries, other_width):
    """Whether ``queries / width`` is not less than the other ratio, exactly; a width of 0 makes a ratio infinite."""
    one, other = np.uint64(queries), np.uint64(other_queries)
    wide, otherwise = np.uint64(width), np.uint64(other_width)
    left, right = product_high(one, otherwise), product_high(other, wide)
    if left != right:
        return left > right
    return product_low(one, otherwise) >= product_low(other, wide)


@inline
def ratio_of(table, queue, limit, reach, served, best):
    """What the head of a queue can serve at best, behind a row that has finished ``limit`` levels: queries, and distance to look at."""
    until = np.int64(best[table, queue * reach.shape[1] + limit - 1])
    width = reach[table, until]
    if queue > 0:
        width -= reach[table, queue - 1]
    return served[until + 1] - served[queue], width


@inline
def choose(desk, done, links, outers, tables, reach, served, best, quotients, chosen_of):
    """The queue whose head scans next, -1 when all are empty."""
    end = done.shape[0] - 1
    if links[0, end] == end:
        return np.int64(-1)
    queue = links[1, end]
    if desk[SCHEDULER] != MQT or links[0, end] == queue:
        return links[0, end]
    remembered = chosen_of.shape[0] > 1
    if remembered and chosen_of[desk[BUSY]] >= 0:
        return np.int64(chosen_of[desk[BUSY]])
    mask = outers.shape[0] - 1
    levels = reach.shape[1]
    chosen = np.int64(-1)
    its_table = np.int64(0)
    its_limit = np.int64(0)
    most = 0.0
    limit = np.int64(end)
    table = np.int64(0)
    while queue != end:
        if reach.shape[0] > 1:
            table = tables[outers[done[queue + 1] & mask, O_OWN] & 15]
        own = quotients[table, queue * levels + limit - 1]
        better = chosen < 0 or own > most * _SURELY
        if not better and own * _SURELY >= most:
            # Too close to tell by rounded numbers; of equal ones the smaller window wins.
            one_queries, one_width = ratio_of(table, queue, limit, reach, served, best)
            queries, width = ratio_of(its_table, chosen, its_limit, reach, served, best)
            better = at_least(one_queries, one_width, queries, width)
        if better:
            chosen, its_table, its_limit, most = queue, table, limit, own
        limit = queue
        queue = links[1, queue]
    if remembered:
        chosen_of[desk[BUSY]] = chosen
    return chosen


# -- taking --------------------------------------------------------------------------------------------


@inline
def take(
    words, halves, stores, indexes, first_index, program, stride, aliases, offsets, times, counts, incoming, arrivals,
    desk, done, links, outers, bases, bounds, bound, counters, now,
):  # fmt: skip
    """Store the next row and let it wait for the smallest window; DONE, or what is wanting."""
    e = desk[EVENT]
    n = stores.shape[0]
    end = done.shape[0] - 1
    mask = outers.shape[0] - 1
    s = np.int64(aliases[e])
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
    own = insert(words, halves, stores, indexes, s, first_index, incoming, offsets[e], counters)
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
        x = program[at + STEP_INDEX]
        if x < 0:
            row[O_RESUME] = stores[o, NEXT] - 1
        else:
            row[O_RESUME] = newest_in(halves, stores, o, indexes, x, step_bucket(words, indexes, program, at, bound))
        if program[at + STEP_CHECKS] > 0:
            row[O_CODE] = words[own + program[at + STEP_ARGUMENTS + 2 * program[at + STEP_KEYS] + 3]]
        counters[N_PROBES] += 1
    else:
        for other in range(n):
            bounds[slot, other] = stores[other, NEXT]
    if desk[CLOCK] == MEASURED and now - row[O_ARRIVAL] > desk[WAITS]:
        desk[WAITS] = now - row[O_ARRIVAL]
    desk[EVENT] = e + 1
    done[0] = number + 1
    if done[0] - done[1] == 1:
        join_queue(desk, links, np.int64(0), np.int64(end))
    if done[0] - done[end] > desk[MOST_WAITING]:
        desk[MOST_WAITING] = done[0] - done[end]
    return np.int64(DONE)


# -- the router ----------------------------------------------------------------------------------------


@inline
def put(row, number, partner, first, until, now, out, count):
    """Write a result for some levels; there is room."""
    out[count, 0] = number
    out[count, 1] = row[O_TIME]
    s = row[O_OWN] & 15
    out[count, 2 + s] = row[O_POSITION]
    out[count, 3 - s] = partner
    out[count, 4 + R_FROM] = first
    out[count, 4 + R_UNTIL] = until
    out[count, 4 + R_ARRIVAL] = row[O_ARRIVAL]
    out[count, 4 + R_RELEASED] = now
    return count + 1


@inline
def release(row, number, partner, distance, first, until, desk, sizes, now, out, count):
    """Give a pair to those of some levels that have it inside; there is room for as many results as there are levels."""
    if desk[CONTAINED] and not desk[APART]:
        return put(row, number, partner, first, until, now, out, count)
    o = 1 - (row[O_OWN] & 15)
    level = first
    while level < until:
        if distance < sizes[level, o]:
            start = level
            level += 1
            while level < until and distance < sizes[level, o] and not desk[APART]:
                level += 1
            count = put(row, number, partner, start, level, now, out, count)
        else:
            level += 1
    return count


@inline
def pair_after(pair, pairs):
    """The place of the next pair of the same row, if it has one."""
    if pair % BLOCK == BLOCK - 2:
        return pairs[pair + 1, 0]
    return pair + 1


@inline
def hold(row, partner, distance, desk, pairs):
    """Keep a pair for those who cannot have it yet; the pool has room."""
    last = row[O_LAST]
    if last >= 0 and last % BLOCK != BLOCK - 2:
        pair = last + 1
    else:
        pair = desk[FREE]
        if pair >= 0:
            desk[FREE] = pairs[pair + BLOCK - 1, 0]
        else:
            pair = desk[USED]
            desk[USED] = pair + BLOCK
        if last >= 0:
            pairs[last + 1, 0] = pair
        else:
            row[O_FIRST] = pair
    pairs[pair, P_PARTNER] = partner
    pairs[pair, P_DISTANCE] = distance
    row[O_LAST] = pair
    desk[HELD] += 1
    if desk[HELD] > desk[MOST_HELD]:
        desk[MOST_HELD] = desk[HELD]


@inline
def let_go(row, desk, pairs):
    """Give back the blocks of a row that is done."""
    block = row[O_FIRST]
    last = row[O_LAST]
    while block >= 0:
        end = block + BLOCK - 1
        following = np.int64(-1)
        if block <= last < end:
            desk[HELD] -= last - block + 1
        else:
            desk[HELD] -= BLOCK - 1
            following = pairs[end, 0]
        pairs[end, 0] = desk[FREE]
        desk[FREE] = block
        block = following


@inline
def give_held(row, number, level, run, desk, sizes, given, pairs, now, out, count, room):
    """Give the levels from ``level`` up to ``run``, which all have got the same so far, what is held of their front row.

    Returns the new count; when the room ends, ``given`` tells how far it got.
    """
    pair = given[level]
    last = row[O_LAST]
    while pair != last and count + sizes.shape[0] <= room:
        pair = row[O_FIRST] if pair < 0 else pair_after(pair, pairs)
        count = release(row, number, pairs[pair, P_PARTNER], pairs[pair, P_DISTANCE], level, run, desk, sizes, now, out, count)
    for each in range(level, run):
        given[each] = pair
    return count


@inline
def is_given(row, level, given):
    """Whether a level has got all that is held of its front row."""
    return given[level] == row[O_LAST]


@inline
def end_level(queue, desk, done, links, outers, sizes, given, pairs, now, out, count, room):
    """Release what the head of a queue has finished; DONE, or FULL when the room ended and this has to be called again."""
    mask = outers.shape[0] - 1
    end = done.shape[0] - 1
    number = done[queue + 1]
    row = outers[number & mask]
    if desk[SCHEDULER] == SWF:
        limit = links[0, queue]
        level = queue
        while level < limit:
            run = level + 1
            while run < limit and given[run] == given[level]:
                run += 1
            count = give_held(row, number, level, run, desk, sizes, given, pairs, now, out, count, room)
            if not is_given(row, level, given):
                return np.int64(FULL), count
            level = run
        given[queue] = -1
    elif desk[SCHEDULER] == MQT and number + 1 < done[0]:
        following = outers[(number + 1) & mask]
        count = give_held(following, number + 1, queue, queue + 1, desk, sizes, given, pairs, now, out, count, room)
        if not is_given(following, queue, given):
            return np.int64(FULL), count
        given[queue] = -1
    # The row moves on.
    done[queue + 1] = number + 1
    if queue + 1 < end:
        if done[queue + 1] - done[queue + 2] == 1:
            join_queue(desk, links, queue + 1, queue)
    else:
        let_go(row, desk, pairs)
    if done[queue] == done[queue + 1]:
        leave_queue(desk, links, queue)
    desk[ENDING] = 0
    return np.int64(DONE), count


# -- scanning ------------------------------------------------------------------------------------------


@inline
def scan(
    words, halves, stores, indexes, program, stride, queue, number, row, slot,
    edges, sizes, desk, links, bases, pairs, bound, out, count, room, counters, now,
):  # fmt: skip
    """Let a row look at candidates up to the edge of a level: why it stopped, results, candidates looked at, whether it finished, when.

    By the machine's clock a result is released when the clock was looked at after it.
    """
    s = row[O_OWN] & 15
    o = 1 - s
    at = s * 2 * stride
    levels = sizes.shape[0]
    scheduler = desk[SCHEDULER]
    edge = edges[levels - 1, o] if scheduler == LWO else edges[queue, o]
    base = base_of(stores, o, row[O_TIME], bases, slot)
    stored = stores[o, KIND] == STORED
    limit = np.int64(EVER) if stored else base - edge
    x = program[at + STEP_INDEX]
    checks = program[at + STEP_CHECKS]
    argument = at + STEP_ARGUMENTS + 2 * program[at + STEP_KEYS]
    simple = checks == 1 and program[argument] == EQ
    word = program[argument + 1]
    code = row[O_CODE]
    if not simple:
        bound[s] = row_address(stores, s, row[O_OWN] >> 4)
    until = np.int64(levels) if scheduler == LWO else links[0, queue]
    band = np.int64(0) if scheduler == LWO else queue
    costly = desk[PROBE_COST]
    measured = desk[CLOCK] == MEASURED
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
        if looked == desk[SLICE]:
            finished = False
            break
        if count + levels > room:
            status = np.int64(FULL)
            finished = False
            break
        if desk[FREE] < 0 and desk[USED] == pairs.shape[0]:
            status = np.int64(MORE_PAIRS)
            finished = False
            break
        looked += 1
        if measured:
            glance -= 1
            if glance <= 0:
                now = moment(desk)
                glance = _GLANCE
                while fresh < count:
                    out[fresh, 4 + R_RELEASED] = now
                    fresh += 1
                if now >= desk[UNTIL]:
                    # This candidate is looked at yet; the next call goes on behind it.
                    status = np.int64(PAUSED)
        else:
            desk[NOW] += costly
            now = desk[NOW]
            if now >= desk[UNTIL]:
                status = np.int64(PAUSED)
        found = words[address + word] == code if simple else matches(words, program, at, address, bound)
        if found:
            if measured:
                glance -= _RESULT - 1
            else:
                desk[NOW] += desk[RESULT_COST]
                now = desk[NOW]
            partner = full_position(stores, o, halves[2 * address + POSITION])
            distance = np.int64(0) if stored else base - coordinate
            if scheduler == LWO:
                if desk[CONTAINED]:
                    while distance >= sizes[band, o]:
                        band += 1
                count = release(row, number, partner, distance, band, until, desk, sizes, now, out, count)
            elif scheduler == SWF:
                hold(row, partner, distance, desk, pairs)
            else:
                count = release(row, number, partner, distance, band, until, desk, sizes, now, out, count)
                if until < levels:
                    hold(row, partner, distance, desk, pairs)
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
    now = moment(desk)
    if measured:
        while fresh < count:
            out[fresh, 4 + R_RELEASED] = now
            fresh += 1
    return status, count, looked, finished, now


@inline
def scan_many(
    words, halves, stores, indexes, program, stride, queue, number, row, slot,
    sizes, desk, bases, bounds, scratch, out, count, room, counters,
):  # fmt: skip
    """Let a row of a join of more than two sources find the combinations of a level; OVERFLOW when they do not fit."""
    n = stores.shape[0]
    bound = scratch[:n]
    cursor = scratch[n : 2 * n]
    limits = scratch[2 * n : 3 * n]
    newest = scratch[4 * n + 1 + COUNTERS : 5 * n + 1 + COUNTERS]
    s = row[O_OWN] & 15
    bound[s] = row_address(stores, s, row[O_OWN] >> 4)
    for other in range(n):
        limits[other] = EVER if stores[other, KIND] == STORED else base_of(stores, other, row[O_TIME], bases, slot) - sizes[queue, other]
    saved = scratch[4 * n + 1 : 4 * n + 1 + COUNTERS]
    copy_counters(counters, saved)
    after = probe(
        words, halves, stores, indexes, program, s * n * stride, stride, bound, cursor, newest, bounds, limits, 0, number, row[O_TIME],
        out.T, count, counters,
    )  # fmt: skip
    looked = counters[N_SCANNED] - saved[N_SCANNED]
    if after > room:
        copy_counters(saved, counters)
        desk[NEED] = after - count
        return np.int64(OVERFLOW), count, looked
    if desk[CLOCK] == COUNTED:
        desk[NOW] += looked * desk[PROBE_COST] + (after - count) * desk[RESULT_COST]
    now = moment(desk)
    for result in range(count, after):
        out[result, 2 + n + R_FROM] = queue
        out[result, 2 + n + R_UNTIL] = queue + 1
        out[result, 2 + n + R_ARRIVAL] = row[O_ARRIVAL]
        out[result, 2 + n + R_RELEASED] = now
    return np.int64(DONE), after, looked


@inline
def write_trace(trace, desk, number, level, looked, finished, begin):
    """Note a step, where notes are wanted."""
    place = desk[TRACED]
    if place < trace.shape[0]:
        trace[place, T_OUTER] = number
        trace[place, T_LEVEL] = level
        trace[place, T_LOOKED] = looked
        trace[place, T_FINISHED] = finished
        trace[place, T_BEGIN] = begin
        trace[place, T_END] = moment(desk)
        desk[TRACED] = place + 1


@kernel(
    "(int64[::1], int32[::1], int64[:,::1], int64[:,::1], int64[::1], int64[::1], int64,"
    " int32[::1], int64[::1], int64[::1], int64[:,::1], int64[::1], int64[::1],"
    " int64[:,::1], int64[:,::1], int64[::1], int64[:,::1], int64[::1], int32[:,::1], float64[:,::1], int8[::1],"
    " int64[::1], int64[::1], int64[:,::1], int64[::1], int64[:,::1], int64[:,::1], int64[:,::1], int64[:,::1],"
    " int64[:,::1], int64[:,::1], int64[::1], int64[::1])",
    part="schedule",
)
def run_schedule(
    words, halves, stores, indexes, first_index, program, stride,
    aliases, offsets, times, counts, incoming, arrivals,
    edges, sizes, tables, reach, served, best, quotients, chosen_of,
    desk, done, links, given, outers, bases, bounds, pairs,
    out, trace, counters, scratch,
):  # fmt: skip
    """Take rows and work them off; returns DONE (nothing is left), PAUSED (it is time), or what is wanting.

    However little time there is, at least one step is made; with ``UNTIL`` 0 rows are taken and that is all.
    """
    n = stores.shape[0]
    mask = outers.shape[0] - 1
    bound = scratch[:n]
    room = np.int64(out.shape[0])
    count = desk[FOUND]
    stop = np.int64(times.shape[0])
    stepped = False
    if desk[ENDING] > 0:
        status, count = end_level(desk[ENDING] - 1, desk, done, links, outers, sizes, given, pairs, moment(desk), out, count, room)
        desk[FOUND] = count
        if status != DONE:
            return status
    now = moment(desk)
    while True:
        while desk[EVENT] < stop:
            e = desk[EVENT]
            if desk[PUNCTUAL] and (arrivals[e] if arrivals.shape[0] > 1 else arrivals[0]) > now:
                break
            if offsets[e] < 0:
                desk[EVENT] = e + 1
                continue
            status = take(
                words, halves, stores, indexes, first_index, program, stride, aliases, offsets, times, counts, incoming, arrivals,
                desk, done, links, outers, bases, bounds, bound, counters, now,
            )  # fmt: skip
            if status != DONE:
                return status
            if desk[EVENT] % _RESULT == 0 and desk[GAP] > 0:
                moment(desk)
        if (now >= desk[UNTIL] and stepped) or desk[UNTIL] == 0:
            return np.int64(PAUSED)
        stepped = True
        queue = choose(desk, done, links, outers, tables, reach, served, best, quotients, chosen_of)
        if queue < 0:
            if desk[EVENT] == stop:
                return np.int64(DONE)
            # Nothing to do before the next row comes: the clock is put forward.
            now = moment(desk)
            idle = (arrivals[desk[EVENT]] if arrivals.shape[0] > 1 else arrivals[0]) - now
            if idle > 0:
                desk[NOW] += idle
                desk[IDLE] += idle
                now += idle
            continue
        number = done[queue + 1]
        slot = number & mask
        row = outers[slot]
        begin = now
        if n == 2:
            if number + _AHEAD < done[queue]:
                ahead = outers[(number + _AHEAD) & mask]
                other = 1 - (ahead[O_OWN] & 15)
                if ahead[O_RESUME] >= stores[other, TAIL]:
                    prefetch(words, row_address(stores, other, ahead[O_RESUME]))
            status, count, looked, finished, now = scan(
                words, halves, stores, indexes, program, stride, queue, number, row, slot if bases.shape[0] > 1 else 0,
                edges, sizes, desk, links, bases, pairs, bound, out, count, room, counters, now,
            )  # fmt: skip
        else:
            status, count, looked = scan_many(
                words, halves, stores, indexes, program, stride, queue, number, row, slot if bases.shape[0] > 1 else 0,
                sizes, desk, bases, bounds[slot], scratch, out, count, room, counters,
            )  # fmt: skip
            finished = status == DONE
            now = moment(desk)
        desk[FOUND] = count
        if trace.shape[0] > 0:
            write_trace(trace, desk, number, queue, looked, finished, begin)
        if finished:
            desk[ENDING] = queue + 1
            ended, count = end_level(queue, desk, done, links, outers, sizes, given, pairs, now, out, count, room)
            desk[FOUND] = count
            if ended != DONE:
                return ended
        if status != DONE:
            return status


@kernel("(int64[::1], int32[::1], int64[:,::1], int64[:,::1], int64[::1], int64, int64[::1], int64[:,::1], int64[::1])", part="schedule")
def find_resumes(words, halves, stores, indexes, program, stride, done, outers, scratch):
    """Let the rows that wait go on at the right places after a store has moved: with other buckets a chain has other rows.

    The next candidate is the newest row of the outer row's bucket that is not newer than where it was to go on. For two sources.
    """
    mask = outers.shape[0] - 1
    bound = scratch[:2]
    for number in range(done[done.shape[0] - 1], done[0]):
        row = outers[number & mask]
        s = row[O_OWN] & 15
        o = 1 - s
        at = s * 2 * stride
        x = program[at + STEP_INDEX]
        if x < 0 or row[O_RESUME] < 0:
            continue
        bound[s] = row_address(stores, s, row[O_OWN] >> 4)
        seq = newest_in(halves, stores, o, indexes, x, step_bucket(words, indexes, program, at, bound))
        while seq > row[O_RESUME] and seq >= stores[o, TAIL]:
            step = np.int64(halves[2 * row_address(stores, o, seq) + indexes[x, LINK]])
            seq = seq - step if step != 0 else np.int64(-1)
        row[O_RESUME] = seq


@kernel("(int64[:,::1], int64, int64, int64, int64[::1])", part="schedule")
def results_of_level(out, count, row, level, chosen):
    """Which results a level gets, in their order; ``row`` is that of ``R_FROM``. Returns how many."""
    found = 0
    for place in range(count):
        if out[place, row + R_FROM] <= level < out[place, row + R_UNTIL]:
            chosen[found] = place
            found += 1
    return found
