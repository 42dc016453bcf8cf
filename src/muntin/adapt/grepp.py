"""GrePP: resources go to the most productive path until its leaf has no more rows, then to the next (paper 5, section 4.1).

A path's rows are divided among its hops so that all that is produced is consumed. Any other division uses more for the same
results, and paths limit each other only by what they use; so it is a knapsack of which parts may be taken, and greedy is optimal.
"""

from __future__ import annotations

from collections.abc import Sequence

from muntin.adapt.model import PlanModel


def grepp(model: PlanModel, resources: float, taken: Sequence[float] = ()) -> tuple[float, ...]:
    """Resources of each path: what is ``taken`` already and what is added to it."""
    found = list(taken) or [0.0] * model.shape.leaves
    for path in sorted(range(model.shape.leaves), key=lambda path: -model.path_productivity[path]):
        if resources <= 0 or model.path_productivity[path] <= 0:
            break
        more = min(resources, max(model.path_limit(path) - found[path], 0.0))
        found[path] += more
        resources -= more
    return tuple(found)
