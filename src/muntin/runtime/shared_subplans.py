"""Sub-plans that several pipelines of an engine have in common, and that are run once for all of them.

A leaf is taken over by a later pipeline that has the same one under the same settings, as long as no row has come since the leaf began:
then it has found nothing yet, and would find the same for both. What is above leaves is recognised by
:class:`muntin.operators.steps.Steps`.
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
from muntin.runtime.running_pipeline import RunningLeaf, RunningPipeline

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
        """The leaf of a query: one that runs already and has found nothing yet, or a new one; ``alone``: for nobody else."""
        key = _nameless(query), settings
        found = None if alone or not settings.sharing.enabled else self._leaves.get(key)
        if found is None or not found.is_fresh():
            found = make()
            if not alone:
                self._leaves[key] = found
        self._users[found] += 1
        return found

    def drop(self, pipeline: RunningPipeline) -> list[RunningLeaf]:
        """Let go of what a pipeline has; the leaves that nobody has any more."""
        pipeline.let_go()
        self._users.subtract(pipeline.leaves)
        gone = [leaf for leaf in dict.fromkeys(pipeline.leaves) if not self._users[leaf]]
        for leaf in gone:
            del self._users[leaf]
        self._leaves = {key: leaf for key, leaf in self._leaves.items() if leaf in self._users}
        return gone


def _nameless(query: Query) -> Query:
    """A query without what is of no matter for its rows."""
    sources = tuple(replace(source, alias="") for source in query.sources)
    root = replace(query.join, sources=sources)
    return replace(query, name="", text="", place=Place(1, 1), root=root)
