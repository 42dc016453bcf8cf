"""Paths where states of intermediate results are as full as they are fed.

The paper's states hold a fixed number of intermediate results, so what a probe finds does not depend on probe budgets. Ours hold what
lives: a path that probes such a state is only as productive as the paths that feed it are allowed to be. Results then grow with
products of probe budgets, and the most productive path by itself may find nothing. From several divisions, GrePP's among them, the rows
of one leaf after the other are changed and the others fitted to the resources, as long as that brings more. Costs O(k) flows a round.
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
"""A change has to bring this share more."""


def fill_and_probe(model: PlanModel, resources: float) -> tuple[float, ...]:
    """Rows of each leaf that are sent all the way up."""
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
    """All leaves alike; and the most productive paths, again and again with the states as they would then be."""
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
    """Rows of all leaves in the same ratio, as many as resources allow; none more than arrive."""

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
