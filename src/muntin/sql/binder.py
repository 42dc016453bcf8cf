"""The select list and the conditions of a select: from tokens to bound expressions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import pyarrow as pa
from sqlglot import exp

from muntin.plan.expression import ColumnRef, Comparison, Expression, OutputColumn, Predicate, quote
from muntin.sql.conjuncts import split_conjuncts, unwrap
from muntin.sql.lexer import Tokens, is_name, is_symbol, word
from muntin.sql.nested_selects import is_stand_in
from muntin.sql.scope import NameScope
from muntin.sql.shape import SelectParts
from muntin.sql.typecheck import Condition, typed
from muntin.sql.types import RESERVED
from muntin.sql.writer import Draft, Writer, plain_text


def items_of(shape: SelectParts, tree: exp.Select) -> Iterator[tuple[Tokens, exp.Expression]]:
    """Return the items of the select list, as tokens and as sqlglot reads them."""
    if len(shape.items) != len(tree.expressions):
        raise shape.plain.error(
            shape.plain.start,
            "the select list cannot be understood",
            "Separate its items by commas",
        )
    return zip(shape.items, tree.expressions, strict=True)


def outputs_of(
    shape: SelectParts, tree: exp.Select, writer: Writer, scope: NameScope
) -> Iterator[tuple[str, Draft]]:
    """Yield the names and expressions of the select list, stars spelled out."""
    for tokens, item in items_of(shape, tree):
        star = item.this if isinstance(item, exp.Column) else item
        if isinstance(star, exp.Star):
            yield from _star(tokens, star, scope)
            continue
        body, name = cut_alias(tokens, item)
        if any(not isinstance(found.parent, exp.Count) for found in item.find_all(exp.Star)):
            raise tokens.error(tokens.start, "* can only stand alone", "List the columns instead")
        draft = writer.write(unwrap(body), scope)
        name = name or default_name(body, draft)
        if name.casefold() in RESERVED:
            raise tokens.error(
                tokens[-1],
                f"a column of the result cannot be called {name!r}",
                "Results use that name; give it an alias",
            )
        yield name, draft


def _star(tokens: Tokens, star: exp.Star, scope: NameScope) -> Iterator[tuple[str, Draft]]:
    if any(star.args.values()) or len(tokens) not in {1, 3}:
        raise tokens.error(
            tokens.start,
            "* cannot be changed by EXCLUDE, REPLACE or RENAME",
            "List the columns instead",
        )
    columns = scope.columns()
    if len(tokens) == 3:
        place = scope.find(tokens[0].text)
        if place is None:
            aliases = ", ".join(source.alias for source in scope.sources)
            raise tokens.error(
                tokens[0], f"there is no {tokens[0].text!r} in FROM", f"FROM has {aliases}"
            )
        columns = [ColumnRef(place, column) for column in scope.sources[place].schema.names]
    for reference in columns:
        yield reference.column, Draft(*scope.value_of(reference, len(tokens)), tokens)


def cut_alias(tokens: Tokens, item: exp.Expression) -> tuple[Tokens, str]:
    """Return the tokens of an item without its alias, and the alias."""
    if not isinstance(item, exp.Alias):
        return tokens, ""
    alias = str(item.alias)
    if len(tokens) > 2 and is_symbol(tokens[1], ":") and tokens[0].text == alias:
        return tokens.part(2), alias
    if len(tokens) < 2 or tokens[-1].text != alias:
        raise tokens.error(
            tokens.start, "this alias cannot be understood", "Write expression AS name"
        )
    end = len(tokens) - (2 if word(tokens[-2]) == "AS" else 1)
    return tokens.part(0, end), alias


def default_name(body: Tokens, draft: Draft) -> str:
    """Return the name of an item without alias: a column's own, or the text."""
    own = not is_stand_in(body)
    if own and len(body) == 1 and is_name(body[0]) and draft.references:
        return draft.references[0].column
    reference = draft.references[0] if own and len(draft.references) == 1 else None
    if reference is not None and draft.sql == quote(reference.flat):
        return reference.column
    return plain_text(body)


def name_outputs(outputs: Sequence[tuple[str, Expression]]) -> tuple[OutputColumn, ...]:
    """Return the columns with unique names; repeated ones get numbers, as in DuckDB: x, x_1."""
    taken: set[str] = set()
    counts: dict[str, int] = {}
    columns = []
    for name, expression in outputs:
        unique = name
        while unique.casefold() in taken:
            counts[name.casefold()] = counts.get(name.casefold(), 0) + 1
            unique = f"{name}_{counts[name.casefold()]}"
        taken.add(unique.casefold())
        columns.append(OutputColumn(unique, expression))
    return tuple(columns)


class Conditions(NamedTuple):
    """The conjuncts of every USING and ON, and those of WHERE."""

    on: Sequence[Condition]
    where: Sequence[Condition]

    @property
    def all(self) -> list[Condition]:
        """All conjuncts."""
        return [*self.on, *self.where]

    def having(self, more: Iterable[Condition]) -> Conditions:
        """Return them with more conjuncts of WHERE."""
        return Conditions(self.on, [*self.where, *more])

    def predicates(self, types: Mapping[str, pa.DataType]) -> OnAndWhere:
        """Return the predicates of both, given the types of all expressions."""
        on, where = (tuple(predicate_of(one, types) for one in part) for part in self)
        return on, where


OnAndWhere: TypeAlias = tuple[tuple[Predicate, ...], tuple[Predicate, ...]]
"""The predicates of ON and of WHERE."""


def conditions_of(
    shape: SelectParts, using: Sequence[Condition], writer: Writer, scope: NameScope
) -> Conditions:
    """Return the conjuncts of every ON, those of USING before them, and of WHERE."""
    on = [*using, *_on_conditions(shape, writer, scope)]
    return Conditions(
        on, [] if shape.where is None else list(split_condition(shape.where, writer, scope))
    )


def _on_conditions(shape: SelectParts, writer: Writer, scope: NameScope) -> Iterator[Condition]:
    start = 0
    for place, entry in enumerate(shape.entries):
        start = place if entry.join in {"", ","} else start
        if entry.on is not None:
            near = replace(scope, end=place + 1, start=start, hidden=scope.hidden - {place})
            for condition in split_condition(entry.on, writer, near):
                yield replace(condition, entry=place)


def split_condition(tokens: Tokens, writer: Writer, scope: NameScope) -> Iterator[Condition]:
    """Yield the conjuncts of a condition."""
    for conjunct in split_conjuncts(tokens):
        if conjunct.sides is None:
            yield Condition(writer.write(conjunct.tokens, scope))
            continue
        left, right = (writer.write(side, scope) for side in conjunct.sides)
        references = tuple(dict.fromkeys(left.references + right.references))
        whole = Draft(f"{left.sql} {conjunct.operator} {right.sql}", references, conjunct.tokens)
        yield Condition(
            whole,
            conjunct.operator,
            tuple(writer.write(unwrap(side), scope) for side in conjunct.sides),
        )


def predicate_of(condition: Condition, types: Mapping[str, pa.DataType]) -> Predicate:
    """Return the predicate of a condition whose types are known.

    What is neither true nor false nor a number is refused.
    """
    whole = typed(condition.whole, types)
    if condition.operator:
        left, right = (typed(side, types) for side in condition.sides)
        _check_comparable(left, right, condition.whole.tokens)
        return Predicate(whole, Comparison(condition.operator, left, right))
    if pa.types.is_boolean(whole.type):
        return Predicate(whole)
    if not (
        pa.types.is_integer(whole.type)
        or pa.types.is_floating(whole.type)
        or pa.types.is_decimal(whole.type)
    ):
        tokens = condition.whole.tokens
        fact = f"the condition {plain_text(tokens)} has type {whole.type}, not boolean"
        raise tokens.error(tokens.start, fact, "Compare it with something")
    return Predicate(Expression(f"CAST({whole.sql} AS BOOLEAN)", whole.references, pa.bool_()))


def _check_comparable(left: Expression, right: Expression, tokens: Tokens) -> None:
    """Refuse to compare times with numbers.

    DuckDB accepts it and fails when rows arrive.
    """
    temporal = [pa.types.is_temporal(side.type) for side in (left, right)]
    if temporal[0] != temporal[1] and left.references and right.references:
        other = right.type if temporal[0] else left.type
        if (
            pa.types.is_boolean(other)
            or pa.types.is_integer(other)
            or pa.types.is_floating(other)
            or pa.types.is_decimal(other)
        ):
            fact = f"{plain_text(tokens)} compares {left.type} with {right.type}"
            raise tokens.error(
                tokens.start,
                fact,
                "Make both sides times or both numbers, for example with epoch_us(ts)",
            )
