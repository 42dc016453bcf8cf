"""Rule: every step finds its rows by an index on the equalities that lead to it, else by a scan.

Sound because candidates that an index finds are checked like those of a scan: rows of one bucket
may differ. An index exists only if a step uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from muntin.errors import SettingError
from muntin.model.settings import Algorithm, JoinMethod, Settings
from muntin.plan.join import JoinStep
from muntin.plan.query import Query
from muntin.planner.draft import JoinDraft
from muntin.planner.orders import along_graph
from muntin.planner.steps import chain_step, make_step
from muntin.planner.tree_planner import TreePlanner


def choose_access_paths(draft: JoinDraft) -> JoinDraft:
    """Choose the indexes, and make the steps of every origin, of the tree and of the snapshot."""
    query, choice, indexed = draft.query, draft.choice, draft.indexed
    indexes: list[list[tuple[int, ...]]] = [[] for _ in query.sources]
    shape = choice.shape if choice else draft.limits.tree
    tree = None
    if shape is not None:
        planner = TreePlanner(draft.parts, draft.classes, indexes, indexed)
        tree = planner.plan(shape, draft.aliases)
    steps = _steps(
        draft, [None if s not in indexed or tree else indexes[s] for s in range(len(indexes))]
    )
    _check_hash(query, draft.settings, steps if tree is None else ())
    if draft.expiry.cleans_buckets:
        steps = [tuple(chain_step(step, indexes) for step in order) for order in steps]
    return replace(
        draft,
        tree=tree,
        steps=tuple(steps),
        snapshot=_snapshot_steps(draft, indexes),
        indexes=tuple(tuple(mine) for mine in indexes),
    )


def _steps(
    draft: JoinDraft, indexes: Sequence[list[tuple[int, ...]] | None]
) -> list[tuple[JoinStep, ...]]:
    """Return the steps of every origin; under EAGER the origin is bound before them."""
    bound_first = draft.algorithm is Algorithm.EAGER
    return [
        tuple(
            make_step(draft.parts, draft.classes, order[:place], source, indexes[source])
            for place, source in enumerate(order)
            if not (bound_first and source == origin)
        )
        for origin, order in enumerate(draft.orders)
    ]


def _snapshot_steps(
    draft: JoinDraft, indexes: list[list[tuple[int, ...]]]
) -> tuple[int, tuple[JoinStep, ...]]:
    """Return the steps from the first stream to all other sources, by the indexes there are."""
    sources = draft.query.sources
    origin = next(place for place, source in enumerate(sources) if not source.stored)
    order = along_graph(len(sources), origin, draft.connected)
    steps = []
    for place, source in enumerate(order[1:], 1):
        there = list(indexes[source])
        step = make_step(draft.parts, draft.classes, order[:place], source, there)
        steps.append(step if there == indexes[source] else JoinStep(source, None, (), step.checks))
    return origin, tuple(steps)


def _check_hash(query: Query, settings: Settings, orders: Sequence[Sequence[JoinStep]]) -> None:
    if settings.join.method is not JoinMethod.HASH:
        return
    for steps in orders:
        for step in steps[-(len(query.sources) - 1) :]:
            if step.index is None and len(query.sources) > 1:
                alias = query.sources[step.source].alias
                raise SettingError(
                    f"query {query.name} cannot be a pure hash join: no equality leads to {alias}",
                    hint="Use join = 'hybrid'",
                )
