"""The steady state of a tree of joins under probe budgets, and the search for the best ones.

The variables are the fractions of the arrivals at each half join that probe. A state of
intermediate results is as full as its arrivals make it, so results and cost are linear in every
single fraction and products of several: there are local optima, and a step of one fraction rarely
helps unless another one pays for it. The climb therefore changes two fractions at a time, so that
the cost stays what it was (one line through two evaluations), or one while those of all leaves are
scaled. An evaluation takes a few nanoseconds per half join.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muntin.kernels.arrays import Integers, Reals, RealTable, Table
from muntin.kernels.jit import inline, kernel

_WORTH = 1e-6
"""A step must bring this share more."""
_DOUBLINGS = 24
_HALVINGS = 18
_SMALL = 0.02
"""What a fraction of zero grows to first."""
_FINEST = 1.02


class PlanArrays(NamedTuple):
    """A tree and its statistics.

    ``joins`` has the two half joins of each join, bottom up, ``parent`` the half join that takes
    the output of each (-1: results). ``filling`` has the arrivals that fill the state of each
    (0: it is always full), ``probe_costs`` and ``match_costs`` the work of a probe and of a match.
    """

    joins: Table
    parent: Integers
    rates: Reals
    productivity: Reals
    filling: Reals
    probe_costs: Reals
    match_costs: Reals


@inline
def evaluate(plan, fractions, arrivals):
    """Return results and work per second when these fractions of arrivals probe."""
    leaves = plan.rates.shape[0]
    for h in range(plan.parent.shape[0]):
        arrivals[h] = plan.rates[h] if h < leaves else 0.0
    made = 0.0
    cost = 0.0
    for join in range(plan.joins.shape[0]):
        for side in range(2):
            h = plan.joins[join, side]
            other = plan.joins[join, 1 - side]
            probes = fractions[h] * arrivals[h]
            found = probes * plan.productivity[h]
            if plan.filling[other] > 0.0 and arrivals[other] < plan.filling[other]:
                found *= arrivals[other] / plan.filling[other]
            cost += probes * plan.probe_costs[h] + found * plan.match_costs[h]
            if plan.parent[h] < 0:
                made += found
            else:
                arrivals[plan.parent[h]] += found
    return made, cost


@inline
def scale(fractions, given, factor, kept, leaves):
    """Set the fractions of all leaves but one to multiples of the given ones."""
    for leaf in range(leaves):
        if leaf != kept:
            fractions[leaf] = min(given[leaf] * factor, 1.0)


@inline
def fit(plan, resources, fractions, kept, scratch):
    """Scale the fractions of all leaves but ``kept`` until the cost is the resources.

    Returns results and cost, which is above the resources if ``kept`` alone costs more.
    """
    arrivals, given = scratch[0], scratch[1]
    leaves = plan.rates.shape[0]
    for leaf in range(leaves):
        given[leaf] = fractions[leaf]
    made, cost = evaluate(plan, fractions, arrivals)
    low, high = 0.0, 1.0
    for _ in range(_DOUBLINGS):
        if cost > resources:
            break
        low, high = high, 2.0 * high
        scale(fractions, given, high, kept, leaves)
        before = cost
        made, cost = evaluate(plan, fractions, arrivals)
        if cost == before:
            return made, cost
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        scale(fractions, given, middle, kept, leaves)
        made, cost = evaluate(plan, fractions, arrivals)
        if cost <= resources:
            low = middle
        else:
            high = middle
    scale(fractions, given, low, kept, leaves)
    return evaluate(plan, fractions, arrivals)


@inline
def exchange(plan, resources, fractions, changed, best, arrivals):
    """Let one other fraction pay for a changed one; return the results if they are better.

    Of all others the one that leaves most results pays; the fractions are those of before if none
    does.
    """
    payer = -1
    paid = 0.0
    for g in range(plan.parent.shape[0]):
        if g == changed:
            continue
        before = fractions[g]
        fractions[g] = 0.0
        _, least = evaluate(plan, fractions, arrivals)
        fractions[g] = 1.0
        _, most = evaluate(plan, fractions, arrivals)
        if most > least:
            fractions[g] = min(max((resources - least) / (most - least), 0.0), 1.0)
            made, cost = evaluate(plan, fractions, arrivals)
            if cost <= resources * (1.0 + 1e-12) and made > best * (1.0 + _WORTH):
                best, payer, paid = made, g, fractions[g]
        fractions[g] = before
    if payer >= 0:
        fractions[payer] = paid
    return best, payer >= 0


@kernel(PlanArrays, float, Reals, RealTable, float, int, part="overload")
def climb_fractions(plan, resources, fractions, scratch, step, rounds):
    """Improve fractions in place as long as that helps; return the results per second.

    Fractions change by a factor ``step`` first, then by less; from 2 on, to 0 and 1 as well.
    ``scratch`` has three rows of as many numbers as there are half joins.
    """
    arrivals, saved = scratch[0], scratch[2]
    count = plan.parent.shape[0]
    best, _ = fit(plan, resources, fractions, -1, scratch)
    for _ in range(rounds):
        start = best
        for h in range(count):
            before = fractions[h]
            for way in range(4):
                if way == 0:
                    there = min(max(before * step, _SMALL), 1.0)
                elif way == 1:
                    there = before / step
                elif way == 2:
                    there = 1.0
                else:
                    there = 0.0
                if there == fractions[h] or (way >= 2 and step < 2.0):
                    continue
                for g in range(count):
                    saved[g] = fractions[g]
                fractions[h] = there
                found, better = exchange(plan, resources, fractions, h, best, arrivals)
                if not better:
                    found, cost = fit(plan, resources, fractions, h, scratch)
                    better = cost <= resources * (1.0 + 1e-12) and found > best * (1.0 + _WORTH)
                if better:
                    best = found
                    break
                for g in range(count):
                    fractions[g] = saved[g]
        if best <= start * (1.0 + 10 * _WORTH):
            if step <= _FINEST:
                break
            step = max(np.sqrt(step), _FINEST)
    return best
