"""Bound row numbers by the conditions above them, so that rows beyond the bound get none.

Sound because a condition ``number <= n`` drops the same rows as the bound does. If the number is
then read nowhere, rows are cut by rank and no numbers are kept.
"""

from __future__ import annotations

from dataclasses import replace

from muntin.plan.expression import Comparison, Predicate
from muntin.plan.node import Node
from muntin.plan.nodes import Project
from muntin.plan.top_n import RowNumbering, TopN

_FLIPPED = {">": "<", ">=": "<=", "=": "="}


def limit_numbers(node: Node) -> Node:
    """Return a filter over numbered rows with the numbers bounded; other nodes as they are."""
    if not isinstance(node, Project):
        return node
    below = node.input
    if isinstance(below, TopN):
        return _limited(node, below)
    if isinstance(below, Project) and not below.where and isinstance(below.input, TopN):
        shown = {column.name: column.expression.column for column in below.select}
        names = {name: ref.column for name, ref in shown.items() if ref is not None}
        bounds = [bound for one in node.where if (bound := _bound(one, names, below.input))]
        if bounds and below.input.limit is None:
            top = replace(below.input, limit=min(bounds))
            return replace(node, input=replace(below, input=top))
    return node


def _limited(node: Project, top: TopN) -> Node:
    if top.limit is not None or not top.number:
        return node
    names = {name: name for name in top.schema.names}
    bounds = {one: bound for one in node.where if (bound := _bound(one, names, top))}
    if not bounds:
        return node
    limit = min(bounds.values())
    where = tuple(one for one in node.where if not (one in bounds and _follows(one, limit)))
    expressions = [
        *(one.expression for one in where),
        *(column.expression for column in node.select),
    ]
    read = {ref.column for expression in expressions for ref in expression.references}
    counted = top.number in read or top.numbering is not RowNumbering.ROW_NUMBER
    kept = tuple(place for place in top.columns if top.input.schema.names[place] in read)
    number = top.number if counted else ""
    if not kept and not number:
        kept = top.columns
    return replace(node, input=replace(top, limit=limit, columns=kept, number=number), where=where)


def _follows(predicate: Predicate, limit: int) -> bool:
    """Return whether a condition holds for all numbers up to a bound, which is its own or less."""
    assert predicate.comparison is not None, "it has a bound"
    return predicate.comparison.operator != "=" or limit == 1


def _bound(predicate: Predicate, names: dict[str, str], top: TopN) -> int | None:
    """Return the greatest number that a condition lets pass; None if it states none."""
    if predicate.comparison is None:
        return None
    comparison = predicate.comparison
    if comparison.operator in _FLIPPED and not comparison.left.references:
        comparison = Comparison(_FLIPPED[comparison.operator], comparison.right, comparison.left)
    column, text = comparison.left.column, comparison.right.sql
    if column is None or names.get(column.column) != top.number or not text.isdecimal():
        return None
    bound = int(text) - (comparison.operator == "<")
    return bound if comparison.operator in {"<", "<=", "="} and bound > 0 else None
