"""Sub-plans that several pipelines have in common, and that run once for all of them.

A later pipeline with the same leaf under the same settings uses the running one, as long as no row
has come since that leaf started: it has no results yet, and would have the same for both. Common
operators above leaves are found by :class:`muntin.operators.steps.Steps`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from muntin.errors import Place
from muntin.model.settings import Settings
from muntin.operators.steps import Steps
from muntin.plan.query import Query
from muntin.runtime.running_leaf import RunningLeaf
from muntin.runtime.running_pipeline import RunningPipeline

Key: TypeAlias = tuple[Query, Settings]


class SubPlans:
    """The leaves of all pipelines, and the steps above them."""

    def __init__(self) -> None:
        self.steps = Steps()
        self._leaves: dict[Key, RunningLeaf] = {}
        self._users: Counter[RunningLeaf] = Counter()

    def leaf(
        self, query: Query, settings: Settings, make: Callable[[], RunningLeaf], *, alone: bool
    ) -> RunningLeaf:
        """Return a leaf for a query: a running one without results yet, or a new one.

        A leaf that is ``alone`` is shared with no other pipeline.
        """
        key = _nameless(query), settings
        found = None if alone or not settings.sharing.enabled else self._leaves.get(key)
        if found is None or not found.is_fresh():
            found = make()
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
