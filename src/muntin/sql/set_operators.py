"""Selects with UNION, INTERSECT, EXCEPT and MINUS between them; INTERSECT binds more tightly than the others, as in DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pat
from sqlglot import Token

from muntin.plan.pipeline import Combine, Node, SetOperation, SetOperator
from muntin.plan.query import ColumnRef, Expression, OutputColumn, quote
from muntin.sql.lexer import Tokens, is_symbol, top_level, word
from muntin.sql.probe import ask
from muntin.sql.refusals import ends_operand

_HINT = "Write SELECT ... UNION [ALL] SELECT ..., or INTERSECT, EXCEPT or MINUS"
_SQL_NAMES = {
    "int8": "TINYINT", "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT", "uint8": "UTINYINT", "uint16": "USMALLINT",
    "uint32": "UINTEGER", "uint64": "UBIGINT", "float": "FLOAT", "double": "DOUBLE",
}  # fmt: skip


@dataclass(frozen=True)
class Joint:
    """A set operator between two selects, and the token to blame for it."""

    operator: SetOperator
    token: Token


def split_selects(tokens: Tokens) -> tuple[list[Tokens], list[Joint]]:
    """The selects on the highest level, and the operators between them."""
    operands, joints = [], []
    start = 0
    for index in top_level(tokens):
        if index < start or not _is_operator(tokens, index):
            continue
        operands.append(tokens.part(start, index))
        name = word(tokens[index])
        follower = tokens[index + 1] if index + 1 < len(tokens) else None
        every = follower is not None and word(follower) == "ALL"
        if every and name == "MINUS":
            raise tokens.error(
                tokens[index], "MINUS ALL is not supported", "MINUS keeps duplicates already; EXCEPT ALL takes them one by one"
            )
        start = index + (2 if follower is not None and word(follower) in {"ALL", "DISTINCT"} else 1)
        joints.append(Joint(SetOperator(f"{name} ALL" if every else name), tokens[index]))
    operands.append(tokens.part(start))
    for operand, joint in zip(operands[1:], joints, strict=True):
        if not len(operand):
            raise tokens.error(joint.token, f"a select is missing after {word(joint.token)}", _HINT)
    return operands, joints


def _is_operator(tokens: Tokens, index: int) -> bool:
    if not index or word(tokens[index]) not in {"UNION", "INTERSECT", "EXCEPT", "MINUS"} or not ends_operand(tokens[index - 1]):
        return False
    follower = tokens[index + 1] if index + 1 < len(tokens) else None
    if word(tokens[index]) != "MINUS":
        return True
    return follower is not None and (word(follower) in {"SELECT", "ALL"} or is_symbol(follower, "("))


def combine_selects(nodes: Sequence[Node], joints: Sequence[Joint], operands: Sequence[Tokens]) -> Node:
    """The node of selects with operators between them."""
    tight = {SetOperator.INTERSECT, SetOperator.INTERSECT_ALL}
    terms, loose = [nodes[0]], []
    for node, joint, tokens in zip(nodes[1:], joints, operands[1:], strict=True):
        if joint.operator in tight:
            terms[-1] = _combine(joint, terms[-1], node, tokens)
        else:
            terms.append(node)
            loose.append((joint, tokens))
    result = terms[0]
    for term, (joint, tokens) in zip(terms[1:], loose, strict=True):
        result = _combine(joint, result, term, tokens)
    return result


def _combine(joint: Joint, left: Node, right: Node, tokens: Tokens) -> SetOperation:
    counts = len(left.schema), len(right.schema)
    if counts[0] != counts[1]:
        fact = f"the selects around {joint.operator} have {counts[0]} and {counts[1]} columns"
        raise tokens.error(joint.token, fact, "Select as many columns on both sides")
    types = [
        _common(joint, number, (one, other), tokens)
        for number, (one, other) in enumerate(zip(left.schema, right.schema, strict=True), 1)
    ]  # fmt: skip
    return SetOperation(joint.operator, _cast(left, types), _cast(right, types))


def _common(joint: Joint, number: int, fields: tuple[pa.Field, pa.Field], tokens: Tokens) -> pa.DataType:
    """The type that a column has after both sides were made alike."""
    left, right = (field.type for field in fields)
    if left == right:
        return left
    if not all(pat.is_integer(kind) or pat.is_floating(kind) or pat.is_decimal128(kind) for kind in (left, right)):
        fact = f"column {number} of the selects around {joint.operator} is {left} on the left and {right} on the right"
        raise tokens.error(joint.token, fact, f"Cast {fields[0].name} or {fields[1].name} so that both have the same type")
    one, other = (pa.table({"x": pa.nulls(0, kind)}) for kind in (left, right))
    return ask("SELECT x FROM one UNION ALL SELECT x FROM other", one=one, other=other).schema.field(0).type


def _cast(node: Node, types: Sequence[pa.DataType]) -> Node:
    """The node with columns of these types."""
    if list(node.schema.types) == list(types):
        return node
    columns = []
    for field, kind in zip(node.schema, types, strict=True):
        reference = ColumnRef(0, field.name)
        sql = quote(reference.flat) if field.type == kind else f"CAST({quote(reference.flat)} AS {_sql_name(kind)})"
        columns.append(OutputColumn(field.name, Expression(sql, (reference,), kind)))
    return Combine((node,), (), tuple(columns))


def _sql_name(kind: pa.DataType) -> str:
    return f"DECIMAL({kind.precision}, {kind.scale})" if pat.is_decimal128(kind) else _SQL_NAMES[str(kind)]
