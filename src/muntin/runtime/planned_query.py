"""A query that is ready to run: bound and planned under its settings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from muntin.model.settings import Settings
from muntin.plan.join import JoinPlan
from muntin.plan.query import Query
from muntin.plan.query_plan import QueryPlan
from muntin.planner.draft import Knowledge
from muntin.planner.query_planner import plan_query
from muntin.planner.window_memory import check_windows

AnyPlan: TypeAlias = JoinPlan | QueryPlan


@dataclass(frozen=True)
class PlannedQuery:
    """A query with its plan and settings, and the statistics that it was planned with.

    It shares sub-plans with queries of its ``cohort``: a restored query is registered before rows
    that came before others only. With None, as in partitions, it shares none.
    """

    query: Query
    plan: AnyPlan
    settings: Settings
    known: Knowledge
    cohort: str | None = ""


def plan_checked(query: Query, settings: Settings, known: Knowledge) -> AnyPlan:
    """Plan a query; raise if its windows are larger than memory can hold."""
    for join in query.joins:
        check_windows(replace(join, name=query.name), settings, known.declared)
    return plan_query(query, settings, known)
