"""The optimum over all probe budgets, by linear programming.

This module alone imports scipy, which is part of the extra ``dev``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muntin.adapt.model import PlanModel
from muntin.adapt.shape import ROOT
from muntin.errors import RunError


def optimum(
    model: PlanModel, resources: float, refresh: Mapping[int, float] | None = None
) -> float:
    """Return the most results per second over all probe rates of half joins.

    ``refresh`` is a lower bound on the probes of some of them (equation 12).

    Figures are divided by those of saturation, so that the solver sees numbers near one.
    """
    if model.saturation.throughput <= 0:
        return 0.0
    shape = model.shape
    scales = [arrivals if arrivals > 0 else 1.0 for arrivals in model.saturation.arrivals]
    best, total = model.saturation.throughput, model.saturation.resources
    value = [
        -scale * model.productivity[h] / best if shape.parent[h] == ROOT else 0.0
        for h, scale in enumerate(scales)
    ]
    rows = [[scale * cost / total for scale, cost in zip(scales, model.step_costs, strict=True)]]
    limits = [min(resources / total, 2.0)]
    for h in shape.susceptible:
        row = [0.0] * shape.count
        for child, parent in enumerate(shape.parent):
            if parent == h:
                row[child] = -model.productivity[child] * scales[child] / scales[h]
        row[h] = 1.0
        rows.append(row)
        limits.append(0.0)
    least = refresh or {}
    needed = [min(least.get(h, 0.0) / scale, 1.0) for h, scale in enumerate(scales)]
    bounds = [
        (low, 1.0) if arrives else (0.0, 0.0)
        for low, arrives in zip(needed, model.saturation.arrivals, strict=True)
    ]
    return -_solve(value, rows, limits, bounds) * best


def exact_cover(model: PlanModel, refresh: Mapping[int, float]) -> float:
    """Return the least resources with which paths bring the given rows per second to states."""
    shape = model.shape
    rows = []
    for h, rate in refresh.items():
        feeds = [
            model.cardinalities[leaf][path.index(h) - 1] if h in path else 0.0
            for leaf, path in enumerate(shape.paths)
        ]
        rows.append(
            [-feed * arrivals / rate for feed, arrivals in zip(feeds, model.rates, strict=True)]
        )
    costs = [model.path_limit(leaf) for leaf in range(model.shape.leaves)]
    scale = max(costs)
    return (
        _solve(
            [cost / scale for cost in costs], rows, [-1.0] * len(rows), [(0.0, 1.0)] * len(costs)
        )
        * scale
    )


def _solve(
    value: list[float],
    rows: list[list[float]],
    limits: list[float],
    bounds: list[tuple[float, float]],
) -> float:
    try:
        from scipy.optimize import linprog  # noqa: PLC0415 (part of the extra dev)
    except ImportError as error:
        raise RunError(
            "there is no scipy to find an optimum with",
            hint="Install it: pip install 'muntin[dev]'",
        ) from error
    found: Any = linprog(value, A_ub=rows, b_ub=limits, bounds=bounds, method="highs")
    assert found.status == 0, f"the linear program has an optimum: {found.message}"
    return float(found.fun)
