"""Plan a query: rewrite its tree by rules, then plan each of its window joins."""

from __future__ import annotations

from muntin.model.settings import Settings
from muntin.plan.join import JoinPlan
from muntin.plan.query import Query
from muntin.plan.query_plan import QueryPlan
from muntin.planner.draft import Knowledge
from muntin.planner.join_planner import plan_join
from muntin.planner.rewrite import rewrite


def plan_query(
    query: Query, settings: Settings, known: Knowledge | None = None
) -> JoinPlan | QueryPlan:
    """Return the plan of a query; that of its window join if it is nothing else."""
    query = rewrite(query)
    if query.is_join:
        return plan_join(query, settings, known)
    return QueryPlan(query, tuple(plan_join(join, settings, known) for join in query.joins))
