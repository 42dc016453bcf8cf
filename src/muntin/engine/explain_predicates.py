"""The residual predicates of a running query, in the order in which they are tested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from muntin.expressions.predicate_order import MeasuredPredicate
from muntin.plan.description import Description, Fact
from muntin.runtime.running_query import RunningQuery

_KEY = "residuals[]"


def by_measured_cost(children: Sequence[Description], running: RunningQuery) -> list[Description]:
    """Return the parts of a query with its residuals in their order, and what they cost."""
    nodes = [child for child in children if child.key == _KEY]
    texts = [residual.sql for residual in running.plan.residuals]
    left = dict(zip(texts, nodes, strict=False))
    if len(left) < len(nodes):
        return list(children)
    ordered = [
        replace(node, facts=(*node.facts, *_cost(each)))
        for each in running.measured_residuals()
        if (node := left.pop(each.predicate.sql, None)) is not None
    ]
    following = iter([*ordered, *left.values()])
    return [next(following) if child.key == _KEY else child for child in children]


def _cost(measured: MeasuredPredicate) -> tuple[Fact, ...]:
    cost, kept = measured.per_row, measured.kept
    return (
        Fact("nanoseconds_per_row", cost, f"{cost:,.0f} ns per row measured"),
        Fact("share_kept", kept, f"keeps {kept:.0%}"),
    )
