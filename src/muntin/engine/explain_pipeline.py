"""What there is to tell of a pipeline: its operators as a tree, and below them the joins as :mod:`muntin.engine.explain` tells of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from muntin.engine.explain import describe_plan, describe_query
from muntin.model.clock import format_interval
from muntin.plan.description import Fact, Node
from muntin.plan.join import JoinPlan
from muntin.plan.pipeline import (
    Combine,
    Distinct,
    GroupBy,
    Leaf,
    PipelinePlan,
    SetOperation,
    Stored,
)
from muntin.plan.pipeline import Node as PlanNode
from muntin.plan.query import Expression
from muntin.runtime.running_pipeline import RunningPipeline
from muntin.runtime.running_query import RunningQuery

_SECOND = 1_000_000


@dataclass(frozen=True)
class Kept:
    """What an operator keeps, and whether it does so for other queries too."""

    entries: int
    shared: bool


def describe_any(plan: JoinPlan | PipelinePlan) -> Node:
    """How a query of either kind will be run."""
    return describe_pipeline(plan) if isinstance(plan, PipelinePlan) else describe_plan(plan)


def describe_pipeline(plan: PipelinePlan) -> Node:
    """How a pipeline will be run."""
    return _described(plan, iter([describe_plan(leaf) for leaf in plan.leaves]), iter(()))


def describe_running_pipeline(running: RunningPipeline, why: Callable[[RunningQuery], str]) -> Node:
    """The plan of a running pipeline, with what its operators keep; ``why`` tells of its leaves why they share their joins or not."""
    plan = PipelinePlan(running.query, tuple(leaf.plan for leaf in running.leaves))
    leaves = [describe_query(leaf, why(leaf)) for leaf in running.leaves]
    kept = [
        Kept(entries, shared)
        for (_, entries, _), shared in zip(running.state(), running.shared(), strict=True)
    ]
    return _described(plan, iter(leaves), iter(kept))


def _described(plan: PipelinePlan, leaves: Iterator[Node], entries: Iterator[Kept]) -> Node:
    query = plan.query
    timing = f"every {format_interval(query.every)}" if query.every else "at every change"
    facts = (
        Fact("query", query.name),
        Fact("emit", str(query.emit), f"emits {query.emit} {timing}"),
        Fact("every_seconds", query.every / _SECOND if query.every else None),
    )
    return Node(
        "query", f"query {query.name}", facts, (_node(query.root, leaves, entries),), ("operators",)
    )


def _node(node: PlanNode, leaves: Iterator[Node], entries: Iterator[Kept]) -> Node:
    """An operator with its inputs, which come first in what is told of them."""
    inputs = tuple(_node(child, leaves, entries) for child in node.inputs)
    if isinstance(node, Leaf):
        leaf = next(leaves)
        return replace(
            leaf,
            key="operators[]",
            label="join below" if len(node.query.sources) > 1 else "rows below",
        )
    label, facts = _told(node)
    if not isinstance(node, Stored):
        kept = next(entries, None)
        facts += (
            ()
            if kept is None
            else (Fact("entries", kept.entries, f"{kept.entries:,} entries kept"),)
        )
        facts += (
            (Fact("shared", True, "run once for all queries that have it"),)
            if kept and kept.shared
            else ()
        )
    return Node(
        "operators[]",
        label,
        (Fact("operator", type(node).__name__), *facts),
        inputs,
        ("operators",),
    )


def describe_tree(node: PlanNode) -> str:
    """The operators of a tree in one line, from the top down."""
    match node:
        case Leaf(query):
            return (
                "what buckets send"
                if not query.sources
                else "join"
                if len(query.sources) > 1
                else "rows"
            )
        case _:
            label = _told(node)[0]
            return (
                f"{label} ({', '.join(describe_tree(child) for child in node.inputs)})"
                if node.inputs
                else label
            )


def _told(node: PlanNode) -> tuple[str, tuple[Fact, ...]]:
    match node:
        case Distinct():
            return "distinct", ()
        case SetOperation(operator):
            return operator.value.lower(), ()
        case Stored(source):
            return f"table {source.relation}", (Fact("relation", source.relation),)
        case GroupBy(child, keys, aggregates, having, select):
            names = [aggregate.text for aggregate in aggregates]
            shown = f"group by {keys} of the columns below" if keys else "one group"
            facts = [
                Fact("keys", [child.schema.names[place] for place in range(keys)]),
                Fact("aggregates", names, ", ".join(names)),
            ]
            facts += [Fact("having", having.sql, f"having {_plain(having)}")] if having else []
            return shown, (*facts, Fact("columns", [column.name for column in select]))
        case Combine(_, predicates, select):
            conditions = [_plain(predicate.expression) for predicate in predicates]
            text = f"where {' and '.join(conditions)}" if conditions else ""
            return "select over the inputs", (
                Fact("conditions", conditions, text),
                Fact("columns", [column.name for column in select]),
            )
        case Leaf():
            raise AssertionError("told of by its join")


def _plain(expression: Expression) -> str:
    return expression.sql.replace('"', "")
