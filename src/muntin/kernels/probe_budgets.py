"""Probe budgets: which rows and partial matches of a tree join probe, and within which limits.

See [Mukherji11, sections 2 and 4]. A half join has a budget per cycle of event time, and all of
them together have one. Cycles are counted by event time and choices depend on counts of rows only,
so they are the same however rows are cut into batches.

``budgets`` is None for a join without budgets. Numba then leaves out what they need when it
compiles a kernel, so such a join pays nothing for it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muntin.kernels.arrays import Integers
from muntin.kernels.jit import inline
from muntin.kernels.layout import (
    COORD,
    COUNT,
    EVER,
    F_AGE,
    F_HOLD,
    F_PRESENT,
    F_SEEN,
    F_SIZE,
    H_ARRIVED,
    H_BUDGET,
    H_EXPECTED,
    H_KEY,
    H_MATCHED,
    H_PROBED,
    KIND,
    NEWEST_FIRST,
    NODE_USED,
    P_CHOICE,
    P_CYCLE,
    P_ENFORCE,
    P_KEEP,
    P_MOST,
    P_MOST_WORK,
    P_PERIOD,
    P_SEED,
    P_SLICE,
    P_SLICE_FROM,
    P_STALE,
    P_USED,
    P_WORK,
    RANDOMLY,
    SIZE,
    STORED,
    TIME,
)
from muntin.kernels.probe import set_limits
from muntin.kernels.rows import mix

_GOLDEN = 0x9E3779B97F4A7C15
_CIRCLE = 0xFFFFFFFF


class Limits(NamedTuple):
    """Per store what a row must be above.

    To be found in its store, to be a member of a live partial match, to stay in its store, and not
    to be stale.
    """

    leaf: Integers
    member: Integers
    held: Integers
    stale: Integers


@inline
def set_limits_at(budgets, stores, time, limits):
    """Set the limits of all stores at an instant."""
    cycles, freshness = budgets.cycles, budgets.freshness
    leaf, kept, held, stale = limits
    enforce = cycles[P_ENFORCE] != 0
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
            old = max(time, freshness[F_PRESENT, s]) - freshness[F_SIZE, s]
        else:
            window = freshness[F_SEEN, s] - stores[s, SIZE] - 1
            old = max(freshness[F_SEEN, s], freshness[F_PRESENT, s]) - freshness[F_SIZE, s] - 1
        stale[s] = old
        leaf[s] = max(window, old) if enforce else window
        if cycles[P_KEEP] == 0:
            kept[s] = leaf[s]
            held[s] = window
        else:
            kept[s] = old if enforce else np.int64(EVER)
            held[s] = min(window, old if enforce else freshness[F_HOLD, s])


@inline
def first_slot(budgets, nodes, node):
    """Return the oldest slot of a node that counts."""
    if budgets is None or budgets.cycles[P_KEEP] == 0:
        return np.int64(0)
    return max(np.int64(0), nodes[node, NODE_USED] - budgets.cycles[P_KEEP])


@inline
def is_over(budgets, time):
    """Return whether an event belongs to another cycle than the rows before."""
    if budgets is None:
        return False
    return time // budgets.cycles[P_PERIOD] != budgets.cycles[P_CYCLE]


@inline
def make_limits(budgets, scratch, n):
    """Return where the limits of ``n`` stores are; one per store where windows decide alone."""
    if budgets is None:
        limits = scratch[:n]
        return Limits(limits, limits, limits, limits)
    return Limits(scratch[:n], scratch[n : 2 * n], scratch[2 * n : 3 * n], scratch[3 * n : 4 * n])


@inline
def set_tree_limits(budgets, stores, events, event, limits):
    """Set the limits at an event, and note its counts."""
    if budgets is None:
        set_limits(stores, events.times[event], events.counts, event, limits.leaf)
        return
    for s in range(stores.shape[0]):
        if stores[s, KIND] == COUNT:
            budgets.freshness[F_SEEN, s] = events.counts[event, s]
    set_limits_at(budgets, stores, events.times[event], limits)


@inline
def in_slice(budgets, words, address, h):
    """Return whether the key of a row is in the slice of keys that may probe; count it if not.

    Consecutive keys are spread evenly over the circle (multiplicative hashing), so that a slice
    has its share even of few keys.
    """
    if budgets is None:
        return True
    half_joins, cycles = budgets.half_joins, budgets.cycles
    if cycles[P_SLICE] == 0 or half_joins[h, H_KEY] == 0:
        return True
    hashed = np.uint64(words[address + half_joins[h, H_KEY]]) * np.uint64(_GOLDEN)
    place = np.int64(hashed >> np.uint64(32)) - cycles[P_SLICE_FROM]
    if (place & _CIRCLE) < cycles[P_SLICE]:
        return True
    half_joins[h, H_ARRIVED] += 1
    return False


@inline
def may_probe(budgets, h):
    """Return whether the next arrival at a half join may probe; count it in any case."""
    if budgets is None:
        return True
    half_joins, cycles = budgets.half_joins, budgets.cycles
    half_joins[h, H_ARRIVED] += 1
    if cycles[P_MOST] >= 0 and cycles[P_USED] >= cycles[P_MOST]:
        return False
    if cycles[P_MOST_WORK] >= 0 and cycles[P_WORK] >= cycles[P_MOST_WORK]:
        return False
    budget = half_joins[h, H_BUDGET]
    if budget >= 0:
        if half_joins[h, H_PROBED] >= budget:
            return False
        expected = half_joins[h, H_EXPECTED]
        if expected > budget:
            if cycles[P_CHOICE] == NEWEST_FIRST and half_joins[h, H_ARRIVED] <= expected - budget:
                return False
            if cycles[P_CHOICE] == RANDOMLY:
                # By the number in the cycle: what came before it makes no difference, so a replay
                # from any cycle draws the same.
                drawn = mix(
                    np.int64(
                        mix(np.int64(mix(np.int64(mix(cycles[P_SEED])) ^ h)) ^ cycles[P_CYCLE])
                    )
                    ^ half_joins[h, H_ARRIVED]
                )
                if float(drawn >> np.uint64(11)) * 2.0**-53 * float(expected) >= float(budget):
                    return False
    half_joins[h, H_PROBED] += 1
    cycles[P_USED] += 1
    cycles[P_WORK] += 1
    return True


@inline
def may_begin(budgets, words, stale, source, address):
    """Return whether a new row may probe: it has a budget, its key may, and it is not stale itself.

    A row that comes late is compared with rows as late as it is, so its partners need not be stale
    where their freshness is larger, or where they are stored.
    """
    if budgets is None:
        return True
    if budgets.cycles[P_ENFORCE] != 0 and words[address + COORD] <= stale[source]:
        budgets.half_joins[source, H_ARRIVED] += 1
        return False
    return in_slice(budgets, words, address, source) and may_probe(budgets, source)


@inline
def count_match(budgets, h):
    """Count a match of a half join."""
    if budgets is not None:
        budgets.half_joins[h, H_MATCHED] += 1
        budgets.cycles[P_WORK] += 1


@inline
def count_result(budgets, arena, bound, stale):
    """Note how old the rows of a result are, and whether it is stale."""
    if budgets is None:
        return
    stores, freshness = arena.stores, budgets.freshness
    too_old = False
    for s in range(stores.shape[0]):
        if stores[s, KIND] == STORED:
            continue
        behind = stale[s] - arena.words[bound[s] + COORD]
        too_old |= behind >= 0
        freshness[F_AGE, s] = max(freshness[F_AGE, s], behind + freshness[F_SIZE, s])
    if too_old:
        budgets.cycles[P_STALE] += 1


@inline
def save_counts(budgets, scratch, n):
    """Keep what a climb counts behind the limits of ``n`` stores, to be able to undo it."""
    if budgets is None:
        return
    half_joins, cycles, freshness = budgets
    at = 4 * n
    for h in range(half_joins.shape[0]):
        scratch[at] = half_joins[h, H_ARRIVED]
        scratch[at + 1] = half_joins[h, H_PROBED]
        scratch[at + 2] = half_joins[h, H_MATCHED]
        at += 3
    for s in range(n):
        scratch[at + s] = freshness[F_AGE, s]
    scratch[at + n] = cycles[P_USED]
    scratch[at + n + 1] = cycles[P_STALE]
    scratch[at + n + 2] = cycles[P_WORK]


@inline
def restore_counts(budgets, scratch, n):
    """Set the counts back to what they were."""
    if budgets is None:
        return
    half_joins, cycles, freshness = budgets
    at = 4 * n
    for h in range(half_joins.shape[0]):
        half_joins[h, H_ARRIVED] = scratch[at]
        half_joins[h, H_PROBED] = scratch[at + 1]
        half_joins[h, H_MATCHED] = scratch[at + 2]
        at += 3
    for s in range(n):
        freshness[F_AGE, s] = scratch[at + s]
    cycles[P_USED] = scratch[at + n]
    cycles[P_STALE] = scratch[at + n + 1]
    cycles[P_WORK] = scratch[at + n + 2]
