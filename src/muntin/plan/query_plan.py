"""The physical plan of a query with operators above its window joins."""

from __future__ import annotations

from dataclasses import dataclass

from muntin.plan.join import JoinPlan
from muntin.plan.query import Query


@dataclass(frozen=True)
class QueryPlan:
    """The plan tree, and the plans of its window joins in the order of :attr:`Query.joins`."""

    query: Query
    joins: tuple[JoinPlan, ...]
