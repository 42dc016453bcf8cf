"""GrePP: resources go to the most productive path first, then the next [Mukherji11, section 4.1].

The resources of a path are divided among its hops so that all that is produced is consumed. Any
other division uses more for the same results, and paths compete only for resources; so this is a
fractional knapsack, for which the greedy choice is optimal.
"""

from __future__ import annotations

from collections.abc import Sequence

from muntin.adapt.model import PlanModel


def grepp(model: PlanModel, resources: float, taken: Sequence[float] = ()) -> tuple[float, ...]:
    """Return the resources of each path, including those already ``taken``."""
    found = list(taken) or [0.0] * model.shape.leaves
    for path in sorted(range(model.shape.leaves), key=lambda path: -model.path_productivity[path]):
        if resources <= 0 or model.path_productivity[path] <= 0:
            break
        more = min(resources, max(model.path_limit(path) - found[path], 0.0))
        found[path] += more
        resources -= more
    return tuple(found)
