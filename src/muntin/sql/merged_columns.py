"""USING and NATURAL: the columns that both sides of a join have, which are one above it.

A name without an alias means the merged column, and ``*`` has it once, where its left column was.
After LEFT, INNER and ASOF JOIN it is the left column, after RIGHT JOIN the right one, and after
FULL JOIN the first that is not NULL. Under their aliases both columns can still be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from muntin.plan.expression import ColumnRef
from muntin.plan.nodes import Scan
from muntin.sql.cursor import Cursor
from muntin.sql.lexer import Tokens, split_commas
from muntin.sql.outer_joins import kind_of
from muntin.sql.scope import MergedColumn, NameScope, list_names
from muntin.sql.shape import FromEntry, SelectParts
from muntin.sql.syntax import ColumnUse
from muntin.sql.typecheck import Condition
from muntin.sql.writer import Draft


def bind_using(
    shape: SelectParts, sources: tuple[Scan, ...], outputs: frozenset[str]
) -> tuple[NameScope, list[Condition]]:
    """Return what names mean above all joins, and the conditions of USING and NATURAL."""
    hidden = frozenset(
        place
        for place, entry in enumerate(shape.entries)
        if kind_of(entry.join) in {"SEMI", "ANTI"}
    )
    scope = NameScope(sources, len(sources), outputs=outputs, hidden=hidden)
    conditions: list[Condition] = []
    start = 0
    for place, entry in enumerate(shape.entries):
        start = place if entry.join in {"", ","} else start
        near = replace(scope, start=start, end=place)
        pairs = list(_pairs(entry, near))
        for number, (left, right, tokens) in enumerate(pairs, 1):
            text, columns = near.value_of(left)
            own, _ = near.value_of(right, 2)
            last = number == len(pairs) and "ASOF" in entry.join.split()
            operator = ">=" if last else "="
            sides = Draft(text, columns, tokens), Draft(own, (right,), tokens)
            whole = Draft(f"{text} {operator} {own}", (*columns, right), tokens)
            conditions.append(Condition(whole, operator, sides, place))
            values = {"RIGHT": (right,), "FULL": (*columns, right)}
            value = values.get(kind_of(entry.join), columns)
            merged = MergedColumn(left, right, value)
            scope = replace(scope, merged=scope.merged | {right}, using=(*scope.using, merged))
    return scope, conditions


def _pairs(entry: FromEntry, near: NameScope) -> Iterator[tuple[ColumnRef, ColumnRef, Tokens]]:
    """Yield the columns that a join merges, left and right, and the tokens to blame."""
    if "NATURAL" in entry.join.split():
        yield from _natural_pairs(entry, near)
    for tokens in () if entry.using is None else split_commas(entry.using):
        cursor = Cursor(tokens)
        name = cursor.name("a column")
        cursor.end("USING takes names of columns only")
        yield *_pair(name.text, name.start, tokens, entry, near), tokens


def _natural_pairs(
    entry: FromEntry, near: NameScope
) -> Iterator[tuple[ColumnRef, ColumnRef, Tokens]]:
    """Yield the columns whose names both sides of a NATURAL JOIN have."""
    own = near.sources[near.end].schema.names
    every = [one for one in near.columns() if near.start <= one.source < near.end]
    names = dict.fromkeys(one.column.casefold() for one in every)
    common = [name for name in names if name in {one.casefold() for one in own}]
    if not common:
        fact = f"{entry.join} of {near.sources[near.end].alias}: no column is on both sides"
        left = list_names(list(dict.fromkeys(one.column for one in every)))
        hint = f"Write JOIN ... ON, or CROSS JOIN. On the left are {left}, on the right"
        raise entry.tokens.error(entry.tokens[0], fact, f"{hint} {list_names(own)}")
    for name in common:
        yield *_pair(name, entry.tokens.start, entry.tokens, entry, near), entry.tokens


def _pair(
    name: str, where: int, tokens: Tokens, entry: FromEntry, near: NameScope
) -> tuple[ColumnRef, ColumnRef]:
    """Return the columns of a name to the left of an entry, and in it."""
    alias = near.sources[near.end].alias
    left, _ = near.resolve(ColumnUse((name,), (where,)), tokens)
    inside = replace(near, end=near.end + 1, hidden=frozenset())
    right, _ = inside.resolve(ColumnUse((alias, name), (where, where)), entry.tokens)
    return left, right
