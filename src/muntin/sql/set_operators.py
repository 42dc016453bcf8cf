"""Selects with UNION, INTERSECT, EXCEPT and MINUS between them.

INTERSECT binds more tightly than the others, as in DuckDB.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa
import pyarrow.types as pat
from sqlglot import Token

from muntin.plan.expression import ColumnRef, Expression, OutputColumn, quote
from muntin.plan.node import Node
from muntin.plan.nodes import Project, SetOperation, SetOperator
from muntin.sql.lexer import Tokens, is_symbol, top_level, word
from muntin.sql.probe import ask
from muntin.sql.refusals import ends_operand

_HINT = "Write SELECT ... UNION [ALL] SELECT ..., or INTERSECT, EXCEPT or MINUS"
_TIGHT = {SetOperator.INTERSECT, SetOperator.INTERSECT_ALL}
_ASSOCIATIVE = {SetOperator.UNION, SetOperator.UNION_ALL, *_TIGHT}
_SQL_NAMES = {
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
}


@dataclass(frozen=True)
class Joint:
    """A set operator between two selects, and the token to blame for it."""

    operator: SetOperator
    token: Token


def split_selects(tokens: Tokens) -> tuple[list[Tokens], list[Joint]]:
    """Return the selects on the highest level, and the operators between them."""
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
                tokens[index],
                "MINUS ALL is not supported",
                "MINUS keeps duplicates already; EXCEPT ALL takes them one by one",
            )
        start = index + (2 if follower is not None and word(follower) in {"ALL", "DISTINCT"} else 1)
        joints.append(Joint(SetOperator(f"{name} ALL" if every else name), tokens[index]))
    operands.append(tokens.part(start))
    for operand, joint in zip(operands[1:], joints, strict=True):
        if not len(operand):
            raise tokens.error(joint.token, f"a select is missing after {word(joint.token)}", _HINT)
    return operands, joints


def _is_operator(tokens: Tokens, index: int) -> bool:
    if (
        not index
        or word(tokens[index]) not in {"UNION", "INTERSECT", "EXCEPT", "MINUS"}
        or not ends_operand(tokens[index - 1])
    ):
        return False
    follower = tokens[index + 1] if index + 1 < len(tokens) else None
    if word(tokens[index]) != "MINUS":
        return True
    return follower is not None and (
        word(follower) in {"SELECT", "ALL"} or is_symbol(follower, "(")
    )


def combine_selects(
    nodes: Sequence[Node], joints: Sequence[Joint], operands: Sequence[Tokens]
) -> Node:
    """Return the node of selects with operators between them."""
    terms, loose = [nodes[0]], []
    factors: list[tuple[Joint, Node, Tokens]] = []
    for node, joint, tokens in zip(nodes[1:], joints, operands[1:], strict=True):
        if joint.operator in _TIGHT:
            factors.append((joint, node, tokens))
            continue
        terms[-1] = _fold(terms[-1], factors)
        factors = []
        terms.append(node)
        loose.append((joint, tokens))
    terms[-1] = _fold(terms[-1], factors)
    return _fold(
        terms[0],
        [(joint, term, tokens) for (joint, tokens), term in zip(loose, terms[1:], strict=True)],
    )


def _fold(first: Node, rest: Sequence[tuple[Joint, Node, Tokens]]) -> Node:
    """Combine nodes from left to right.

    Runs of one associative operator become a tree of small depth.
    """
    result = first
    for operator, group in groupby(rest, key=lambda each: each[0].operator):
        run, types = [result], list(result.schema.types)
        for joint, node, tokens in group:
            common = _common_types(joint, run[0], node, tokens)
            if common != types:
                run, types = [_cast(each, common) for each in run], common
            run.append(_cast(node, types))
            if operator not in _ASSOCIATIVE:
                run = [SetOperation(operator, *run)]
        result = _balanced(operator, run)
    return result


def _balanced(operator: SetOperator, nodes: Sequence[Node]) -> Node:
    """Combine nodes of the same types in pairs, pairs of pairs and so on."""
    if len(nodes) == 1:
        return nodes[0]
    middle = (len(nodes) + 1) // 2
    return SetOperation(
        operator, _balanced(operator, nodes[:middle]), _balanced(operator, nodes[middle:])
    )


def _common_types(joint: Joint, left: Node, right: Node, tokens: Tokens) -> list[pa.DataType]:
    counts = len(left.schema), len(right.schema)
    if counts[0] != counts[1]:
        fact = f"the selects around {joint.operator} have {counts[0]} and {counts[1]} columns"
        raise tokens.error(joint.token, fact, "Select as many columns on both sides")
    pairs = enumerate(zip(left.schema, right.schema, strict=True), 1)
    return [_common(joint, number, pair, tokens) for number, pair in pairs]


def _common(
    joint: Joint, number: int, fields: tuple[pa.Field, pa.Field], tokens: Tokens
) -> pa.DataType:
    """Return the type that a column has after both sides were made alike."""
    left, right = (field.type for field in fields)
    if left == right:
        return left
    if not all(
        pat.is_integer(kind) or pat.is_floating(kind) or pat.is_decimal128(kind)
        for kind in (left, right)
    ):
        fact = (
            f"column {number} of the selects around {joint.operator} "
            f"is {left} on the left and {right} on the right"
        )
        raise tokens.error(
            joint.token,
            fact,
            f"Cast {fields[0].name} or {fields[1].name} so that both have the same type",
        )
    one, other = (pa.table({"x": pa.nulls(0, kind)}) for kind in (left, right))
    return (
        ask("SELECT x FROM one UNION ALL SELECT x FROM other", one=one, other=other)
        .schema.field(0)
        .type
    )


def _cast(node: Node, types: Sequence[pa.DataType]) -> Node:
    """Return the node with columns of these types."""
    if list(node.schema.types) == list(types):
        return node
    columns = []
    for field, kind in zip(node.schema, types, strict=True):
        reference = ColumnRef(0, field.name)
        sql = (
            quote(reference.flat)
            if field.type == kind
            else f"CAST({quote(reference.flat)} AS {_sql_name(kind)})"
        )
        columns.append(OutputColumn(field.name, Expression(sql, (reference,), kind)))
    return Project(node, (), tuple(columns))


def _sql_name(kind: pa.DataType) -> str:
    return (
        f"DECIMAL({kind.precision}, {kind.scale})"
        if pat.is_decimal128(kind)
        else _SQL_NAMES[str(kind)]
    )
