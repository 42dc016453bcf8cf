"""The physical plan of a window join: a sequence of rules over a draft."""

from __future__ import annotations

from muntin.model.settings import Settings
from muntin.plan.join import Index, JoinPlan, SourcePlan
from muntin.plan.query import Query
from muntin.planner.choices import least_work
from muntin.planner.draft import JoinDraft, JoinRule, Knowledge
from muntin.planner.index_settings import given_buckets
from muntin.planner.join_graph import JoinGraph
from muntin.planner.local_orders import join_cost
from muntin.planner.rewrite import rewrite
from muntin.planner.rules.choose_access_paths import choose_access_paths
from muntin.planner.rules.choose_algorithm import choose_algorithm
from muntin.planner.rules.choose_by_cost import (
    choice_limits,
    choose_by_cost,
    limit_choices,
    weighed,
)
from muntin.planner.rules.choose_expiry import choose_expiry
from muntin.planner.rules.choose_retraction import choose_retraction
from muntin.planner.rules.estimate_join import estimate_join
from muntin.planner.rules.limit_probes import limit_probes
from muntin.planner.rules.order_sources import order_sources
from muntin.planner.rules.place_predicates import place_predicates
from muntin.planner.tree_choice import tree_cost
from muntin.planner.tree_planner import parse_shape
from muntin.planner.unit_costs import UnitCosts

JOIN_RULES: tuple[JoinRule, ...] = (
    place_predicates,
    choose_retraction,
    estimate_join,
    choose_algorithm,
    choose_expiry,
    limit_choices,
    limit_probes,
    choose_by_cost,
    order_sources,
    choose_access_paths,
)
"""The rules in the order in which they are applied; each uses what those before it decided."""


def plan_join(query: Query, settings: Settings, known: Knowledge | None = None) -> JoinPlan:
    """Return the plan of a window join under the given settings.

    What is known of its streams decides where the settings do not.
    """
    draft = JoinDraft(rewrite(query), settings, known or Knowledge())
    for rule in JOIN_RULES:
        draft = rule(draft)
    return _finished(draft)


def _finished(draft: JoinDraft) -> JoinPlan:
    buckets = _buckets(draft)
    sources = tuple(
        SourcePlan(
            tuple(draft.parts.filters[place]),
            tuple(draft.parts.codes.codes[place]),
            tuple(Index(codes, buckets[place] if codes else 1) for codes in indexes),
        )
        for place, indexes in enumerate(draft.indexes)
    )
    choice = draft.choice
    said = (*choice.reasons, draft.expiry_reason) if choice else ()
    reasons = tuple(filter(None, (draft.algorithm_reason, *said, draft.without_effect)))
    return JoinPlan(
        query=draft.query,
        sources=sources,
        orders=draft.steps,
        residuals=tuple(draft.parts.residuals),
        snapshot=draft.snapshot,
        algorithm=draft.algorithm,
        expiry=draft.expiry,
        expiry_interval=draft.expiry_interval,
        reevaluation=draft.reevaluation,
        prediction=choice.prediction if choice else None,
        tree=draft.tree,
        equal=tuple(sorted(set(draft.classes.values()), key=sorted)),
        reasons=(*reasons, draft.limiting_reason) if draft.limiting_reason else reasons,
        retracting=draft.retracting,
        strategy=draft.strategy,
        limiting=draft.limiting,
        limiting_obstacle=draft.limiting_obstacle,
    )


def _buckets(draft: JoinDraft) -> list[int | None]:
    """Return the buckets of each source's indexes; None: about two per row."""
    given = given_buckets(draft.query, draft.settings)
    if draft.choice and draft.settings.join.index_memory:
        return [
            number or (chosen if chosen > 1 else None)
            for number, chosen in zip(given, draft.choice.buckets, strict=True)
        ]
    return given


def compare_work(plan: JoinPlan, settings: Settings, known: Knowledge) -> tuple[float, float]:
    """Return the predicted seconds of work per second of a plan, and of the best plan there is.

    No plan is made.
    """
    graph = estimate_join(place_predicates(JoinDraft(plan.query, settings, known))).graph
    assert graph is not None, "a running query has statistics of every source"
    limits = choice_limits(plan.query, settings, plan.algorithm, plan.expiry)
    best = least_work(graph, limits, weighed(settings, known.costs))
    return _work(plan, graph, known.costs), best


def _work(plan: JoinPlan, graph: JoinGraph, costs: UnitCosts) -> float:
    graph = graph.having([_buckets_of(source) for source in plan.sources])
    if plan.tree is not None:
        time = tree_cost(graph, parse_shape(plan.tree.text, plan.query), costs).time
    else:
        orders = [
            (origin, *(step.source for step in steps if step.source != origin))
            for origin, steps in enumerate(plan.orders)
        ]
        time = join_cost(graph, orders, costs).time
    return time * 1e-9


def _buckets_of(source: SourcePlan) -> int:
    keyed = [index for index in source.indexes if index.codes]
    return (keyed[0].buckets or 0) if keyed else 1
