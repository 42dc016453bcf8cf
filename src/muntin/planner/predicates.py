"""Predicates sorted into filters of one source, comparisons of codes, and residuals.

Sound because a conjunction may be tested in any order, and a comparison of hashed codes is also
kept as a residual.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from muntin.plan.expression import Expression
from muntin.plan.join import Code, CodeKind
from muntin.plan.nodes import Join
from muntin.planner.classes import CodeRef, CodeTable
from muntin.planner.codes import code_kind


@dataclass
class SortedPredicates:
    """The predicates of a window join, each in its place."""

    filters: list[list[Expression]]
    codes: CodeTable
    equalities: list[tuple[CodeRef, CodeRef]] = field(default_factory=list)
    comparisons: list[tuple[CodeRef, str, CodeRef]] = field(default_factory=list)
    residuals: list[Expression] = field(default_factory=list)


def sort_predicates(join: Join) -> SortedPredicates:
    """Sort the predicates of a window join."""
    parts = SortedPredicates([[] for _ in join.sources], CodeTable([[] for _ in join.sources]))
    for predicate in join.predicates:
        expression = predicate.expression
        if len(expression.sources) <= 1:
            parts.filters[min(expression.sources, default=0)].append(expression)
            continue
        comparison = predicate.comparison
        if (
            comparison is None
            or not len(comparison.left.sources) == len(comparison.right.sources) == 1
        ):
            parts.residuals.append(expression)
            continue
        kind = code_kind(comparison.left.type, comparison.right.type, comparison.operator)
        if kind is None:
            parts.residuals.append(expression)
            continue
        left, right = (
            parts.codes.node(min(side.sources), Code(side, kind))
            for side in (comparison.left, comparison.right)
        )
        if comparison.operator == "=":
            parts.equalities.append((left, right))
        else:
            parts.comparisons.append((left, comparison.operator, right))
        if kind is CodeKind.HASH:
            parts.residuals.append(expression)
    return parts
