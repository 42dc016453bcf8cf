"""The conditions of joins: which entries of FROM they read, and their sides."""

from __future__ import annotations

from collections.abc import Sequence

from muntin.plan.expression import ColumnRef, Expression, Predicate
from muntin.plan.key_types import key_type

_FLIPPED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def references_of(expressions: Sequence[Expression]) -> frozenset[ColumnRef]:
    """Return the columns that expressions read."""
    return frozenset(one for expression in expressions for one in expression.references)


def without(predicates: Sequence[Predicate], some: Sequence[Predicate]) -> list[Predicate]:
    """Return all but some of the predicates; equal ones may stand at several places."""
    taken = {id(one) for one in some}
    return [one for one in predicates if id(one) not in taken]


def is_within(predicate: Predicate, places: frozenset[int]) -> bool:
    """Return whether a condition reads columns, and only of these entries."""
    return bool(predicate.expression.sources) and predicate.expression.sources <= places


def sides_of(
    predicate: Predicate, left: frozenset[int], right: frozenset[int]
) -> tuple[Expression, str, Expression] | None:
    """Return a comparison between the sides of a join as one of the left side with the right."""
    found = predicate.comparison
    if found is None or found.operator not in _FLIPPED:
        return None
    for one, operator, other in (
        (found.left, found.operator, found.right),
        (found.right, _FLIPPED[found.operator], found.left),
    ):
        if one.sources and other.sources and one.sources <= left and other.sources <= right:
            return one, operator, other
    return None


def key_of(
    predicate: Predicate, left: frozenset[int], right: frozenset[int]
) -> tuple[Expression, Expression] | None:
    """Return the sides of an equality between the sides of a join if it can be a key."""
    sides = sides_of(predicate, left, right)
    if sides is None or sides[1] != "=" or key_type(sides[0].type, sides[2].type) is None:
        return None
    return sides[0], sides[2]
