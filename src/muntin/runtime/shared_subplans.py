"""Sub-plans that several pipelines have in common, and that run once for all of them.

A later pipeline with the same leaf under the same settings uses the running one, as long as no row
has come since that leaf started: it has no results yet, and would have the same for both. Common
operators above leaves are found by :class:`muntin.operators.steps.Steps`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from muntin.errors import Place
from muntin.expressions.duck import Duck
from muntin.model.clock import BEFORE_ALL
from muntin.model.settings import Settings
from muntin.model.window import is_changing
from muntin.operators.pipeline import Drive
from muntin.operators.steps import Steps
from muntin.plan.join import JoinPlan
from muntin.plan.query import Query
from muntin.plan.query_plan import QueryPlan
from muntin.planner.sharing_groups import join_options
from muntin.planner.strategies import drive_strategy
from muntin.runtime.running_join import RunningJoin, Shared
from muntin.runtime.running_leaf import RunningLeaf
from muntin.runtime.running_pipeline import RunningPipeline

Key: TypeAlias = tuple[Query, Settings, str]


@dataclass
class PipelineSet:
    """Pipelines that have leaves in common: they advance together, ``until`` an instant.

    What they have in common is computed once, so none may be ahead of the others.
    """

    pipelines: list[RunningPipeline]
    leaves: list[RunningLeaf]
    until: int = BEFORE_ALL

    def reached(self, closed: int) -> int:
        """Return the instant, up to ``closed``, that all leaves have reached."""
        return min((closed, *(leaf.reached for leaf in self.leaves)))

    def is_behind(self, join: RunningJoin, until: int) -> bool:
        """Return whether a join leads to changes up to an instant.

        Rows of an instant that was closed may come after others of it.
        """
        return any(leaf.join is join for leaf in self.leaves) and (
            until > self.until or any(leaf.has_matches for leaf in self.leaves)
        )


class SubPlans:
    """The leaves of all pipelines, and the steps above them."""

    def __init__(self, tables: Mapping[str, pa.Table], duck: Duck) -> None:
        self.steps = Steps()
        self._leaves: dict[Key, RunningLeaf] = {}
        self._users: Counter[RunningLeaf] = Counter()
        self._tables = tables
        self._duck = duck
        self._together: list[PipelineSet] | None = None

    def add(
        self,
        plan: QueryPlan,
        shared: Shared,
        run_leaf: Callable[[JoinPlan], RunningLeaf],
        *,
        cohort: str | None,
    ) -> RunningPipeline:
        """Return a pipeline for a plan; it shares with others of its cohort, if it has one."""
        settings = shared.settings
        self._together = None
        if any(is_changing(source.window) for source in plan.query.sources):
            cohort = None  # common steps began with the rows that the table had then
        leaves = [self._leaf(join, settings, run_leaf, cohort) for join in plan.joins]
        drive = Drive(drive_strategy(settings), None if cohort is None else self.steps, leaves)
        pipeline = RunningPipeline(
            plan.query, leaves, self._tables, self._duck, drive, part=shared.external_quota
        )
        pipeline.weight = settings.sharing.weight
        return pipeline

    def _leaf(
        self,
        plan: JoinPlan,
        settings: Settings,
        run_leaf: Callable[[JoinPlan], RunningLeaf],
        cohort: str | None,
    ) -> RunningLeaf:
        """Return a leaf for a join: a running one without results yet, or a new one."""
        shares = cohort is not None and settings.sharing.enabled
        key = _nameless(plan.query), settings, cohort or ""
        found = self._leaves.get(key) if shares else None
        if found is None or not found.is_fresh():
            found = run_leaf(plan)
            if cohort is not None:
                self._leaves[key] = found
        self._users[found] += 1
        return found

    def drop(self, pipeline: RunningPipeline) -> list[RunningLeaf]:
        """Release the operators of a pipeline; return the leaves that are no longer in use."""
        pipeline.let_go()
        self._together = None
        self._users.subtract(pipeline.leaves)
        gone = [leaf for leaf in dict.fromkeys(pipeline.leaves) if not self._users[leaf]]
        for leaf in gone:
            del self._users[leaf]
        self._leaves = {key: leaf for key, leaf in self._leaves.items() if leaf in self._users}
        return gone

    def together(self, pipelines: Sequence[RunningPipeline]) -> list[PipelineSet]:
        """Return the pipelines in sets that have no leaf in common."""
        if self._together is None:
            sets: dict[int, PipelineSet] = {}
            set_of: dict[RunningLeaf, PipelineSet] = {}
            for pipeline in pipelines:
                mine = PipelineSet([pipeline], list(dict.fromkeys(pipeline.leaves)))
                known = [set_of[leaf] for leaf in mine.leaves if leaf in set_of]
                for other in {id(each): each for each in known}.values():
                    mine.pipelines = [*other.pipelines, *mine.pipelines]
                    mine.leaves = list(dict.fromkeys([*other.leaves, *mine.leaves]))
                    del sets[id(other)]
                sets[id(mine)] = mine
                set_of.update(dict.fromkeys(mine.leaves, mine))
            self._together = list(sets.values())
        return self._together


def _nameless(query: Query) -> Query:
    """Return a query without everything that does not matter for its rows."""
    sources = tuple(replace(source, alias="") for source in query.sources)
    root = replace(query.join, sources=sources)
    options = join_options(query)
    return replace(query, name="", text="", place=Place(1, 1), root=root, options=options)
