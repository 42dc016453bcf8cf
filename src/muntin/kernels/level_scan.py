"""Scans of a shared join of two sources: an outer row looks at candidates up to a level's edge.

A scan keeps its pointer and looks at a candidate only when there is room for what that may yield,
so no result is lost or doubled when a call ends early. Joins of more sources have no single pointer
to resume (:mod:`muntin.kernels.tree_scan`).

A scan reads the time. Which clock that is, a :class:`Clock` decides when the scan is compiled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from muntin.kernels.jit import inline
from muntin.kernels.layout import (
    COORD,
    DONE,
    EQ,
    EVER,
    FULL,
    KIND,
    LINK,
    N_COMPARED,
    N_SCANNED,
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
from muntin.kernels.probe import matches
from muntin.kernels.result_router import Band, Outer, Pair, hold, release
from muntin.kernels.rows import (
    full_position,
    row_address,
)
from muntin.kernels.scheduler_state import (
    CONTAINED,
    FREE,
    LWO,
    MORE_PLACES,
    O_CODE,
    O_OWN,
    O_RESUME,
    O_TIME,
    PAUSED,
    R_RELEASED,
    SCHEDULER,
    SWF,
    UNTIL,
    USED,
)

_GLANCE = 64
"""Candidates between reads of the machine's clock; a result counts for several."""
_RESULT = 8


class Clock(NamedTuple):
    """The clock of a shared join: inlined functions, called with the ``clock`` of the kernel.

    ``read(clock)``: the time in nanoseconds.
    ``is_measured(clock)``: whether time passes while the kernel works; else work spends it.
    ``spend(clock, looked, found)``: advance by the costs of candidates and results; the new time.
    ``most_candidates(clock)``: candidates of one scan after which it looks at arrivals.
    ``has_come(clock, arrival, now)``: whether a row that arrives then can be taken.
    ``note_taken(clock, event)``: a row was taken.
    ``wait(clock, arrival, now)``: nothing is to be done before an arrival; the new time.
    ``record(clock, scanned, begin)``: a :class:`Scanned` has ended.
    """

    read: Any
    is_measured: Any
    spend: Any
    most_candidates: Any
    has_come: Any
    note_taken: Any
    wait: Any
    record: Any


class Scanned(NamedTuple):
    """A scan, inside a kernel: outer row, level, candidates looked at, whether it finished."""

    number: int
    level: int
    looked: int
    finished: bool


@inline
def base_of(stores, s, time, bases, slot):
    """Return where distances to rows of a store begin.

    At the outer row's time, or its last position.
    """
    if stores[s, KIND] == TIME:
        return time
    if stores[s, KIND] == STORED:
        return np.int64(0)
    return bases[slot, s]


@inline
def limit_when(stores, s, time, bases, slot):
    """Return what rows of a store must be above to be inside the largest window of an outer row."""
    if stores[s, KIND] == STORED:
        return np.int64(EVER)
    return base_of(stores, s, time, bases, slot) - stores[s, SIZE]


def make_scan(policy: Clock) -> Any:
    """Return the scan of a join of two sources by a clock."""
    read, is_measured = policy.read, policy.is_measured
    spend, most_candidates = policy.spend, policy.most_candidates

    @inline
    def scan(arena, program, levels, queues, clock, queue, output, count, now):
        """Let the head of a queue look at candidates up to the edge of a level.

        Returns why it stopped, results, candidates looked at, whether it finished, and when. By the
        machine's clock a result is released when the clock was read after it.
        """
        words, halves, stores, indexes = arena.words, arena.halves, arena.stores, arena.indexes
        flat, stride = program.flat, program.stride
        edges, sizes = levels.edges, levels.sizes
        state, links, bases, pairs = queues.state, queues.links, queues.bases, queues.pool
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
        depth = sizes.shape[0]
        scheduler = state[SCHEDULER]
        edge = edges[depth - 1, o] if scheduler == LWO else edges[queue, o]
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
        until = np.int64(depth) if scheduler == LWO else links[0, queue]
        band = np.int64(0) if scheduler == LWO else queue
        measured = is_measured(clock)
        most = most_candidates(clock)
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
            if looked == most:
                finished = False
                break
            if count + depth > room:
                status = np.int64(FULL)
                finished = False
                break
            if state[FREE] < 0 and state[USED] == pairs.shape[0]:
                status = np.int64(MORE_PLACES)
                finished = False
                break
            looked += 1
            if measured:
                glance -= 1
                if glance <= 0:
                    now = read(clock)
                    glance = _GLANCE
                    while fresh < count:
                        out[fresh, 4 + R_RELEASED] = now
                        fresh += 1
                    if now >= state[UNTIL]:
                        # This candidate is still looked at; the next call resumes behind it.
                        status = np.int64(PAUSED)
            else:
                now = spend(clock, 1, 0)
                if now >= state[UNTIL]:
                    status = np.int64(PAUSED)
            found = (
                words[address + word] == code
                if simple
                else matches(words, flat, at, address, bound)
            )
            if found:
                if measured:
                    glance -= _RESULT - 1
                else:
                    now = spend(clock, 0, 1)
                partner = full_position(stores, o, halves[2 * address + POSITION])
                pair = Pair(partner, np.int64(0) if stored else base - coordinate)
                if scheduler == LWO and state[CONTAINED]:
                    while pair.distance >= sizes[band, o]:
                        band += 1
                if scheduler != SWF:
                    shown = Band(band, until)
                    count = release(outer, pair, shown, state, sizes, now, out, count)
                if scheduler == SWF or until < depth:
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
        now = read(clock)
        if measured:
            while fresh < count:
                out[fresh, 4 + R_RELEASED] = now
                fresh += 1
        return status, count, looked, finished, now

    return scan
