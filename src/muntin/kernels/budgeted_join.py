"""The join as a binary tree under probe budgets (paper 5, sections 2 and 4): every row is stored, only some of them probe.

The climb is that of :mod:`muntin.kernels.tree_join`. Before a row or partial match looks into its sibling it has to be let
(:func:`may_probe`): a half join has a budget for each cycle of event time, and all of them together have one. What may
not probe now never does; it stays where others find it.

Cycles are counted by event time and choices depend on counts of rows only, so they are the same however rows were cut into batches.
The kernel returns where a cycle begins. :func:`finish_cycles` writes the samples of those before, :func:`begin_cycle` sets budgets: what is
decided from a sample holds from the next cycle on.

Two limits beside each other: leaves are looked into by their windows, partial matches by what is called ``kept`` here. As a rule that is
the same. With ``P_KEEP`` a node keeps its last partial matches whatever the windows say, and only freshness lets go of them.
"""

from __future__ import annotations

import numpy as np

from muntin.kernels.jit import inline, kernel
from muntin.kernels.layout import (
    CAP,
    CLIMB_INDEX,
    CLIMB_NODE,
    CLIMB_PARENT,
    COORD,
    COUNT,
    COUNTERS,
    CYCLE,
    DONE,
    EVER,
    F_AGE,
    F_HOLD,
    F_PRESENT,
    F_SEEN,
    F_SIZE,
    FULL,
    GROW,
    H_ALL_ARRIVED,
    H_ALL_MATCHED,
    H_ALL_PROBED,
    H_ARRIVED,
    H_BEFORE,
    H_BUDGET,
    H_EXPECTED,
    H_INSIDE,
    H_MATCHED,
    H_PROBED,
    KIND,
    LINK,
    N_COMPARED,
    N_PARTIAL_MATCHES,
    N_SCANNED,
    N_STALE,
    NEWEST_FIRST,
    NEXT,
    NODE_LINKS,
    NODE_MEMBERS,
    NODE_SOURCES,
    NODE_USED,
    NODE_WIDTH,
    OVERFLOW,
    P_BASE,
    P_CHOICE,
    P_COUNTED,
    P_COUNTED_AT,
    P_CYCLE,
    P_ENFORCE,
    P_KEEP,
    P_MOST,
    P_NEW,
    P_NEXT,
    P_PERIOD,
    P_SEED,
    P_STALE,
    P_USED,
    RANDOMLY,
    SAMPLE_FIELDS,
    SIZE,
    STORED,
    TAIL,
    TIME,
    WIDEN,
)
from muntin.kernels.nway_join import copy_counters
from muntin.kernels.probe import emit
from muntin.kernels.rows import dead, expire_tail, expire_two, insert, mix, row_address
from muntin.kernels.tree_join import (
    agrees,
    alive,
    begin_level,
    keep_partial_match,
    link_partial_match,
    undo,
)

EMPTY_CYCLES = 8
"""Cycles without rows that get samples after one with rows: enough for averages to fall to nothing."""
_RECOUNT = 8
"""Partial matches are counted anew when the rows and partial matches that came since are an eighth of them ..."""
_AT_LEAST_EVERY = 64
"""... or after so many cycles."""


# -- cycles --------------------------------------------------------------------------------------------


@inline
def set_kept(stores, time, fresh, pace, leaf, kept, held, stale):
    """What rows must be above at ``time``: to be found in a leaf, in a partial match, to stay in store, not to be stale."""
    enforce = pace[P_ENFORCE] != 0
    for s in range(stores.shape[0]):
        kind = stores[s, KIND]
        if kind == STORED:
            leaf[s] = EVER
            kept[s] = EVER
            held[s] = EVER
            stale[s] = EVER
            continue
        if kind == TIME:
            window = time - stores[s, SIZE]
            old = max(time, fresh[F_PRESENT, s]) - fresh[F_SIZE, s]
        else:
            window = fresh[F_SEEN, s] - stores[s, SIZE] - 1
            old = max(fresh[F_SEEN, s], fresh[F_PRESENT, s]) - fresh[F_SIZE, s] - 1
        stale[s] = old
        leaf[s] = max(window, old) if enforce else window
        if pace[P_KEEP] == 0:
            kept[s] = leaf[s]
            held[s] = window
        else:
            kept[s] = old if enforce else np.int64(EVER)
            held[s] = min(window, old if enforce else fresh[F_HOLD, s])


@inline
def rows_above(words, stores, s, limit):
    """Rows of a ring whose coordinates, which never fall, are above a limit."""
    low = stores[s, TAIL]
    high = stores[s, NEXT]
    while low < high:
        middle = (low + high) >> 1
        if words[row_address(stores, s, middle) + COORD] <= limit:
            low = middle + 1
        else:
            high = middle
    return stores[s, NEXT] - low


@inline
def first_partial_match(nodes, node, pace):
    """The oldest slot of a node that counts."""
    if pace[P_KEEP] == 0:
        return np.int64(0)
    return max(np.int64(0), nodes[node, NODE_USED] - pace[P_KEEP])


@inline
def count_states(words, stores, nodes, members, halfway, pace, leaf, kept, cycle):
    """Note how large each state is; partial matches are counted only once enough has come, since all of them have to be looked at."""
    n = stores.shape[0]
    for s in range(n):
        halfway[s, H_INSIDE] = (
            stores[s, NEXT] - stores[s, TAIL]
            if stores[s, KIND] == STORED
            else rows_above(words, stores, s, leaf[s])
        )
    if _RECOUNT * pace[P_NEW] < pace[P_COUNTED] and cycle - pace[P_COUNTED_AT] < _AT_LEAST_EVERY:
        return
    total = np.int64(0)
    for node in range(nodes.shape[0]):
        count = np.int64(0)
        for slot in range(first_partial_match(nodes, node, pace), nodes[node, NODE_USED]):
            if alive(words, stores, nodes, members, node, slot, kept):
                count += 1
        halfway[n + node, H_INSIDE] = count
        total += count
    pace[P_NEW] = 0
    pace[P_COUNTED] = total
    pace[P_COUNTED_AT] = cycle


@kernel(
    "(int64[::1], int64[:,::1], int64[:,::1], int64[::1], int64[:,::1], int64[::1], int64[:,::1], int64, int64[:,::1], int64[::1])",
    part="overload",
)
def finish_cycles(words, stores, nodes, members, halfway, pace, fresh, now, samples, scratch):
    """Write the samples of the cycles that are over at ``now``, and return how many there are; no more than ``EMPTY_CYCLES`` plus one."""
    n = stores.shape[0]
    leaf = scratch[:n]
    kept = scratch[n : 2 * n]
    held = scratch[2 * n : 3 * n]
    stale = scratch[3 * n : 4 * n]
    written = 0
    until = now // pace[P_PERIOD]
    while (
        pace[P_CYCLE] > EVER
        and pace[P_NEXT] < until
        and pace[P_NEXT] <= pace[P_CYCLE] + EMPTY_CYCLES
    ):
        cycle = pace[P_NEXT]
        for h in range(halfway.shape[0]):
            pace[P_NEW] += halfway[h, H_ARRIVED]
        set_kept(stores, (cycle + 1) * pace[P_PERIOD] - 1, fresh, pace, leaf, kept, held, stale)
        count_states(words, stores, nodes, members, halfway, pace, leaf, kept, cycle)
        samples[written, 0] = cycle
        for h in range(halfway.shape[0]):
            at = 1 + SAMPLE_FIELDS * h
            samples[written, at] = halfway[h, H_ARRIVED]
            samples[written, at + 1] = halfway[h, H_PROBED]
            samples[written, at + 2] = halfway[h, H_MATCHED]
            samples[written, at + 3] = halfway[h, H_INSIDE]
            if cycle == pace[P_CYCLE]:
                halfway[h, H_BEFORE] = halfway[h, H_ARRIVED]
            halfway[h, H_ALL_ARRIVED] += halfway[h, H_ARRIVED]
            halfway[h, H_ALL_PROBED] += halfway[h, H_PROBED]
            halfway[h, H_ALL_MATCHED] += halfway[h, H_MATCHED]
            halfway[h, H_ARRIVED] = 0
            halfway[h, H_PROBED] = 0
            halfway[h, H_MATCHED] = 0
        pace[P_NEXT] = cycle + 1
        written += 1
    return written


@kernel("(int64[:,::1], float64[::1], int64[::1], int64)", part="overload")
def begin_cycle(halfway, rates, pace, now):
    """Set the budgets of the cycle of ``now``. Behind the rates stand the one of all together and what they might do in the last cycle."""
    cycle = now // pace[P_PERIOD]
    joins = halfway.shape[0]
    last = pace[P_CYCLE]
    since = float(cycle - pace[P_BASE])
    for h in range(joins):
        halfway[h, H_EXPECTED] = halfway[h, H_BEFORE] if last == cycle - 1 else np.int64(0)
        rate = rates[h]
        # The whole part of what has come together until then, so that fractions are not lost.
        halfway[h, H_BUDGET] = (
            np.int64(-1)
            if rate < 0.0
            else np.int64(np.floor((since + 1.0) * rate) - np.floor(since * rate))
        )
    quota = rates[joins]
    if quota < 0.0:
        rates[joins + 1] = -1.0
        pace[P_MOST] = -1
    else:
        unspent = 0.0
        if last > EVER:
            unspent = (
                max(rates[joins + 1] - float(pace[P_USED]), 0.0) + float(cycle - last - 1) * quota
            )
        rates[joins + 1] = quota + min(unspent, max(quota, 1.0))
        pace[P_MOST] = np.int64(np.floor(rates[joins + 1]))
    pace[P_USED] = 0
    pace[P_CYCLE] = cycle
    pace[P_NEXT] = cycle


@inline
def may_probe(halfway, pace, h):
    """Whether what has come to a half join may look into its partner; counted in any case."""
    halfway[h, H_ARRIVED] += 1
    if pace[P_MOST] >= 0 and pace[P_USED] >= pace[P_MOST]:
        return False
    budget = halfway[h, H_BUDGET]
    if budget >= 0:
        if halfway[h, H_PROBED] >= budget:
            return False
        expected = halfway[h, H_EXPECTED]
        if expected > budget:
            if pace[P_CHOICE] == NEWEST_FIRST and halfway[h, H_ARRIVED] <= expected - budget:
                return False
            if pace[P_CHOICE] == RANDOMLY:
                # By the number in the cycle: what came before it makes no difference, so a replay from any cycle draws the same.
                drawn = mix(
                    np.int64(mix(np.int64(mix(np.int64(mix(pace[P_SEED])) ^ h)) ^ pace[P_CYCLE]))
                    ^ halfway[h, H_ARRIVED]
                )
                if float(drawn >> np.uint64(11)) * 2.0**-53 * float(expected) >= float(budget):
                    return False
    halfway[h, H_PROBED] += 1
    pace[P_USED] += 1
    return True


# -- the climb -----------------------------------------------------------------------------------------


@inline
def note_age(words, stores, fresh, pace, bound, stale):
    """Note how old the rows of a result are, and whether it is stale."""
    too_old = False
    for s in range(stores.shape[0]):
        if stores[s, KIND] == STORED:
            continue
        behind = stale[s] - words[bound[s] + COORD]
        too_old |= behind >= 0
        fresh[F_AGE, s] = max(fresh[F_AGE, s], behind + fresh[F_SIZE, s])
    if too_old:
        pace[P_STALE] += 1


@inline
def climb_limited(
    words, halves, stores, indexes, climbs, path, stride, nodes, members, links, halfway, pace, fresh,
    bound, rows, cursor, leaf, kept, stale, origin, tag, time, silent, out, count, counters,
):  # fmt: skip
    """All results with the row bound so far that the probe budgets let it have; returns as :func:`muntin.kernels.tree_join.climb`."""
    n = stores.shape[0]
    scanned = np.int64(0)
    compared = np.int64(0)
    passed = np.int64(0)
    made = np.int64(0)
    full = np.int64(-1)
    h = origin
    level = 0 if may_probe(halfway, pace, h) else -1
    if level == 0:
        cursor[0] = begin_level(
            words, halves, stores, indexes, climbs, path, nodes, links, bound, counters
        )
    while level >= 0:
        at = path + level * stride
        y = climbs[at + CLIMB_NODE]
        here = cursor[level]
        found = False
        if y < n:
            x = climbs[at + CLIMB_INDEX]
            while here >= stores[y, TAIL]:
                address = row_address(stores, y, here)
                scanned += 1
                if dead(words, stores, y, address, leaf[y]):
                    passed += 1
                    break
                compared += 1
                bound[y] = address
                rows[y] = here
                here -= 1
                if x >= 0:
                    distance = np.int64(halves[2 * address + indexes[x, LINK]])
                    here = here + 1 - distance if distance != 0 else np.int64(-1)
                if agrees(words, climbs, at, bound):
                    found = True
                    break
        else:
            node = y - n
            first_slot = first_partial_match(nodes, node, pace)
            while here > first_slot:
                slot = here - 1
                here = np.int64(links[nodes[node, NODE_LINKS] + slot])
                scanned += 1
                if not alive(words, stores, nodes, members, node, slot, kept):
                    passed += 1
                    continue
                compared += 1
                first = nodes[node, NODE_MEMBERS] + slot * nodes[node, NODE_WIDTH]
                for member in range(nodes[node, NODE_WIDTH]):
                    s = nodes[node, NODE_SOURCES + member]
                    rows[s] = members[first + member]
                    bound[s] = row_address(stores, s, rows[s])
                if agrees(words, climbs, at, bound):
                    found = True
                    break
        cursor[level] = here
        if not found:
            level -= 1
            continue
        h = origin if level == 0 else n + climbs[at - stride + CLIMB_PARENT]
        halfway[h, H_MATCHED] += 1
        parent = climbs[at + CLIMB_PARENT]
        if parent < 0:
            if not silent:
                note_age(words, stores, fresh, pace, bound, stale)
                count = emit(halves, stores, bound, tag, time, out, count)
            continue
        if not keep_partial_match(words, stores, nodes, members, links, parent, rows):
            full = parent
            break
        made += 1
        if may_probe(halfway, pace, n + parent):
            level += 1
            cursor[level] = begin_level(
                words, halves, stores, indexes, climbs, at + stride, nodes, links, bound, counters
            )
    counters[N_SCANNED] += scanned
    counters[N_COMPARED] += compared
    counters[N_STALE] += passed
    counters[N_PARTIAL_MATCHES] += made
    return count if full < 0 else -1 - full


@inline
def save_counts(halfway, pace, fresh, saved):
    """Keep what a climb counts, to be able to undo it."""
    at = 0
    for h in range(halfway.shape[0]):
        saved[at] = halfway[h, H_ARRIVED]
        saved[at + 1] = halfway[h, H_PROBED]
        saved[at + 2] = halfway[h, H_MATCHED]
        at += 3
    for s in range(fresh.shape[1]):
        saved[at + s] = fresh[F_AGE, s]
    saved[at + fresh.shape[1]] = pace[P_USED]
    saved[at + fresh.shape[1] + 1] = pace[P_STALE]


@inline
def restore_counts(saved, halfway, pace, fresh):
    """Set the counts back to what they were."""
    at = 0
    for h in range(halfway.shape[0]):
        halfway[h, H_ARRIVED] = saved[at]
        halfway[h, H_PROBED] = saved[at + 1]
        halfway[h, H_MATCHED] = saved[at + 2]
        at += 3
    for s in range(fresh.shape[1]):
        fresh[F_AGE, s] = saved[at + s]
    pace[P_USED] = saved[at + fresh.shape[1]]
    pace[P_STALE] = saved[at + fresh.shape[1] + 1]


@kernel(
    "(int64[::1], int32[::1], int64[:,::1], int64[:,::1], int64[::1], int64[::1], int64,"
    " int64[:,::1], int64[::1], int32[::1],"
    " int64[:,::1], int64[::1], int64[:,::1],"
    " int32[::1], int64[::1], int64[::1], int64[:,::1], int64[::1],"
    " int64, int64, int64, int64, int64, int64, int64[:,::1], int64[::1], int64[::1])",
    part="overload",
)
def join_limited(
    words, halves, stores, indexes, first_index, climbs, stride,
    nodes, members, links,
    halfway, pace, fresh,
    sources, offsets, times, counts, incoming,
    start, stop, resume, count, silent, enough, out, counters, scratch,
):  # fmt: skip
    """Join rows one by one in total order as far as they are let; returns as :func:`muntin.kernels.tree_join.join_tree`.

    CYCLE: the event is of another cycle than the rows before, which is to begin; its row is not in its store yet.
    """
    n = stores.shape[0]
    bound = scratch[:n]
    rows = scratch[n : 2 * n]
    cursor = scratch[2 * n : 3 * n]
    leaf = scratch[3 * n : 4 * n]
    kept = scratch[4 * n : 5 * n]
    held = scratch[5 * n : 6 * n]
    stale = scratch[6 * n : 7 * n]
    marks = scratch[7 * n : 8 * n]
    saved = scratch[8 * n : 8 * n + COUNTERS]
    saved_counts = scratch[8 * n + COUNTERS :]
    for e in range(start, stop):
        if count >= enough:
            return np.int64(FULL), np.int64(e), count, np.int64(0), np.int64(0)
        if offsets[e] < 0:
            continue
        s = np.int64(sources[e])
        time = times[e]
        if time // pace[P_PERIOD] != pace[P_CYCLE]:
            return np.int64(CYCLE), np.int64(e), count, np.int64(0), np.int64(0)
        for other in range(n):
            if stores[other, KIND] == COUNT:
                fresh[F_SEEN, other] = counts[e, other]
        set_kept(stores, time, fresh, pace, leaf, kept, held, stale)
        if resume == 0:
            if stores[s, NEXT] - stores[s, TAIL] == stores[s, CAP]:
                expire_tail(words, stores, s, held[s], counters)
                if stores[s, NEXT] - stores[s, TAIL] == stores[s, CAP]:
                    return np.int64(GROW), np.int64(e), count, np.int64(0), np.int64(0)
            insert(words, halves, stores, indexes, s, first_index, incoming, offsets[e], counters)
            expire_two(words, stores, s, held[s], counters)
        resume = np.int64(0)
        rows[s] = stores[s, NEXT] - 1
        bound[s] = row_address(stores, s, rows[s])
        for node in range(nodes.shape[0]):
            marks[node] = nodes[node, NODE_USED]
        copy_counters(counters, saved)
        save_counts(halfway, pace, fresh, saved_counts)
        after = climb_limited(
            words, halves, stores, indexes, climbs, s * (n - 1) * stride, stride, nodes, members, links, halfway, pace, fresh,
            bound, rows, cursor, leaf, kept, stale, s, np.int64(e), time, silent, out, count, counters,
        )  # fmt: skip
        if after < 0 or after > out.shape[1]:
            undo(words, stores, nodes, members, links, marks)
            copy_counters(saved, counters)
            restore_counts(saved_counts, halfway, pace, fresh)
            if after < 0:
                return np.int64(WIDEN), np.int64(e), count, -1 - after, np.int64(1)
            return np.int64(OVERFLOW), np.int64(e), count, after - count, np.int64(1)
        count = after
    return np.int64(DONE), np.int64(stop), count, np.int64(0), np.int64(0)


@kernel("(int64[::1], int64[:,::1], int64[:,::1], int64[::1], int32[::1], int64)", part="overload")
def link_held(words, stores, nodes, members, links, node):
    """Chain the partial matches of a node, whose heads are empty, except those that have lost a row: nothing finds these any more."""
    width = nodes[node, NODE_WIDTH]
    for slot in range(nodes[node, NODE_USED]):
        first = nodes[node, NODE_MEMBERS] + slot * width
        whole = True
        for member in range(width):
            whole &= members[first + member] >= stores[nodes[node, NODE_SOURCES + member], TAIL]
        if whole:
            link_partial_match(words, stores, nodes, members, links, node, slot)
