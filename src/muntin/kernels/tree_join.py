"""The join as a binary tree that keeps its intermediate results (paper 3's counterpart; paper 5, section 2).

Leaves are the stores of the sources, inner nodes below the root hold *partial matches*: one row number per source of the
node. A new row looks into its sibling; every match is kept in the parent, looks into the parent's sibling, and so on up
to the root, where it is a result. Partial matches are chained per bucket from new to old like rows.

A partial match is alive as long as all its members are. Members leave by their own windows, so partial matches do not die in the
order in which they were made: dead ones are passed over, and dropped when their node is full (:func:`drop_dead`). Rows keep
their numbers when a ring moves, so partial matches stay right; partitioned windows number anew and are not run as trees.

Nothing above a row's own path changes while it climbs, so a climb that does not fit can be undone and repeated: its partial matches
are the last ones of their nodes and the heads of their chains.
"""

from __future__ import annotations

import numpy as np

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
    NODE_CAP,
    NODE_HEADS,
    NODE_KEY_COUNT,
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
from muntin.kernels.probe import emit, set_limits
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


@inline
def partial_match_bucket(words, stores, nodes, members, node, slot):
    """The bucket of a stored partial match; its members are still in their rings."""
    sources = NODE_SOURCES + stores.shape[0]
    first = nodes[node, NODE_MEMBERS] + slot * nodes[node, NODE_WIDTH]
    hashed = np.uint64(0)
    for c in range(nodes[node, NODE_KEY_COUNT]):
        at = sources + 2 * c
        member = nodes[node, at]
        s = nodes[node, NODE_SOURCES + member]
        code = words[row_address(stores, s, members[first + member]) + nodes[node, at + 1]]
        hashed = mix(np.int64(hashed) ^ code)
    return bucket_of(hashed, np.int64(0), np.int64(0), nodes[node, NODE_BUCKETS])


@inline
def alive(words, stores, nodes, members, node, slot, limits):
    """Whether all members of a partial match are inside their windows."""
    first = nodes[node, NODE_MEMBERS] + slot * nodes[node, NODE_WIDTH]
    for member in range(nodes[node, NODE_WIDTH]):
        s = nodes[node, NODE_SOURCES + member]
        seq = members[first + member]
        if seq < stores[s, TAIL] or dead(words, stores, s, row_address(stores, s, seq), limits[s]):
            return False
    return True


@inline
def link_partial_match(words, stores, nodes, members, links, node, slot):
    """Make a partial match the head of its bucket."""
    head = nodes[node, NODE_HEADS] + partial_match_bucket(words, stores, nodes, members, node, slot)
    links[nodes[node, NODE_LINKS] + slot] = links[head]
    links[head] = np.int32(slot + 1)


@inline
def keep_partial_match(words, stores, nodes, members, links, node, rows):
    """Store the rows bound so far in a node; False when it is full."""
    slot = nodes[node, NODE_USED]
    if slot == nodes[node, NODE_CAP]:
        return False
    first = nodes[node, NODE_MEMBERS] + slot * nodes[node, NODE_WIDTH]
    for member in range(nodes[node, NODE_WIDTH]):
        members[first + member] = rows[nodes[node, NODE_SOURCES + member]]
    nodes[node, NODE_USED] = slot + 1
    link_partial_match(words, stores, nodes, members, links, node, slot)
    return True


@inline
def undo(words, stores, nodes, members, links, marks):
    """Take back the partial matches that were made since ``marks``."""
    for node in range(nodes.shape[0]):
        while nodes[node, NODE_USED] > marks[node]:
            slot = nodes[node, NODE_USED] - 1
            head = nodes[node, NODE_HEADS] + partial_match_bucket(
                words, stores, nodes, members, node, slot
            )
            links[head] = links[nodes[node, NODE_LINKS] + slot]
            nodes[node, NODE_USED] = slot


@inline
def begin_level(words, halves, stores, indexes, climbs, at, nodes, links, bound, counters):
    """The newest candidate of a sibling: the row number in a leaf, the slot plus one of a partial match."""
    counters[N_PROBES] += 1
    n = stores.shape[0]
    y = climbs[at + CLIMB_NODE]
    x = climbs[at + CLIMB_INDEX]
    if y < n and x < 0:
        return stores[y, NEXT] - 1
    hashed = np.uint64(0)
    for c in range(climbs[at + CLIMB_KEYS]):
        argument = at + CLIMB_ARGUMENTS + 2 * c
        hashed = mix(np.int64(hashed) ^ words[bound[climbs[argument]] + climbs[argument + 1]])
    if y < n:
        argument = at + CLIMB_ARGUMENTS + 2 * (climbs[at + CLIMB_KEYS] - 1)
        code = words[bound[climbs[argument]] + climbs[argument + 1]]
        return newest_in(
            halves,
            stores,
            y,
            indexes,
            x,
            bucket_of(hashed, code, indexes[x, MODULAR], indexes[x, BUCKETS]),
        )
    bucket = bucket_of(hashed, np.int64(0), np.int64(0), nodes[y - n, NODE_BUCKETS])
    return np.int64(links[nodes[y - n, NODE_HEADS] + bucket])


@inline
def agrees(words, climbs, at, bound):
    """Whether the rows of the sibling agree with those bound before."""
    argument = at + CLIMB_ARGUMENTS + 2 * climbs[at + CLIMB_KEYS]
    for _ in range(climbs[at + CLIMB_CHECKS]):
        mine = words[bound[climbs[argument + 1]] + climbs[argument + 2]]
        other = words[bound[climbs[argument + 3]] + climbs[argument + 4]]
        if not holds(climbs[argument], mine, other):
            return False
        argument += 5
    return True


@inline
def climb(
    words, halves, stores, indexes, climbs, path, stride, nodes, members, links, bound, rows, cursor, limits, tag, time, silent,
    out, count, counters,
):  # fmt: skip
    """All results with the row bound so far, partial matches kept on the way; the new count, or minus one less the node that is full."""
    n = stores.shape[0]
    scanned = np.int64(0)
    compared = np.int64(0)
    stale = np.int64(0)
    kept = np.int64(0)
    full = np.int64(-1)
    level = 0
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
                if dead(words, stores, y, address, limits[y]):
                    stale += 1
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
            while here > 0:
                slot = here - 1
                here = np.int64(links[nodes[node, NODE_LINKS] + slot])
                scanned += 1
                if not alive(words, stores, nodes, members, node, slot, limits):
                    stale += 1
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
        parent = climbs[at + CLIMB_PARENT]
        if parent < 0:
            if not silent:
                count = emit(halves, stores, bound, tag, time, out, count)
            continue
        if not keep_partial_match(words, stores, nodes, members, links, parent, rows):
            full = parent
            break
        kept += 1
        level += 1
        cursor[level] = begin_level(
            words, halves, stores, indexes, climbs, at + stride, nodes, links, bound, counters
        )
    counters[N_SCANNED] += scanned
    counters[N_COMPARED] += compared
    counters[N_STALE] += stale
    counters[N_PARTIAL_MATCHES] += kept
    return count if full < 0 else -1 - full


@kernel(
    "(int64[::1], int32[::1], int64[:,::1], int64[:,::1], int64[::1], int64[::1], int64,"
    " int64[:,::1], int64[::1], int32[::1],"
    " int32[::1], int64[::1], int64[::1], int64[:,::1], int64[::1],"
    " int64, int64, int64, int64, int64, int64, int64[:,::1], int64[::1], int64[::1])"
)
def join_tree(
    words, halves, stores, indexes, first_index, climbs, stride,
    nodes, members, links,
    sources, offsets, times, counts, incoming,
    start, stop, resume, count, silent, enough, out, counters, scratch,
):  # fmt: skip
    """Join rows one by one in total order; returns as :func:`muntin.kernels.nway_join.join_arrivals` does.

    ``count`` results are in ``out`` already. WIDEN: the node ``need`` is full; the climb was undone, and the event's row is
    in its store.
    """
    n = stores.shape[0]
    bound = scratch[:n]
    rows = scratch[n : 2 * n]
    cursor = scratch[2 * n : 3 * n]
    limits = scratch[3 * n : 4 * n]
    marks = scratch[4 * n : 5 * n]
    saved = scratch[5 * n : 5 * n + COUNTERS]
    for e in range(start, stop):
        if count >= enough:
            return np.int64(FULL), np.int64(e), count, np.int64(0), np.int64(0)
        if offsets[e] < 0:
            continue
        s = np.int64(sources[e])
        time = times[e]
        set_limits(stores, time, counts, e, limits)
        if resume == 0:
            if stores[s, NEXT] - stores[s, TAIL] == stores[s, CAP]:
                expire_tail(words, stores, s, limits[s], counters)
                if stores[s, NEXT] - stores[s, TAIL] == stores[s, CAP]:
                    return np.int64(GROW), np.int64(e), count, np.int64(0), np.int64(0)
            insert(words, halves, stores, indexes, s, first_index, incoming, offsets[e], counters)
            expire_two(words, stores, s, limits[s], counters)
        resume = np.int64(0)
        rows[s] = stores[s, NEXT] - 1
        bound[s] = row_address(stores, s, rows[s])
        for node in range(nodes.shape[0]):
            marks[node] = nodes[node, NODE_USED]
        copy_counters(counters, saved)
        after = climb(
            words, halves, stores, indexes, climbs, s * (n - 1) * stride, stride, nodes, members, links, bound, rows, cursor, limits,
            np.int64(e), time, silent, out, count, counters,
        )  # fmt: skip
        if after < 0 or after > out.shape[1]:
            undo(words, stores, nodes, members, links, marks)
            copy_counters(saved, counters)
            if after < 0:
                return np.int64(WIDEN), np.int64(e), count, -1 - after, np.int64(1)
            return np.int64(OVERFLOW), np.int64(e), count, after - count, np.int64(1)
        count = after
    return np.int64(DONE), np.int64(stop), count, np.int64(0), np.int64(0)


@kernel("(int64[::1], int64[:,::1], int64[:,::1], int64[::1], int64[::1], int64)")
def drop_dead(words, stores, nodes, members, limits, node):
    """Move the partial matches of a node that are alive together, in their order; chains are to be made anew. Returns their number."""
    width = nodes[node, NODE_WIDTH]
    base = nodes[node, NODE_MEMBERS]
    kept = np.int64(0)
    for slot in range(nodes[node, NODE_USED]):
        if alive(words, stores, nodes, members, node, slot, limits):
            for member in range(width):
                members[base + kept * width + member] = members[base + slot * width + member]
            kept += 1
    nodes[node, NODE_USED] = kept
    return kept


@kernel("(int64[::1], int64[:,::1], int64[:,::1], int64[::1], int32[::1], int64)")
def link_partial_matches(words, stores, nodes, members, links, node):
    """Chain all partial matches of a node, whose heads are empty."""
    for slot in range(nodes[node, NODE_USED]):
        link_partial_match(words, stores, nodes, members, links, node, slot)
