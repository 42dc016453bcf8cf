"""Rewrite an expression over the columns of a node as one over the columns of a node below it."""

from __future__ import annotations

from collections.abc import Sequence

from muntin.plan.column_rename import pieces_of, renamed
from muntin.plan.expression import ColumnRef, Expression, OutputColumn, column_expression, quote
from muntin.plan.node import Node


def column_of(node: Node, place: int) -> Expression | None:
    """Return a column of a node as an expression; None if another column has its name."""
    field = node.schema.field(place)
    if node.schema.names.count(field.name) != 1:
        return None
    return column_expression(ColumnRef(0, field.name), field.type)


def below_select(column: Expression, select: Sequence[OutputColumn]) -> Expression | None:
    """Return an expression over a select list as one over the inputs of the list.

    None where names are ambiguous.
    """
    names = [output.name for output in select]
    if any(names.count(reference.column) != 1 for reference in column.references):
        return None
    meant = {ColumnRef(0, output.name).flat: output.expression for output in select}
    if column.column is not None:
        return meant[column.column.flat]
    # The evaluator makes a value that cannot be computed NULL; inside an expression TRY does so.
    texts = {
        quote(flat): inner.sql if inner.column else f"TRY({inner.sql})"
        for flat, inner in meant.items()
    }
    references = tuple(
        dict.fromkeys(ref for outer in column.references for ref in meant[outer.flat].references)
    )
    sql = "".join(texts.get(piece, piece) for piece in pieces_of(column.sql))
    return Expression(sql, references, column.type)


def on_right_side(column: Expression, left: Node, right: Node) -> Expression | None:
    """Return an expression over the left input of a set operator as one over the right input."""
    places = [left.schema.names.index(reference.column) for reference in column.references]
    names = [right.schema.names[place] for place in places]
    if any(right.schema.names.count(name) != 1 for name in names):
        return None
    moved = (ColumnRef(0, name) for name in names)
    return renamed(column, dict(zip(column.references, moved, strict=True)))


def over_one_input(column: Expression) -> Expression:
    """Return an expression over one of several inputs as if that input were the only one."""
    return renamed(column, {ref: ColumnRef(0, ref.column) for ref in column.references})
