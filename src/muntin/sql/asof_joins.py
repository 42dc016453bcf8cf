"""ASOF JOIN: what its ON may say, and its node.

ON has one inequality between the sides, equalities between them, and conditions on one side. Those
on the right side choose which rows there are to match, those on the left side which rows seek one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.types as pat

from muntin.aggregates.types import is_ordered
from muntin.errors import SqlError
from muntin.model.catalog import Catalog, Stream
from muntin.plan.asof_join import AsofJoin
from muntin.plan.column_rename import renamed
from muntin.plan.expression import ColumnRef, Expression, Predicate
from muntin.plan.key_types import key_type
from muntin.plan.node import Node
from muntin.plan.nodes import Scan
from muntin.plan.semi_join import KeyPair
from muntin.plan.top_n import SortKey
from muntin.sql.join_conditions import is_within, key_of, sides_of
from muntin.sql.lexer import Tokens
from muntin.sql.typecheck import Condition
from muntin.sql.writer import plain_text

_ON = "Its ON takes equalities of both sides, one inequality, and conditions on one side"
_CAST = "Write CAST(... AS ...) on one side"


class AsofTerms(NamedTuple):
    """The conditions of an as-of join besides those on its right side."""

    keys: tuple[tuple[Expression, Expression], ...]
    at: tuple[Expression, str, Expression]
    conditions: tuple[Expression, ...]


def asof_terms(on: Sequence[Predicate], left: frozenset[int], right: frozenset[int]) -> AsofTerms:
    """Return the terms of conditions that were checked."""
    keys = [key for one in on if (key := key_of(one, left, right)) is not None]
    (at,) = (
        sides for one in on if (sides := sides_of(one, left, right)) is not None and sides[1] != "="
    )
    alone = (one.expression for one in on if one.expression.sources <= left)
    return AsofTerms(tuple(keys), at, tuple(alone))


def check_asof(
    tokens: Tokens,
    conditions: Sequence[tuple[Condition, Predicate]],
    left: frozenset[int],
    right: frozenset[int],
) -> None:
    """Refuse conditions that do not decide which row is the match; ``tokens`` name the entry."""
    orders = 0
    for condition, one in conditions:
        where = condition.whole.tokens
        sides = sides_of(one, left, right)
        if sides is None:
            if one.expression.sources <= left or is_within(one, right):
                continue
            fact = f"ASOF JOIN cannot check {plain_text(where)}"
            raise where.error(where.start, fact, f"{_ON}; check it in WHERE")
        before, operator, after = sides
        if operator == "=":
            if key_of(one, left, right) is None:
                raise _incomparable(where, before.type, after.type)
            continue
        orders += 1
        if orders > 1:
            fact = f"ASOF JOIN has one inequality already before {plain_text(where)}"
            raise where.error(where.start, fact, "Keep one, and check the other in WHERE")
        kind = key_type(before.type, after.type)
        if kind is None:
            raise _incomparable(where, before.type, after.type)
        if not _has_codes(kind):
            fact = f"ASOF JOIN orders rows by {plain_text(where)}, which has type {kind}"
            raise where.error(where.start, fact, "Order them by times, whole numbers or DOUBLE")
    if not orders:
        name = tokens[0].text
        fact = f"the ASOF JOIN of {name} has no inequality, so no row is the nearest"
        raise tokens.error(tokens[0], fact, f"Add an inequality of times to ON: a.ts >= {name}.ts")


def tie_columns(
    place: int, scan: Scan, catalog: Catalog, positions: Mapping[ColumnRef, str]
) -> dict[ColumnRef, str]:
    """Return the columns of an entry that order its rows, with their names in its node.

    The time and the position of rows of a stream, or else all columns.
    """
    relation = catalog.find(scan.relation)
    if positions and isinstance(relation, Stream):
        return {ColumnRef(place, relation.time): f"{scan.alias}.{relation.time}", **positions}
    return {ColumnRef(place, one): f"{scan.alias}.{one}" for one in scan.schema.names}


class AsofSide(NamedTuple):
    """An input: its node, the names of its columns, those passed on, those of its positions."""

    node: Node
    columns: Mapping[ColumnRef, str]
    shown: Collection[str]
    places: Collection[str]


class AsofForm(NamedTuple):
    """Whether left rows without a match are kept, and whether rows are only emitted."""

    outer: bool
    inserts: bool


def asof_join(
    sides: tuple[AsofSide, AsofSide], terms: AsofTerms, form: AsofForm, ties: Sequence[str]
) -> AsofJoin:
    """Return the node; ``ties`` are the columns that order right rows at one place."""
    left, right = sides
    names = [
        {one: ColumnRef(place, name) for one, name in side.columns.items()}
        for place, side in enumerate(sides)
    ]

    def pair(one: Expression, other: Expression) -> KeyPair:
        return KeyPair(renamed(one, names[0]), renamed(other, names[1]))

    before, operator, after = terms.at
    forward = operator in {"<", "<="}
    schemas = [side.node.schema for side in sides]
    (left_columns, left_places), (right_columns, right_places) = (
        [tuple(map(schema.get_field_index, names)) for names in (side.shown, side.places)]
        for schema, side in zip(schemas, sides, strict=True)
    )
    return AsofJoin(
        left.node,
        right.node,
        tuple(pair(*key) for key in terms.keys),
        pair(before, after),
        operator,
        tuple(_tie_keys(schemas[1], ties, placed=bool(right.places), forward=forward)),
        tuple(renamed(condition, names[0]) for condition in terms.conditions),
        (left_places, right_places),
        left_columns,
        right_columns,
        outer=form.outer,
        inserts=form.inserts,
    )


def _tie_keys(
    schema: pa.Schema, names: Sequence[str], *, placed: bool, forward: bool
) -> Iterator[SortKey]:
    """Yield the keys that order right rows at one place: the last one in the order is found.

    Of values, NULL is found last in either direction.
    """
    for name in names:
        place = schema.get_field_index(name)
        if placed or is_ordered(schema.field(place).type):
            yield SortKey(place, descending=forward, nulls_first=not placed, hidden=placed)


def _incomparable(where: Tokens, one: pa.DataType, other: pa.DataType) -> SqlError:
    fact = f"ASOF JOIN cannot compare {one} with {other} in {plain_text(where)}"
    return where.error(where.start, fact, _CAST)


def _has_codes(kind: pa.DataType) -> bool:
    """Return whether values of a type are integers in their order."""
    return bool(
        (pat.is_integer(kind) and kind != pa.uint64())
        or pat.is_floating(kind)
        or pat.is_date32(kind)
        or pat.is_timestamp(kind)
        or (pat.is_time64(kind) and kind.unit == "us")
    )
