"""The tree join under probe budgets: all rows are stored, some probe.

See [Mukherji11, sections 2 and 4].

The join is that of :mod:`muntin.kernels.tree_join`. Before a row or partial match probes its
sibling, :mod:`muntin.kernels.probe_budgets` decides whether it may. What may not probe now never
does; it stays where others find it. A row that may not probe costs its insert and its expiry.

The kernel returns where a cycle begins. :func:`finish_cycles`
writes the samples of the cycles before, :func:`begin_cycle` sets budgets: what is decided from a
sample takes effect with the next cycle.

Two limits side by side: leaves are probed within their windows, partial matches within the limits
of members. As a rule both are the same. With ``P_KEEP`` a node keeps its last partial matches
whatever the windows are, and only freshness expires them.
"""

from __future__ import annotations

import numpy as np

from muntin.kernels.arrays import (
    Arena,
    BudgetArrays,
    EventArrays,
    Integers,
    Output,
    Program,
    Reals,
    Span,
    Table,
    TreeNodes,
)
from muntin.kernels.jit import inline, kernel
from muntin.kernels.layout import (
    COORD,
    EVER,
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
    NEXT,
    NODE_MEMBERS,
    NODE_SOURCES,
    NODE_USED,
    NODE_WIDTH,
    P_COUNTED,
    P_COUNTED_AT,
    P_CYCLE,
    P_MOST,
    P_MOST_WORK,
    P_NEW,
    P_NEXT,
    P_PERIOD,
    P_SLICE,
    P_SLICE_FROM,
    P_TURN,
    P_USED,
    P_WORK,
    SAMPLE_FIELDS,
    STORED,
    TAIL,
)
from muntin.kernels.partial_matches import alive, link_partial_match
from muntin.kernels.probe_budgets import first_slot, make_limits, set_limits_at
from muntin.kernels.rows import row_address
from muntin.kernels.tree_join import join_rows

EMPTY_CYCLES = 8
"""Empty cycles that get samples after one with rows: enough for averages to fall to nothing."""
_RECOUNT = 8
"""Partial matches are counted again when as many rows and partial matches came as an eighth ..."""
_AT_LEAST_EVERY = 64
"""... or after this number of cycles."""
_PHASES = 0xFFFFF


# -- cycles ----------------------------------------------------------------------------------------


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
def count_states(arena, tree, budgets, limits, cycle):
    """Note the size of each state; partial matches are counted only once enough has come.

    Counting looks at all of them.
    """
    stores, nodes = arena.stores, tree.nodes
    half_joins, cycles = budgets.half_joins, budgets.cycles
    n = stores.shape[0]
    for s in range(n):
        half_joins[s, H_INSIDE] = (
            stores[s, NEXT] - stores[s, TAIL]
            if stores[s, KIND] == STORED
            else rows_above(arena.words, stores, s, limits.leaf[s])
        )
    if (
        _RECOUNT * cycles[P_NEW] < cycles[P_COUNTED]
        and cycle - cycles[P_COUNTED_AT] < _AT_LEAST_EVERY
    ):
        return
    total = np.int64(0)
    for node in range(nodes.shape[0]):
        count = np.int64(0)
        for slot in range(first_slot(budgets, nodes, node), nodes[node, NODE_USED]):
            if alive(arena, tree, node, slot, limits.member):
                count += 1
        half_joins[n + node, H_INSIDE] = count
        total += count
    cycles[P_NEW] = 0
    cycles[P_COUNTED] = total
    cycles[P_COUNTED_AT] = cycle


@kernel(Arena, TreeNodes, BudgetArrays, int, Table, Integers, part="overload")
def finish_cycles(arena, tree, budgets, now, samples, scratch):
    """Write the samples of the cycles that are over at ``now``; return how many there are.

    There are no more than ``EMPTY_CYCLES`` plus one.
    """
    half_joins, cycles = budgets.half_joins, budgets.cycles
    limits = make_limits(budgets, scratch, arena.stores.shape[0])
    written = 0
    until = now // cycles[P_PERIOD]
    while (
        cycles[P_CYCLE] > EVER
        and cycles[P_NEXT] < until
        and cycles[P_NEXT] <= cycles[P_CYCLE] + EMPTY_CYCLES
    ):
        cycle = cycles[P_NEXT]
        for h in range(half_joins.shape[0]):
            cycles[P_NEW] += half_joins[h, H_ARRIVED]
        set_limits_at(budgets, arena.stores, (cycle + 1) * cycles[P_PERIOD] - 1, limits)
        count_states(arena, tree, budgets, limits, cycle)
        samples[written, 0] = cycle
        for h in range(half_joins.shape[0]):
            at = 1 + SAMPLE_FIELDS * h
            samples[written, at] = half_joins[h, H_ARRIVED]
            samples[written, at + 1] = half_joins[h, H_PROBED]
            samples[written, at + 2] = half_joins[h, H_MATCHED]
            samples[written, at + 3] = half_joins[h, H_INSIDE]
            if cycle == cycles[P_CYCLE]:
                half_joins[h, H_BEFORE] = half_joins[h, H_ARRIVED]
            half_joins[h, H_ALL_ARRIVED] += half_joins[h, H_ARRIVED]
            half_joins[h, H_ALL_PROBED] += half_joins[h, H_PROBED]
            half_joins[h, H_ALL_MATCHED] += half_joins[h, H_MATCHED]
            half_joins[h, H_ARRIVED] = 0
            half_joins[h, H_PROBED] = 0
            half_joins[h, H_MATCHED] = 0
        cycles[P_NEXT] = cycle + 1
        written += 1
    return written


@kernel(BudgetArrays, Reals, int, part="overload")
def begin_cycle(budgets, rates, now):
    """Set the budgets of the cycle of ``now``.

    The rates of the half joins are followed by that of all together, its budget in the last cycle,
    the fraction of keys that may probe, and the rate of work. The slice of keys moves with event
    time, so that every key has its turn.
    """
    half_joins, cycles = budgets.half_joins, budgets.cycles
    cycle = now // cycles[P_PERIOD]
    joins = half_joins.shape[0]
    last = cycles[P_CYCLE]
    since = float(cycle & _PHASES)
    for h in range(joins):
        half_joins[h, H_EXPECTED] = half_joins[h, H_BEFORE] if last == cycle - 1 else np.int64(0)
        rate = rates[h]
        # The integer part of what has accrued until then, so that fractions are not lost. Counted
        # from a fixed cycle: from the last change of rates, frequent changes would lose them.
        half_joins[h, H_BUDGET] = (
            np.int64(-1)
            if rate < 0.0
            else np.int64(np.floor((since + 1.0) * rate) - np.floor(since * rate))
        )
    quota = rates[joins]
    if quota < 0.0:
        rates[joins + 1] = -1.0
        cycles[P_MOST] = -1
    else:
        unspent = 0.0
        if last > EVER:
            unspent = (
                max(rates[joins + 1] - float(cycles[P_USED]), 0.0) + float(cycle - last - 1) * quota
            )
        rates[joins + 1] = quota + min(unspent, max(quota, 1.0))
        cycles[P_MOST] = np.int64(np.floor(rates[joins + 1]))
    part = rates[joins + 2]
    cycles[P_SLICE] = np.int64(part * 2.0**32) if 0.0 < part < 1.0 else np.int64(0)
    cycles[P_SLICE_FROM] = (cycle * cycles[P_TURN]) & 0xFFFFFFFF
    cycles[P_USED] = 0
    work = rates[joins + 3]
    cycles[P_MOST_WORK] = np.int64(-1) if work < 0.0 else np.int64(np.floor(work))
    cycles[P_WORK] = 0
    cycles[P_CYCLE] = cycle
    cycles[P_NEXT] = cycle


@kernel(
    Arena, Program, TreeNodes, BudgetArrays, EventArrays, Span, int, int, Output, part="overload"
)
def join_limited(arena, program, tree, budgets, events, span, count, silent, output):
    """Join rows one by one in total order as far as they may probe.

    Returns what :func:`muntin.kernels.tree_join.join_tree` returns. CYCLE: the event belongs to
    another cycle than the rows before, which is to begin; its row is not in its store yet.
    """
    return join_rows(arena, program, tree, budgets, events, span, count, silent, output)


@kernel(Arena, TreeNodes, int, part="overload")
def link_held(arena, tree, node):
    """Chain the partial matches of a node, whose heads are empty, except those that lost a row.

    Nothing finds these any more.
    """
    stores, nodes, members = arena.stores, tree.nodes, tree.members
    width = nodes[node, NODE_WIDTH]
    for slot in range(nodes[node, NODE_USED]):
        first = nodes[node, NODE_MEMBERS] + slot * width
        complete = True
        for member in range(width):
            complete &= members[first + member] >= stores[nodes[node, NODE_SOURCES + member], TAIL]
        if complete:
            link_partial_match(arena, tree, node, slot)
