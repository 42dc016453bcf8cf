"""The work of a probe and of a match at each half join, from the measured times of their steps.

:mod:`muntin.runtime.calibration` times the steps once per process; the plan says which of them a
half join takes, and the controller multiplies scans by the sizes of states as it measures them. So
the same rows give the same results for as long as the process runs.
"""

from __future__ import annotations

from muntin.adapt import ProbeCosts, TreeShape
from muntin.plan.join import TreePlan, TreeStep
from muntin.planner.unit_costs import UnitCosts

_WITHOUT_INDEX = 0.3
"""The part of a probe that remains if there is no index to look into."""


def half_join_costs(tree: TreePlan, costs: UnitCosts) -> ProbeCosts:
    """Return the costs of the half joins of a tree, in probes that find nothing in an index."""
    shape = TreeShape.of(tree)
    steps: list[TreeStep | None] = [None] * shape.count
    for leaf, path in enumerate(shape.paths):
        for h, step in zip(path, tree.climbs[leaf], strict=True):
            steps[h] = step
    taken = [step for step in steps if step is not None]
    assert len(taken) == shape.count, "every half join is on the path of a leaf"
    return ProbeCosts(
        tuple(1.0 if _is_indexed(step) else _WITHOUT_INDEX for step in taken),
        tuple(0.0 if _is_indexed(step) else _looked_at(step, costs) for step in taken),
        tuple(_matched(step, costs) for step in taken),
    )


def _is_indexed(step: TreeStep) -> bool:
    return bool(step.keys)


def _looked_at(step: TreeStep, costs: UnitCosts) -> float:
    """Return the cost of a candidate; partial matches are always chained."""
    follow = costs.scanned if step.source is not None and not step.keys else costs.chained
    return (follow + max(len(step.checks) - 1, 0) * costs.check) / costs.probe


def _matched(step: TreeStep, costs: UnitCosts) -> float:
    """Return the cost of a match: a candidate, and a partial match or a result to be sorted."""
    found = _looked_at(step, costs) if _is_indexed(step) else 0.0
    return found + (costs.sort if step.parent is None else costs.partial_match) / costs.probe
