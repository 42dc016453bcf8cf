"""The discrete model: multiples of units of the path table [Mukherji11, section 4.1, Problem 1].

A greedy choice wastes the remainder when the next unit does not fit; dynamic programming finds the
best multiples. Resources are divided into a fixed number of steps, so the work does not grow with
them; units are rounded up to steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf

import numpy as np

from muntin.adapt.model import PlanModel, ratio

PARTS = 16
"""The number of units of a path: its leaf's rows are divided into this many parts."""
STEPS = 6_000
"""Steps of resources in dynamic programming."""


@dataclass(frozen=True)
class TableEntry:
    """A path in the path productivity table (Table 2): resources, output and number of units."""

    resources: float
    output: float
    most: float = inf

    @property
    def productivity(self) -> float:
        """Results per probe."""
        return ratio(self.output, self.resources)


def path_table(model: PlanModel, units: Sequence[float]) -> tuple[TableEntry, ...]:
    """Return the table for units of these numbers of rows of each leaf."""
    found = []
    for path, (unit, rate) in enumerate(zip(units, model.rates, strict=True)):
        most = inf if rate == inf else ratio(rate * (1 + 1e-12), unit) // 1
        made = unit * model.cardinalities[path][-1]
        found.append(TableEntry(unit * model.path_costs[path], made, most))
    return tuple(found)


def greedy_multiples(table: Sequence[TableEntry], resources: float) -> tuple[int, ...]:
    """Return the units of each path: as many as fit of the most productive, then of the next."""
    found = [0] * len(table)
    for path in sorted(range(len(table)), key=lambda path: -table[path].productivity):
        entry = table[path]
        if entry.productivity > 0:
            found[path] = int(min(resources * (1 + 1e-12) // entry.resources, entry.most))
            resources -= found[path] * entry.resources
    return tuple(found)


def best_multiples(table: Sequence[TableEntry], resources: float) -> tuple[int, ...]:
    """Return the units of each path that give most results."""
    if resources <= 0:
        return (0,) * len(table)
    best = np.zeros(STEPS + 1)
    taken: list[tuple[int, int, int, np.ndarray]] = []
    for path, entry in enumerate(table):
        if entry.productivity <= 0:
            continue
        weight = ceil(entry.resources * STEPS / resources - 1e-9)
        for count in _powers(int(min(entry.most, STEPS // max(weight, 1)))):
            size, value = count * weight, count * entry.output
            with_it = best[: STEPS + 1 - size] + value
            better = with_it > best[size:]
            taken.append((path, count, size, better))
            best[size:] = np.where(better, with_it, best[size:])
    found = [0] * len(table)
    left = STEPS
    for path, count, size, better in reversed(taken):
        if left >= size and better[left - size]:
            found[path] += count
            left -= size
    return tuple(found)


def _powers(most: int) -> list[int]:
    """Return counts whose sums are the numbers up to ``most``: 1, 2, 4, ... and the rest."""
    found, count = [], 1
    while most > 0:
        found.append(min(count, most))
        most -= found[-1]
        count *= 2
    return found
