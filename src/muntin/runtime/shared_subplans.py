"""Sub-plans that several pipelines have in common, and that run once for all of them.

A later pipeline with the same leaf under the same settings uses the running one, as long as no row
has come since that leaf started: it has no results yet, and would have the same for both. Common
operators above leaves are found by :class:`muntin.operators.steps.Steps`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa

from muntin.errors import Place
from muntin.expressions.duck import Duck
from muntin.model.settings import Settings
from muntin.operators.pipeline import Drive
from muntin.operators.steps import Steps
from muntin.plan.join import JoinPlan
from muntin.plan.query import Query
from muntin.plan.query_plan import QueryPlan
from muntin.planner.strategies import drive_strategy
from muntin.runtime.running_join import Shared
from muntin.runtime.running_leaf import RunningLeaf
from muntin.runtime.running_pipeline import RunningPipeline

Key: TypeAlias = tuple[Query, Settings]


class SubPlans:
    """The leaves of all pipelines, and the steps above them."""

    def __init__(self, tables: Mapping[str, pa.Table], duck: Duck) -> None:
        self.steps = Steps()
        self._leaves: dict[Key, RunningLeaf] = {}
        self._users: Counter[RunningLeaf] = Counter()
        self._tables = tables
        self._duck = duck

    def add(
        self,
        plan: QueryPlan,
        shared: Shared,
        run_leaf: Callable[[JoinPlan], RunningLeaf],
        *,
        isolated: bool,
    ) -> RunningPipeline:
        """Return a pipeline for a plan; one that is ``isolated`` shares nothing with others."""
        settings = shared.settings
        leaves = [self._leaf(join, settings, run_leaf, alone=isolated) for join in plan.joins]
        drive = Drive(drive_strategy(settings), None if isolated else self.steps, leaves)
        return RunningPipeline(
            plan.query, leaves, self._tables, self._duck, drive, part=shared.external_quota
        )

    def _leaf(
        self,
        plan: JoinPlan,
        settings: Settings,
        run_leaf: Callable[[JoinPlan], RunningLeaf],
        *,
        alone: bool,
    ) -> RunningLeaf:
        """Return a leaf for a join: a running one without results yet, or a new one."""
        key = _nameless(plan.query), settings
        found = None if alone or not settings.sharing.enabled else self._leaves.get(key)
        if found is None or not found.is_fresh():
            found = run_leaf(plan)
            if not alone:
                self._leaves[key] = found
        self._users[found] += 1
        return found

    def drop(self, pipeline: RunningPipeline) -> list[RunningLeaf]:
        """Release the operators of a pipeline; return the leaves that are no longer in use."""
        pipeline.let_go()
        self._users.subtract(pipeline.leaves)
        gone = [leaf for leaf in dict.fromkeys(pipeline.leaves) if not self._users[leaf]]
        for leaf in gone:
            del self._users[leaf]
        self._leaves = {key: leaf for key, leaf in self._leaves.items() if leaf in self._users}
        return gone


def _nameless(query: Query) -> Query:
    """Return a query without everything that does not matter for its rows."""
    sources = tuple(replace(source, alias="") for source in query.sources)
    root = replace(query.join, sources=sources)
    return replace(query, name="", text="", place=Place(1, 1), root=root)
