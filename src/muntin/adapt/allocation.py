"""The division of resources that a policy returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muntin.adapt.model import PlanModel


@dataclass(frozen=True)
class Infeasible:
    """Freshness cannot be kept by refreshing states in time.

    ``factor`` is the least factor by which every freshness would have to be longer with these
    resources; ``resources`` are the least that suffice for the freshness as it is, None if too
    little arrives for any resources.
    """

    factor: float
    resources: float | None

    def __str__(self) -> str:
        more = (
            "too little arrives for any resources"
            if self.resources is None
            else f"{self.resources:,.4g} probes per second would do"
        )
        return (
            "FRESHNESS cannot be kept by refreshing intermediate results: "
            f"{self.factor:,.4g} times as long would do, {more}"
        )


@dataclass(frozen=True)
class Allocation:
    """Probe budgets, and their predicted effect."""

    policy: str
    """The policy that divided the resources."""
    budgets: tuple[float, ...]
    """Probes per second of each half join."""
    throughput: float
    """Predicted results per second."""
    assigned: tuple[tuple[float, ...], ...] | None = None
    """Probes by path and hop (PathAssign in [Mukherji11]), for policies by path."""
    for_freshness: float = 0.0
    """Resources that refresh states."""
    maximal: bool = False
    """Whether the policy maximizes the predicted results, so that more of them is better."""
    part: float = 1.0
    """The fraction of keys whose rows may probe."""
    infeasible: Infeasible | None = None
    """Why freshness cannot be kept, if it cannot."""


def by_paths(
    policy: str, model: PlanModel, resources: Sequence[float], for_freshness: float = 0.0
) -> Allocation:
    """Return the allocation that gives each path these resources and divides them within it."""
    assigned = tuple(model.division(path, share) for path, share in enumerate(resources))
    budgets = model.budgets(assigned)
    return Allocation(
        policy, budgets, model.throughput(budgets), assigned, for_freshness, maximal=True
    )


def by_half_joins(policy: str, model: PlanModel, shares: Sequence[float]) -> Allocation:
    """Return the allocation that gives each half join its share, at most the rows that arrive."""
    probes = model.flow(shares).probes
    return Allocation(policy, probes, model.throughput(probes))
