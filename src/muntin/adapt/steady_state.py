"""Allocation where the size of states follows their arrivals.

In [Mukherji11], states hold a fixed number of intermediate results, so productivity does not depend
on probe budgets. Ours hold what is inside the windows: the productivity of a path that probes such
a state depends on the budgets of the paths that feed it. Results then grow with products of
budgets, and the most productive path alone may find nothing.

:func:`best_budgets` maximizes the results of that steady state over the budgets of all half joins,
by local search from several starts (:mod:`muntin.kernels.steady_state`). :func:`fill_and_probe`
keeps to complete paths, as GrePP does: it changes the rows of one leaf at a time and scales the
others to the resources, as long as results increase.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from muntin.adapt.grepp import grepp
from muntin.adapt.model import Flow, PlanModel, ratio
from muntin.kernels.steady_state import PlanArrays, climb_fractions

_ROUNDS = 3
_HALVINGS = 12
_REPEATS = 3
_WORTH = 1e-3
"""A change must produce this share more."""
_CLIMB_ROUNDS = 60
_WIDE_STEP = 2.0
_SMALL_STEP = 1.2
_PARTS = 6
"""Parts of the keys that are tried."""
_LEAST_PART = 0.02
_FEW_KEYS = 4.0
_WORTH_A_PART = 1.05
"""Choosing rows by key must produce this many times as much."""


def best_budgets(
    model: PlanModel, resources: float, starts: Iterable[Sequence[float]]
) -> tuple[float, ...]:
    """Return the budgets of all half joins that the search from these budgets finds best.

    All arrivals alike are one more start. A climb never ends below its start, so the result is
    never predicted below one of them that is within the resources.
    """
    best, made = (0.0,) * model.shape.count, -1.0
    for start in (*starts, (inf,) * model.shape.count):
        found = _climbed(model, resources, start, _WIDE_STEP)
        if found.throughput > made:
            best, made = found.probes, found.throughput
    return best


def best_part(
    model: PlanModel, resources: float, whole: tuple[float, ...]
) -> tuple[float, tuple[float, ...]]:
    """Return the part of the keys whose rows probe, and its budgets.

    ``whole`` are the best budgets for all keys. With half of the keys, resources are twice those
    that the same rows would have: states of these keys are fuller, and their probes find more. All
    keys, unless another part is clearly better or if rows cannot be chosen by key.
    """
    best, found = 1.0, whole
    made = model.throughput(whole) * _WORTH_A_PART
    least = max(ratio(resources, model.saturation.resources), _LEAST_PART, _least_part(model))
    if not model.by_key or least >= 1:
        return best, found
    start: Sequence[float] = whole
    for step in range(1, _PARTS + 1):
        part = least ** (step / _PARTS)
        flow = max(
            (
                _climbed(model, resources / part, budgets, _WIDE_STEP)
                for budgets in (start, (inf,) * model.shape.count)
            ),
            key=lambda flow: flow.throughput,
        )
        start = flow.probes
        if part * flow.throughput > made:
            best, found = part, tuple(part * allowed for allowed in flow.probes)
            made = part * flow.throughput
    return best, found


def _least_part(model: PlanModel) -> float:
    """Return the part that has a few keys: there are about as many as the inverse selectivity."""
    return _FEW_KEYS * max(model.selectivity(h) for h in range(model.shape.count))


def nearby_budgets(
    model: PlanModel, resources: float, current: Sequence[float], part: float = 1.0
) -> tuple[float, ...]:
    """Return the best budgets that small steps from the current ones lead to.

    They feed the same states, so that nothing is lost by the change. All are for the rows of a part
    of the keys.
    """
    whole = [allowed / part for allowed in current]
    found = _climbed(model, resources / part, whole, _SMALL_STEP).probes
    return tuple(part * allowed for allowed in found)


def _climbed(model: PlanModel, resources: float, start: Sequence[float], step: float) -> Flow:
    flow = model.flow(start)
    fractions = np.array([ratio(*pair) for pair in zip(flow.probes, flow.arrivals, strict=True)])
    scratch = np.zeros((3, model.shape.count))
    climb_fractions(plan_arrays(model), resources, fractions, scratch, step, _CLIMB_ROUNDS)
    return _of_fractions(model, fractions)


def plan_arrays(model: PlanModel) -> PlanArrays:
    """Return a plan as the kernel takes it."""
    shape = model.shape
    filling = np.zeros(shape.count)
    if model.filling is not None:
        filling[shape.leaves :] = model.filling[shape.leaves :]
    return PlanArrays(
        np.array(shape.joins, np.int64),
        np.array(shape.parent, np.int64),
        np.array(model.rates),
        np.array(model.productivity),
        filling,
        np.array(model.probe_costs),
        np.array(model.match_costs),
    )


def _of_fractions(model: PlanModel, fractions: NDArray[np.float64]) -> Flow:
    """Return the flow when these fractions of the arrivals at each half join probe."""
    budgets = [0.0] * model.shape.count
    for pair in model.shape.joins:
        arrivals = model.flow(budgets).arrivals
        for h in pair:
            budgets[h] = float(fractions[h]) * arrivals[h]
    return model.flow(budgets)


def fill_and_probe(model: PlanModel, resources: float) -> tuple[float, ...]:
    """Return the rows of each leaf to send up to the root."""
    best = max(
        (_fitted(model, start, resources) for start in _starts(model, resources)),
        key=lambda rows: model.sent_up(rows).throughput,
    )
    made = model.sent_up(best).throughput
    for _ in range(_ROUNDS):
        before = made
        for leaf, rate in enumerate(model.rates):
            for rows in {0.0, best[leaf] / 2, min(2 * best[leaf], rate), rate} - {best[leaf]}:
                there = _fitted(model, [*best[:leaf], rows, *best[leaf + 1 :]], resources)
                found = model.sent_up(there).throughput
                if found > made * (1 + _WORTH):
                    best, made = there, found
        if made <= before:
            break
    return best


def _starts(model: PlanModel, resources: float) -> Iterator[Sequence[float]]:
    """Yield all rows, then the divisions of GrePP for the states that each one before leads to."""
    yield model.rates
    seen = model
    for _ in range(_REPEATS):
        rows = [
            share / cost
            for share, cost in zip(grepp(seen, resources), seen.path_costs, strict=True)
        ]
        yield rows
        seen = replace(model, productivity=model.sent_up(rows).productivity)


def _fitted(model: PlanModel, rows: Sequence[float], resources: float) -> tuple[float, ...]:
    """Scale the rows of all leaves to the resources; none exceeds its arrivals."""

    def scaled(factor: float) -> tuple[float, ...]:
        return tuple(
            min(factor * number, rate) for number, rate in zip(rows, model.rates, strict=True)
        )

    low, high = 0.0, 1.0
    if model.sent_up(scaled(1.0)).resources <= resources:
        low, high = 1.0, 8.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if model.sent_up(scaled(middle)).resources <= resources:
            low = middle
        else:
            high = middle
    return scaled(low)
