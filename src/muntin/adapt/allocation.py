"""How resources are divided: what a policy returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muntin.adapt.model import PlanModel


@dataclass(frozen=True)
class Infeasible:
    """Freshness cannot be kept by refreshing states in time.

    ``factor`` is the least factor by which every freshness would have to be longer with these resources; ``resources`` are the
    least with which it could be kept as it is, None when no resources suffice because too little arrives.
    """

    factor: float
    resources: float | None

    def __str__(self) -> str:
        more = (
            "too little arrives for any resources"
            if self.resources is None
            else f"{self.resources:,.4g} probes per second would do"
        )
        return f"FRESHNESS cannot be kept by refreshing intermediate results: {self.factor:,.4g} times as long would do, {more}"


@dataclass(frozen=True)
class Allocation:
    """Probe probe budgets, and what they are expected to bring.

    Parameters
    ----------
    policy
        Who divided.
    probe budgets
        Probes a second of each half join.
    throughput
        Predicted results per second.
    assigned
        Resources by path and hop (the paper's PathAssign), where the policy thinks in paths.
    for_freshness
        Resources that went to refreshing states.
    infeasible
        Why freshness cannot be kept, if it cannot.
    """

    policy: str
    budgets: tuple[float, ...]
    throughput: float
    assigned: tuple[tuple[float, ...], ...] | None = None
    for_freshness: float = 0.0
    infeasible: Infeasible | None = None

    @property
    def resources(self) -> float:
        """Resources that are given out."""
        return sum(self.budgets)


def by_paths(
    policy: str, model: PlanModel, resources: Sequence[float], for_freshness: float = 0.0
) -> Allocation:
    """The allocation that gives each path so many resources and divides them within it."""
    assigned = tuple(model.division(path, share) for path, share in enumerate(resources))
    budgets = model.budgets(assigned)
    return Allocation(policy, budgets, model.throughput(budgets), assigned, for_freshness)


def by_half_way_joins(policy: str, model: PlanModel, shares: Sequence[float]) -> Allocation:
    """The allocation that gives each half join so much, or what arrives at it if that is less."""
    probes = model.flow(shares).probes
    return Allocation(policy, probes, model.throughput(probes))
