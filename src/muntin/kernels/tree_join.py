"""The join as a binary tree that keeps its intermediate results ([Mukherji11, section 2]).

Leaves are the stores of the sources. Inner nodes below the root hold *partial matches*: one row
number per source of the node. A new row probes its sibling; every match is kept in the parent,
probes the parent's sibling, and so on up to the root, where it is a result. Partial matches are
chained per bucket from new to old like rows. A row costs the rows and partial matches it looks at,
and the partial matches it makes.

Invariant: a partial match is alive as long as all its members are. Members leave by their own
windows, so partial matches do not die in the order in which they were made: dead ones are skipped,
and dropped when their node is full. Rows keep their numbers when a ring moves,
so partial matches stay valid; partitioned windows renumber rows and do not run as trees.

Nothing above a row's path changes while it climbs, so a climb that does not fit can be undone and
repeated: its partial matches are the last ones of their nodes and the heads of their chains.

One walk serves the unlimited join and the one under probe budgets
(:mod:`muntin.kernels.budgeted_join`), which :mod:`muntin.kernels.probe_budgets` limits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muntin.kernels.arrays import (
    Arena,
    EventArrays,
    Integers,
    Output,
    Program,
    Span,
    Stamp,
    TreeNodes,
)
from muntin.kernels.jit import inline, kernel
from muntin.kernels.layout import (
    BUCKETS,
    CAP,
    CLIMB_ARGUMENTS,
    CLIMB_CHECKS,
    CLIMB_INDEX,
    CLIMB_KEYS,
    CLIMB_NODE,
    CLIMB_PARENT,
    COUNTERS,
    CYCLE,
    DONE,
    FULL,
    GROW,
    LINK,
    MODULAR,
    N_COMPARED,
    N_PARTIAL_MATCHES,
    N_PROBES,
    N_SCANNED,
    N_STALE,
    NEXT,
    NODE_BUCKETS,
    NODE_HEADS,
    NODE_LINKS,
    NODE_MEMBERS,
    NODE_SOURCES,
    NODE_USED,
    NODE_WIDTH,
    OVERFLOW,
    TAIL,
    WIDEN,
)
from muntin.kernels.nway_join import copy_counters
from muntin.kernels.partial_matches import alive, keep_partial_match, undo
from muntin.kernels.probe import emit
from muntin.kernels.probe_budgets import (
    Limits,
    count_match,
    count_result,
    first_slot,
    is_over,
    make_limits,
    may_begin,
    may_probe,
    restore_counts,
    save_counts,
    set_tree_limits,
)
from muntin.kernels.rows import (
    bucket_of,
    dead,
    expire_tail,
    expire_two,
    holds,
    insert,
    mix,
    newest_in,
    row_address,
)

# -- the climb -------------------------------------------------------------------------------------


@inline
def begin_level(arena, flat, at, tree, bound, counters):
    """Return the newest candidate of a sibling.

    A row number, or a partial match's slot plus one.
    """
    counters[N_PROBES] += 1
    words, halves, stores, indexes = arena.words, arena.halves, arena.stores, arena.indexes
    n = stores.shape[0]
    y = flat[at + CLIMB_NODE]
    x = flat[at + CLIMB_INDEX]
    if y < n and x < 0:
        return stores[y, NEXT] - 1
    hashed = np.uint64(0)
    for c in range(flat[at + CLIMB_KEYS]):
        argument = at + CLIMB_ARGUMENTS + 2 * c
        hashed = mix(np.int64(hashed) ^ words[bound[flat[argument]] + flat[argument + 1]])
    if y < n:
        argument = at + CLIMB_ARGUMENTS + 2 * (flat[at + CLIMB_KEYS] - 1)
        code = words[bound[flat[argument]] + flat[argument + 1]]
        bucket = bucket_of(hashed, code, indexes[x, MODULAR], indexes[x, BUCKETS])
        return newest_in(halves, stores, y, indexes, x, bucket)
    bucket = bucket_of(hashed, np.int64(0), np.int64(0), tree.nodes[y - n, NODE_BUCKETS])
    return np.int64(tree.links[tree.nodes[y - n, NODE_HEADS] + bucket])


@inline
def agrees(words, flat, at, bound):
    """Return whether the rows of the sibling agree with those bound before."""
    argument = at + CLIMB_ARGUMENTS + 2 * flat[at + CLIMB_KEYS]
    for _ in range(flat[at + CLIMB_CHECKS]):
        mine = words[bound[flat[argument + 1]] + flat[argument + 2]]
        other = words[bound[flat[argument + 3]] + flat[argument + 4]]
        if not holds(flat[argument], mine, other):
            return False
        argument += 5
    return True


class Climb(NamedTuple):
    """Scratch of a climb: addresses and numbers of the rows bound so far, candidates, limits."""

    bound: Integers
    rows: Integers
    cursor: Integers
    limits: Limits


@inline
def climb(arena, program, tree, budgets, origin, scratch, stamp, silent, output, count):
    """Append all results with the row bound so far and keep partial matches on the way.

    Returns the new count, or minus one less the node that is full.
    """
    words, halves, stores, indexes = arena.words, arena.halves, arena.stores, arena.indexes
    flat, stride = program.flat, program.stride
    nodes, members, links = tree.nodes, tree.members, tree.links
    bound, rows, cursor, limits = scratch.bound, scratch.rows, scratch.cursor, scratch.limits
    counters = output.counters
    n = stores.shape[0]
    path = origin * (n - 1) * stride
    scanned = np.int64(0)
    compared = np.int64(0)
    stale = np.int64(0)
    kept = np.int64(0)
    full = np.int64(-1)
    level = -1
    if may_begin(budgets, words, limits.stale, origin, bound[origin]):
        level = 0
        cursor[0] = begin_level(arena, flat, path, tree, bound, counters)
    while level >= 0:
        at = path + level * stride
        y = flat[at + CLIMB_NODE]
        here = cursor[level]
        found = False
        if y < n:
            x = flat[at + CLIMB_INDEX]
            while here >= stores[y, TAIL]:
                address = row_address(stores, y, here)
                scanned += 1
                if dead(words, stores, y, address, limits.leaf[y]):
                    stale += 1
                    break
                compared += 1
                bound[y] = address
                rows[y] = here
                here -= 1
                if x >= 0:
                    distance = np.int64(halves[2 * address + indexes[x, LINK]])
                    here = here + 1 - distance if distance != 0 else np.int64(-1)
                if agrees(words, flat, at, bound):
                    found = True
                    break
        else:
            node = y - n
            oldest = first_slot(budgets, nodes, node)
            while here > oldest:
                slot = here - 1
                here = np.int64(links[nodes[node, NODE_LINKS] + slot])
                scanned += 1
                if not alive(arena, tree, node, slot, limits.member):
                    stale += 1
                    continue
                compared += 1
                first = nodes[node, NODE_MEMBERS] + slot * nodes[node, NODE_WIDTH]
                for member in range(nodes[node, NODE_WIDTH]):
                    s = nodes[node, NODE_SOURCES + member]
                    rows[s] = members[first + member]
                    bound[s] = row_address(stores, s, rows[s])
                if agrees(words, flat, at, bound):
                    found = True
                    break
        cursor[level] = here
        if not found:
            level -= 1
            continue
        count_match(budgets, origin if level == 0 else n + flat[at - stride + CLIMB_PARENT])
        parent = flat[at + CLIMB_PARENT]
        if parent < 0:
            if not silent:
                count_result(budgets, arena, bound, limits.stale)
                count = emit(arena, bound, stamp, output.out, count)
            continue
        if not keep_partial_match(arena, tree, parent, rows):
            full = parent
            break
        kept += 1
        if may_probe(budgets, n + parent):
            level += 1
            cursor[level] = begin_level(arena, flat, at + stride, tree, bound, counters)
    counters[N_SCANNED] += scanned
    counters[N_COMPARED] += compared
    counters[N_STALE] += stale
    counters[N_PARTIAL_MATCHES] += kept
    return count if full < 0 else -1 - full


@inline
def join_rows(arena, program, tree, budgets, events, span, count, silent, output):
    """Join rows one by one in total order; ``budgets`` is None where all of them probe."""
    words, stores, nodes = arena.words, arena.stores, tree.nodes
    offsets, times = events.offsets, events.times
    out, counters, scratch = output.out, output.counters, output.scratch
    start, stop, resume, enough = span
    n = stores.shape[0]
    bound = scratch[:n]
    rows = scratch[n : 2 * n]
    marks = scratch[3 * n : 4 * n]
    saved = scratch[4 * n : 4 * n + COUNTERS]
    rest = scratch[4 * n + COUNTERS :]
    limits = make_limits(budgets, rest, n)
    climbing = Climb(bound, rows, scratch[2 * n : 3 * n], limits)
    for e in range(start, stop):
        if count >= enough:
            return np.int64(FULL), np.int64(e), count, np.int64(0), np.int64(0)
        if offsets[e] < 0:
            continue
        s = np.int64(events.sources[e])
        if is_over(budgets, times[e]):
            return np.int64(CYCLE), np.int64(e), count, np.int64(0), np.int64(0)
        set_tree_limits(budgets, stores, events, e, limits)
        if resume == 0:
            if stores[s, NEXT] - stores[s, TAIL] == stores[s, CAP]:
                expire_tail(words, stores, s, limits.held[s], counters)
                if stores[s, NEXT] - stores[s, TAIL] == stores[s, CAP]:
                    return np.int64(GROW), np.int64(e), count, np.int64(0), np.int64(0)
            insert(arena, s, events.incoming, offsets[e], counters)
            expire_two(words, stores, s, limits.held[s], counters)
        resume = np.int64(0)
        rows[s] = stores[s, NEXT] - 1
        bound[s] = row_address(stores, s, rows[s])
        for node in range(nodes.shape[0]):
            marks[node] = nodes[node, NODE_USED]
        copy_counters(counters, saved)
        save_counts(budgets, rest, n)
        stamp = Stamp(np.int64(e), times[e])
        after = climb(arena, program, tree, budgets, s, climbing, stamp, silent, output, count)
        if after < 0 or after > out.shape[1]:
            undo(arena, tree, marks)
            copy_counters(saved, counters)
            restore_counts(budgets, rest, n)
            if after < 0:
                return np.int64(WIDEN), np.int64(e), count, -1 - after, np.int64(1)
            return np.int64(OVERFLOW), np.int64(e), count, after - count, np.int64(1)
        count = after
    return np.int64(DONE), np.int64(stop), count, np.int64(0), np.int64(0)


@kernel(Arena, Program, TreeNodes, EventArrays, Span, int, int, Output)
def join_tree(arena, program, tree, events, span, count, silent, output):
    """Join rows one by one in total order, with ``count`` results in ``out`` already.

    Returns what :func:`muntin.kernels.nway_join.join_arrivals` returns. WIDEN: the node ``need`` is
    full; the climb was undone, and the event's row is in its store.
    """
    return join_rows(arena, program, tree, None, events, span, count, silent, output)
