"""The joins of a query that are limited under overload, as driver and partitions plan them.

Both number half joins by the tree of a join. A query that is a join alone gets its tree as a
setting. The joins below operators are planned by each of them from the same query, settings and
declared statistics, and keep that plan.
"""

from __future__ import annotations

from dataclasses import dataclass

from muntin.engine.declaration_checks import SINK_OPTIONS
from muntin.model.settings import Settings, Strategy
from muntin.plan.join import JoinPlan
from muntin.plan.query import Emit, Query
from muntin.plan.query_plan import QueryPlan
from muntin.planner.distribution import distribution_of
from muntin.planner.draft import Knowledge
from muntin.planner.join_planner import plan_join
from muntin.planner.overload_plan import is_adapting
from muntin.planner.query_planner import plan_query
from muntin.planner.strategies import drive_strategy


@dataclass(frozen=True)
class QueryLimits:
    """The settings and the plan by which a query runs, and its limited joins.

    If limits were asked for and no join has any, ``obstacle`` is the reason.
    """

    settings: Settings
    plan: JoinPlan | QueryPlan
    joins: tuple[JoinPlan, ...] = ()
    obstacle: str = ""


def limits_of(
    query: Query, settings: Settings, plan: JoinPlan | QueryPlan, known: Knowledge
) -> QueryLimits:
    """Return how a planned query is limited."""
    if not is_adapting(settings):
        return QueryLimits(settings, plan)
    joins = plan.joins if isinstance(plan, QueryPlan) else (plan,)
    limited = [join for join in joins if join.limiting is not None]
    obstacle = "" if limited else "; ".join(dict.fromkeys(join.limiting_obstacle for join in joins))
    retracts = isinstance(plan, QueryPlan) or query.emit is Emit.CHANGES
    if retracts and drive_strategy(settings) is not Strategy.NEGATIVE:
        obstacle = (
            "under pipeline = 'probing' operators keep rows, from which a partition that is "
            "rebuilt could not tell what its limited joins had found"
        )
    if obstacle and isinstance(plan, JoinPlan) and not retracts:
        return QueryLimits(settings, plan, (), obstacle)
    if obstacle:
        queue = settings.having("overload", "queue")
        return QueryLimits(queue, plan_query(query, queue, known), (), obstacle)
    fixed = settings.having("sharing", "off").having("replan", "off")
    if isinstance(plan, JoinPlan):
        assert plan.tree is not None, "only trees are limited"
        fixed = fixed.having("tree", plan.tree.text)
        planned = plan_join(query, fixed)
        return QueryLimits(fixed, planned, (planned,))
    own = fixed.of_query(query.options, SINK_OPTIONS)  # as partitions take them
    found = [
        join
        for part in distribution_of(query).parts
        for join in _joins_of(plan_query(part, own, known))
        if join.limiting is not None
    ]
    return QueryLimits(fixed, plan_query(query, own, known), tuple(found))


def _joins_of(plan: JoinPlan | QueryPlan) -> tuple[JoinPlan, ...]:
    return plan.joins if isinstance(plan, QueryPlan) else (plan,)
