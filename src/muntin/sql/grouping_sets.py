"""GROUPING SETS, ROLLUP and CUBE: which keys each grouping of a select goes by.

Every grouping is a node of its own over a copy of the same rows, which run once. In its rows the
keys that it leaves out are NULL; GROUPING(...) is a constant of each grouping and tells them apart
from keys that are NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from math import prod
from typing import TypeAlias

import pyarrow as pa

from muntin.plan.expression import ColumnRef, OutputColumn, column_expression
from muntin.plan.node import Node
from muntin.plan.nodes import Aggregate, Project
from muntin.sql.lexer import Tokens, closing, is_symbol, split_commas, word
from muntin.sql.probe import ask

MOST_SETS = 64
"""How many groupings a select may have."""
_FORMS = {
    "ROLLUP": "Write ROLLUP (a, b)",
    "CUBE": "Write CUBE (a, b)",
    "GROUPING SETS": "Write GROUPING SETS ((a, b), (a), ())",
}
_CALLS = {"GROUPING", "GROUPING_ID"}

KeySet: TypeAlias = tuple[Tokens, ...]
"""The keys of one grouping."""


def read_sets(tokens: Tokens) -> list[KeySet]:
    """Return the groupings of a GROUP BY: one if it has neither of the words."""
    found = [_alternatives(part) for part in _parts(tokens)]
    count = prod(map(len, found))
    if count > MOST_SETS:
        fact = f"GROUP BY has {count} sets of keys, and at most {MOST_SETS} are supported"
        raise tokens.error(tokens.start, fact, "List those that you need in GROUPING SETS")
    return [sum(chosen, start=()) for chosen in product(*found)]


def _alternatives(tokens: Tokens) -> list[KeySet]:
    """Return the sets of keys that an item of GROUP BY stands for."""
    name = word(tokens[0])
    if name not in _FORMS:
        return [_keys(tokens)]
    end = closing(tokens, 1) if len(tokens) > 1 and is_symbol(tokens[1], "(") else None
    if end is None or end != len(tokens) - 1 or end < 3:
        raise tokens.error(tokens[0], f"{name} needs a list of keys", _FORMS[name])
    parts = _parts(tokens.part(2, end))
    if name == "GROUPING SETS":
        return [keys for part in parts for keys in _alternatives(part)]
    units = [_keys(part) for part in parts]
    if name == "CUBE" and len(units) > MOST_SETS.bit_length() - 1:
        fact = f"CUBE has {len(units)} keys, which make more than {MOST_SETS} sets"
        raise tokens.error(tokens[0], fact, "List those that you need in GROUPING SETS")
    sizes = range(len(units), -1, -1)
    if name == "ROLLUP":
        return [sum(units[:size], start=()) for size in sizes]
    return [sum(some, start=()) for size in sizes for some in combinations(units, size)]


def _keys(tokens: Tokens) -> KeySet:
    """Return the keys of a list in parentheses, or the one key that an expression is."""
    if is_symbol(tokens[0], "(") and closing(tokens, 0) == len(tokens) - 1:
        inside = tokens.part(1, len(tokens) - 1)
        return sum(map(_keys, _parts(inside)), start=()) if len(inside) else ()
    return (tokens,)


def _parts(tokens: Tokens) -> list[Tokens]:
    """Return what stands between commas, none of it empty."""
    parts = split_commas(tokens)
    for part in parts:
        if not len(part):
            hint = "Write GROUP BY expression, ..."
            raise tokens.error(part.stop, "an expression is missing here", hint)
    return parts


def is_grouping(tokens: Tokens, index: int) -> bool:
    """Return whether a call of GROUPING begins here."""
    return (
        word(tokens[index]) in _CALLS
        and index + 1 < len(tokens)
        and is_symbol(tokens[index + 1], "(")
    )


def grouping_arguments(tokens: Tokens, index: int) -> tuple[list[Tokens], int]:
    """Return the arguments of the call of GROUPING that begins here, and where it ends."""
    end = closing(tokens, index + 1)
    assert end is not None, "the select was parsed"
    return _parts(tokens.part(index + 2, end)), end + 1


def grouping_value(places: Sequence[int], kept: Sequence[int]) -> int:
    """Return what GROUPING is of keys at ``places``: a bit for each, 1 if it is left out."""
    return sum((place not in kept) << bit for bit, place in enumerate(reversed(places)))


@cache
def null_of(kind: pa.DataType) -> str:
    """Return the SQL of a NULL of a type."""
    rows = ask("SELECT typeof(x) AS name FROM one", one=pa.table({"x": pa.nulls(1, kind)}))
    return f"CAST(NULL AS {rows.column('name')[0].as_py()})"


def keys_first(
    rows: Node, keys: Sequence[int], aggregates: Sequence[Aggregate]
) -> tuple[Node, tuple[Aggregate, ...]]:
    """Return rows with some columns in front of the others, and aggregates that are over them."""
    width = len(rows.schema)
    order = [*keys, *(place for place in range(width) if place not in keys)]
    if order == list(range(width)):
        return rows, tuple(aggregates)
    fields = [rows.schema.field(place) for place in order]
    select = tuple(
        OutputColumn(field.name, column_expression(ColumnRef(0, field.name), field.type))
        for field in fields
    )
    moved = tuple(
        replace(
            one,
            argument=None if one.argument is None else order.index(one.argument),
            order=tuple(map(order.index, one.order)),
        )
        for one in aggregates
    )
    return Project(rows, (), select), moved
