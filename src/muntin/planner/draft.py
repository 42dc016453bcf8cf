"""The plan of a window join in the making: what is given, and what rules have decided so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from muntin.model.settings import Algorithm, Expiry, Settings
from muntin.model.statistics import JoinStatistics, StreamStatistics
from muntin.plan.join import JoinStep, TreePlan
from muntin.plan.probe_limits import Limiting
from muntin.plan.query import Query
from muntin.planner.choices import ChoiceLimits, CostChoice
from muntin.planner.classes import CodeRef, CodeTable
from muntin.planner.join_graph import JoinGraph
from muntin.planner.orders import Order
from muntin.planner.predicates import SortedPredicates
from muntin.planner.unit_costs import DEFAULT_COSTS, UnitCosts

Classes: TypeAlias = Mapping[CodeRef, frozenset[CodeRef]]
IndexCodes: TypeAlias = tuple[tuple[int, ...], ...]
"""The codes of each index of a source."""


@dataclass(frozen=True)
class Knowledge:
    """What planning may rely on: declared statistics by stream, measured ones, unit costs."""

    declared: Mapping[str, StreamStatistics] | None = None
    measured: JoinStatistics | None = None
    costs: UnitCosts = DEFAULT_COSTS


@dataclass(frozen=True)
class JoinDraft:
    """A join plan in the making; every rule returns a copy with its decisions."""

    query: Query
    settings: Settings
    known: Knowledge
    parts: SortedPredicates = field(default_factory=lambda: SortedPredicates([], CodeTable([])))
    classes: Classes = field(default_factory=dict)
    retracting: bool = False
    strategy: str = ""
    algorithm: Algorithm = Algorithm.EAGER
    algorithm_reason: str = ""
    graph: JoinGraph | None = None
    expiry: Expiry = Expiry.OWN
    expiry_interval: int | None = None
    expiry_reason: str = ""
    without_effect: str = ""
    """What was set for the expiry of rows and does not apply, in words."""
    indexed: frozenset[int] = frozenset()
    limits: ChoiceLimits = field(default_factory=ChoiceLimits)
    limiting: Limiting | None = None
    limiting_reason: str = ""
    limiting_obstacle: str = ""
    choice: CostChoice | None = None
    orders: tuple[Order, ...] = ()
    indexes: tuple[IndexCodes, ...] = ()
    tree: TreePlan | None = None
    steps: tuple[tuple[JoinStep, ...], ...] = ()
    snapshot: tuple[int, tuple[JoinStep, ...]] = (0, ())

    @property
    def aliases(self) -> list[str]:
        """Return the names of the sources."""
        return [source.alias for source in self.query.sources]

    @property
    def reevaluation(self) -> int | None:
        """Return the interval at which lazy algorithms join, in microseconds."""
        return self.query.every or self.settings.join.reevaluation

    def connected(self, bound: int, source: int) -> bool:
        """Return whether a bound source can look up another one by an equality."""
        return any(
            node[0] == source and any(other[0] == bound for other in members)
            for node, members in self.classes.items()
        )


JoinRule: TypeAlias = Callable[[JoinDraft], JoinDraft]
