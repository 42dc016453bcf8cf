"""Scans of a shared join of three and more sources: each outer row keeps its search tree.

The tree has a node for each partial match that a row has found for its levels so far, under the
partial match that it extends, newest partner first. A node remembers the candidate at which its own
search stopped, because that one is outside the windows so far (``T_RESUME``). Those that lack one
source have blocks of leaves instead: the rows that complete them. For the next level a
walk over the tree continues each search up to the new edge, so only candidates between the two
edges are looked at, each once whatever the number of levels. What is found is older than what is
there, so children are only appended, and a walk from left to right meets all matches in the order
of results: the level gets them as alone.

The cost of a level: the candidates between its edge and the previous one, one comparison for each
partial match that may be extended, and the results of the level. Partial matches that have no
matches and no more candidates leave the tree. The last level keeps nothing.

Why no result is lost or doubled when a call ends early: all that was found is in the tree, and the
next call walks it again from the start. The last level leaves the tree as it is until its results
fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from muntin.kernels.arrays import Walk
from muntin.kernels.jit import inline
from muntin.kernels.layout import (
    COORD,
    DONE,
    EVER,
    KIND,
    LINK,
    N_COMPARED,
    N_PROBES,
    N_SCANNED,
    OVERFLOW,
    POSITION,
    STEP_INDEX,
    STEP_STORE,
    STORED,
    TAIL,
)
from muntin.kernels.level_scan import Clock, base_of
from muntin.kernels.probe import begin_before, matches, step_bucket
from muntin.kernels.rows import full_position, newest_in, row_address
from muntin.kernels.scheduler_state import (
    CONTAINED,
    HELD,
    MORE_PLACES,
    MOST_HELD,
    NEED,
    O_ARRIVAL,
    O_KEPT,
    O_OWN,
    O_POSITION,
    O_ROOT,
    O_TIME,
    R_ARRIVAL,
    R_FROM,
    R_RELEASED,
    R_UNTIL,
    STALE,
    T_COUNT,
    T_FIRST,
    T_LAST,
    T_LEAVES,
    T_NEXT,
    T_RESUME,
    T_ROW,
    UNBEGUN,
)
from muntin.kernels.search_tree import (
    LEAVES,
    NONE,
    add_leaf,
    append_child,
    drop_tree,
    free_node,
    is_exhausted,
    new_node,
    remove_child,
)

_EXHAUSTED = -2
"""The root of an outer row that has no matches and no more candidates."""


@inline
def resume_of(arena, flat, at, walk, node, pool, counters):
    """Return the next candidate of a partial match; that of one without a node is its first.

    When a store has moved, a chain has other rows: the next candidate is the newest row of the
    bucket that is not newer than the one noted.
    """
    halves, stores, indexes = arena.halves, arena.stores, arena.indexes
    noted = np.int64(UNBEGUN) if node < 0 else pool[node, T_RESUME]
    if noted >= NONE:
        return noted
    if noted == UNBEGUN:
        seq = begin_before(arena, flat, at, walk, 0, counters)
    else:
        s = flat[at + STEP_STORE]
        x = flat[at + STEP_INDEX]
        noted = STALE - noted
        seq = noted
        if x >= 0:
            child = pool[node, T_LAST]
            if child >= 0:
                # The last partner is in the bucket of all of them, whatever the number of buckets.
                leaves = pool[node, T_COUNT]
                word = T_ROW if leaves == 0 else T_LEAVES + (leaves - 1) % LEAVES
                seq = pool[child, word]
            else:
                bucket = step_bucket(arena.words, indexes, flat, at, walk.bound)
                seq = newest_in(halves, stores, s, indexes, x, bucket)
            while seq > noted and seq >= stores[s, TAIL]:
                link = np.int64(halves[2 * row_address(stores, s, seq) + indexes[x, LINK]])
                seq = seq - link if link != 0 else np.int64(NONE)
    if node >= 0:
        pool[node, T_RESUME] = seq
    return seq


@inline
def put(number, time, positions, out, count):
    """Write a result where there is room, and count it in any case."""
    if count < out.shape[0]:
        out[count, 0] = number
        out[count, 1] = time
        for source in range(positions.shape[0]):
            out[count, 2 + source] = positions[source]
    return count + 1


def make_scan_many(policy: Clock) -> Any:
    """Return the scan of a join of more than two sources by a clock."""
    read, is_measured, spend = policy.read, policy.is_measured, policy.spend

    @inline
    def search(arena, program, queue, queues, output, count):
        """Write the results of a level for the head of a queue, as far as there is room.

        Returns why it stopped, results (also those without room), and candidates looked at.
        """
        words, halves, stores, indexes = arena.words, arena.halves, arena.stores, arena.indexes
        flat, stride = program.flat, program.stride
        state, pool = queues.state, queues.pool
        out, counters, scratch = output.out, output.counters, output.scratch
        n = stores.shape[0]
        last = n - 2
        number = queues.done[queue + 1]
        slot = number & (queues.outers.shape[0] - 1)
        row = queues.outers[slot]
        # For each source the row and position of the path, and what coordinates must be above to
        # be before the edge and inside the level; for each step the node that it extends, its next
        # known child, the last known child that stays, and the next candidate.
        bound, edges, insides = scratch[:n], scratch[n : 2 * n], scratch[2 * n : 3 * n]
        positions = scratch[3 * n : 4 * n]
        nodes = scratch[4 * n : 5 * n]
        children = scratch[5 * n : 6 * n]
        befores = scratch[6 * n : 7 * n]
        resumes = scratch[7 * n : 8 * n]
        walk = Walk(bound, resumes, befores, queues.bounds[slot], edges)
        own = row[O_OWN] & 15
        steps = own * n * stride
        bound[own] = row_address(stores, own, row[O_OWN] >> 4)
        positions[own] = row[O_POSITION]
        keeps = queue + 2 < queues.done.shape[0]
        if row[O_ROOT] == _EXHAUSTED:
            return np.int64(DONE), count, np.int64(0)
        if keeps and row[O_ROOT] < 0:
            row[O_ROOT] = new_node(state, pool, row[O_OWN] >> 4, UNBEGUN)
            if row[O_ROOT] < 0:
                return np.int64(MORE_PLACES), count, np.int64(0)
        contained = state[CONTAINED] != 0
        # The first step of the path that is outside the level's windows, n if none is.
        outside = n
        looked = np.int64(0)
        step = 0
        entered = True
        nodes[0] = row[O_ROOT]
        while step >= 0:
            at = steps + step * stride
            s = flat[at + STEP_STORE]
            node = nodes[step]
            if outside >= step:
                outside = n
            if entered:
                entered = False
                resumes[step] = resume_of(arena, flat, at, walk, node, pool, counters)
                befores[step] = NONE
                children[step] = np.int64(NONE) if node < 0 else pool[node, T_FIRST]
                if step == last and node >= 0:
                    block = children[step]
                    children[step] = NONE
                    leaves = pool[node, T_COUNT] if outside == n else np.int64(0)
                    for leaf in range(leaves):
                        address = row_address(stores, s, pool[block, T_LEAVES + leaf % LEAVES])
                        if contained or words[address + COORD] > insides[s]:
                            low = halves[2 * address + POSITION]
                            positions[s] = full_position(stores, s, low)
                            count = put(number, row[O_TIME], positions, out, count)
                        if leaf % LEAVES == LEAVES - 1:
                            block = pool[block, T_NEXT]
            child = children[step]
            if child >= 0:
                children[step] = pool[child, T_NEXT]
                bound[s] = row_address(stores, s, pool[child, T_ROW])
            else:
                x = flat[at + STEP_INDEX]
                tail = stores[s, TAIL]
                stored = stores[s, KIND] == STORED
                seq = resumes[step]
                mine = seq
                address = np.int64(0)
                found = False
                while seq >= tail:
                    address = row_address(stores, s, seq)
                    if words[address + COORD] <= edges[s] and not stored:
                        break
                    looked += 1
                    mine = seq
                    if x >= 0:
                        link = np.int64(halves[2 * address + indexes[x, LINK]])
                        seq = seq - link if link != 0 else np.int64(NONE)
                    else:
                        seq -= 1
                    if matches(words, flat, at, address, bound):
                        found = True
                        break
                if not found:
                    if keeps and node >= 0:
                        pool[node, T_RESUME] = seq if seq >= tail else np.int64(NONE)
                    step -= 1
                    if keeps and step >= 0:
                        if is_exhausted(node, pool):
                            remove_child(nodes[step], befores[step], node, pool)
                            free_node(node, state, pool)
                        else:
                            befores[step] = node
                    continue
                bound[s] = address
                resumes[step] = seq
                if keeps:
                    if step < last:
                        child = new_node(state, pool, mine, UNBEGUN)
                        fits = child >= 0
                    else:
                        fits = add_leaf(node, mine, state, pool)
                    if not fits:
                        pool[node, T_RESUME] = mine
                        return np.int64(MORE_PLACES), count, looked - 1
                    pool[node, T_RESUME] = seq
                    if step < last:
                        append_child(node, child, pool)
                    else:
                        row[O_KEPT] += 1
                        state[HELD] += 1
                        if state[HELD] > state[MOST_HELD]:
                            state[MOST_HELD] = state[HELD]
            if not contained and outside == n and words[bound[s] + COORD] <= insides[s]:
                outside = step
            positions[s] = full_position(stores, s, halves[2 * bound[s] + POSITION])
            if step < last:
                step += 1
                nodes[step] = child
                entered = True
            elif outside == n:
                count = put(number, row[O_TIME], positions, out, count)
        if keeps and is_exhausted(row[O_ROOT], pool):
            free_node(row[O_ROOT], state, pool)
            row[O_ROOT] = _EXHAUSTED
        return np.int64(DONE), count, looked

    @inline
    def scan_many(arena, program, levels, queues, clock, queue, output, count):
        """Find the matches of a level for the head of a queue; OVERFLOW when they do not fit."""
        stores, state = arena.stores, queues.state
        out, counters, scratch = output.out, output.counters, output.scratch
        n = stores.shape[0]
        number = queues.done[queue + 1]
        slot = number & (queues.outers.shape[0] - 1)
        row = queues.outers[slot]
        place = np.int64(0) if queues.bases.shape[0] == 1 else slot
        for other in range(n):
            if stores[other, KIND] == STORED:
                scratch[n + other] = EVER
                scratch[2 * n + other] = EVER
            else:
                base = base_of(stores, other, row[O_TIME], queues.bases, place)
                scratch[n + other] = base - levels.edges[queue, other]
                scratch[2 * n + other] = base - levels.sizes[queue, other]
        probes = counters[N_PROBES]
        keeps = queue + 2 < queues.done.shape[0]
        status, after, looked = search(arena, program, queue, queues, output, count)
        if status == DONE and after > out.shape[0]:
            state[NEED] = after - count
            status = np.int64(OVERFLOW)
            if not keeps:
                # It will be searched again.
                counters[N_PROBES] = probes
                looked = np.int64(0)
        counters[N_SCANNED] += looked
        counters[N_COMPARED] += looked
        if status != DONE:
            return status, count, looked
        if not keeps:
            drop_tree(row, state, queues.pool)
        if not is_measured(clock):
            spend(clock, looked, after - count)
        now = read(clock)
        for result in range(count, after):
            out[result, 2 + n + R_FROM] = queue
            out[result, 2 + n + R_UNTIL] = queue + 1
            out[result, 2 + n + R_ARRIVAL] = row[O_ARRIVAL]
            out[result, 2 + n + R_RELEASED] = now
        return status, after, looked

    return scan_many
