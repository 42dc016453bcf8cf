"""Allocation by path where the size of states follows their arrivals.

In [Mukherji11], states hold a fixed number of intermediate results, so productivity does not depend
on probe budgets. Ours hold what is inside the windows: the productivity of a path that probes such
a state depends on the budgets of the paths that feed it. Results then grow with products of
budgets, and the most productive path alone may find nothing. A local search starts from several
divisions, GrePP's among them, changes the rows of one leaf at a time and scales the others to the
resources, as long as results increase. A round costs O(k) flows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from muntin.adapt.grepp import grepp
from muntin.adapt.model import PlanModel

_ROUNDS = 3
_HALVINGS = 12
_REPEATS = 3
_WORTH = 1e-3
"""A change must produce this share more."""


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
