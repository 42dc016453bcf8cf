"""The description of a plan tree.

Its operators as a tree, and below them the joins as described by :mod:`muntin.engine.explain`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from muntin.engine.explain import describe_plan, describe_query
from muntin.model.clock import SECOND, format_interval
from muntin.plan.description import Description, Fact
from muntin.plan.join import JoinPlan
from muntin.plan.node import Node
from muntin.plan.query_plan import QueryPlan
from muntin.planner.rules.choose_expiry import BY_PROBES
from muntin.runtime.running_pipeline import RunningPipeline
from muntin.runtime.running_query import RunningQuery


@dataclass(frozen=True)
class OperatorState:
    """The number of entries that an operator holds, and whether other queries share it."""

    entries: int
    shared: bool


def describe_any(plan: JoinPlan | QueryPlan) -> Description:
    """Describe the plan of any query."""
    return describe_pipeline(plan) if isinstance(plan, QueryPlan) else describe_plan(plan)


def describe_pipeline(plan: QueryPlan) -> Description:
    """Describe the plan of a query with operators above its joins."""
    return _described(plan, iter([describe_plan(leaf) for leaf in plan.joins]), iter(()))


def describe_running_pipeline(
    running: RunningPipeline, why: Callable[[RunningQuery], str]
) -> Description:
    """Return the plan of a running pipeline, with the state of its operators.

    ``why`` returns why a leaf shares its join or not.
    """
    plan = QueryPlan(running.query, tuple(leaf.plan for leaf in running.leaves))
    leaves = [describe_query(leaf, why(leaf)) for leaf in running.leaves]
    held = [
        OperatorState(entries, shared)
        for (_, entries, _), shared in zip(running.state(), running.shared(), strict=True)
    ]
    return _described(plan, iter(leaves), iter(held))


def _described(
    plan: QueryPlan, leaves: Iterator[Description], entries: Iterator[OperatorState]
) -> Description:
    query = plan.query
    timing = f"every {format_interval(query.every)}" if query.every else "at every change"
    timing = "when windows end" if query.closes else timing
    facts = (
        Fact("query", query.name),
        Fact("emit", str(query.emit), f"emits {query.emit} {timing}"),
        Fact("every_seconds", query.every / SECOND if query.every else None),
    )
    children = (*_expiry(plan), _node(query.root, leaves, entries))
    return Description("query", f"query {query.name}", facts, children, ("reasons", "operators"))


def _expiry(plan: QueryPlan) -> Iterator[Description]:
    """Say that expiry by probes, if it is set, is that of the joins below only."""
    for expiry in dict.fromkeys(join.expiry for join in plan.joins if join.expiry in BY_PROBES):
        reason = (
            f"expiry = '{expiry}' has no effect above joins: operators there subtract every row "
            "when it ends, so they hold no expired rows"
        )
        yield Description("reasons[]", reason, (Fact("reason", reason),))


def _node(
    node: Node, leaves: Iterator[Description], entries: Iterator[OperatorState]
) -> Description:
    """Describe an operator and its inputs; ``leaves`` and ``entries`` have the inputs first."""
    inputs = tuple(_node(child, leaves, entries) for child in node.inputs)
    if node.is_leaf:
        return replace(next(leaves), key="operators[]", label=f"{node.label} below")
    facts = (Fact("operator", type(node).__name__), *node.facts)
    held = None if node.is_table else next(entries, None)
    if held is not None:
        facts += (Fact("entries", held.entries, f"{held.entries:,} entries kept"),)
        if held.shared:
            facts += (Fact("shared", True, "run once for all queries that have it"),)
    return Description("operators[]", node.label, facts, inputs, ("operators",))


def describe_tree(node: Node) -> str:
    """Return the operators of a tree in one line, from the top down."""
    if not node.inputs:
        return node.label
    return f"{node.label} ({', '.join(describe_tree(child) for child in node.inputs)})"
