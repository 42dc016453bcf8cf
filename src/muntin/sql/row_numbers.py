"""ROW_NUMBER, RANK and DENSE_RANK with OVER and QUALIFY: from tokens to numbered rows.

A call is replaced by a name, that of a column of one more source; the select list and QUALIFY are
then expressions like any other. Below them, rows carry the columns that they read, and what the
calls partition and order by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa
from sqlglot import Token, TokenType

from muntin.model.window import Unbounded
from muntin.plan.column_rename import renamed, renamed_predicate
from muntin.plan.expression import ColumnRef, Expression, OutputColumn, Predicate, column_expression
from muntin.plan.node import Node
from muntin.plan.nodes import Project, Scan
from muntin.plan.top_n import RowNumbering, SortKey, TopN
from muntin.sql.binder import Conditions, name_outputs, predicate_of, split_condition
from muntin.sql.conjuncts import unwrap
from muntin.sql.lexer import Tokens, closing, is_symbol, split_commas, top_level, word
from muntin.sql.order_by import OrderItem, check_ordered, read_item, tie_keys
from muntin.sql.refusals import is_numbering
from muntin.sql.scope import NameScope
from muntin.sql.shape import SelectParts
from muntin.sql.syntax import ColumnUse
from muntin.sql.typecheck import find_types, typed
from muntin.sql.writer import Draft, Writer, plain_text

_SOURCE = "#numbers"
_HINT = "Write ROW_NUMBER() OVER (PARTITION BY ... ORDER BY ...)"


@dataclass(frozen=True)
class NumberCall:
    """A call: its function, what it partitions by and orders by, and its text."""

    numbering: RowNumbering
    keys: tuple[Tokens, ...]
    items: tuple[OrderItem, ...]
    text: str


@dataclass(frozen=True)
class NumberedSelect:
    """A select whose calls are replaced by names; ``shape`` has those."""

    shape: SelectParts
    calls: tuple[NumberCall, ...]
    uses: Mapping[int, ColumnUse]

    def names(self, outputs: Sequence[tuple[str, Draft]]) -> list[tuple[str, Draft]]:
        """Return outputs, calls without an alias under their text."""
        texts = {f"#n{number}": call.text for number, call in enumerate(self.calls)}
        return [(texts.get(name, name), draft) for name, draft in outputs]

    def scope(self, scope: NameScope) -> NameScope:
        """Return a scope that has the numbers too; ``*`` does not stand for them."""
        schema = pa.schema([(f"#n{number}", pa.int64()) for number in range(len(self.calls))])
        source = Scan(_SOURCE, _SOURCE, stored=True, window=Unbounded(), schema=schema)
        place = len(scope.sources)
        hidden = {ColumnRef(place, name) for name in schema.names}
        sources = (*scope.sources, source)
        return replace(scope, sources=sources, end=place + 1, merged=scope.merged | hidden)

    def drafts(self, writer: Writer, scope: NameScope) -> list[Draft]:
        """Return what calls partition and order by, call by call."""
        parts = [
            part
            for call in self.calls
            for part in (*call.keys, *(item.tokens for item in call.items))
        ]
        return [writer.write(unwrap(part), scope) for part in parts]


def read_numbers(shape: SelectParts) -> NumberedSelect | None:
    """Return a select with its calls replaced; None if it has none."""
    calls: dict[str, tuple[int, NumberCall]] = {}
    uses: dict[int, ColumnUse] = {}

    def replaced(tokens: Tokens) -> Tokens:
        items: list[Token] = []
        index = 0
        while index < len(tokens):
            if not is_numbering(tokens, index):
                items.append(tokens[index])
                index += 1
                continue
            token, (call, end) = tokens[index], _read_call(tokens, index)
            number, _ = calls.setdefault(call.text.casefold(), (len(calls), call))
            uses[token.start] = ColumnUse((_SOURCE, f"#n{number}"), (token.start, token.start))
            where = token.line, token.col, token.start, token.end
            items.append(Token(TokenType.IDENTIFIER, f"#n{number}", *where))
            index = end
        return replace(tokens, items=tuple(items))

    select = tuple(map(replaced, shape.items))
    qualify = None if shape.qualify is None else replaced(shape.qualify)
    aliases = {
        item[-1].text.casefold(): uses[item[0].start]
        for item in select
        if 1 < len(item) <= 3 and item[0].start in uses
    }
    for token in qualify or ():
        if token.start not in uses and token.text.casefold() in aliases:
            uses[token.start] = ColumnUse(
                aliases[token.text.casefold()].names, (token.start, token.start)
            )
    if not calls:
        if shape.qualify is not None:
            fact = "QUALIFY needs a window function"
            raise shape.qualify.error(shape.qualify.start, fact, "Write the condition in WHERE")
        return None
    _refuse_beside(shape)
    found = tuple(call for _, call in calls.values())
    return NumberedSelect(replace(shape, items=select, qualify=qualify), found, uses)


def _refuse_beside(shape: SelectParts) -> None:
    """Raise on what a select cannot have beside row numbers."""
    clauses = (
        ("GROUP BY", shape.group),
        ("HAVING", shape.having),
        ("ORDER BY", shape.order),
    )
    for name, part in clauses:
        if part is not None:
            hint = "Put one of them into a sub-select in FROM"
            fact = f"{name} beside a window function is not supported"
            raise part.error(part.start, fact, hint)
    if shape.distinct:
        fact = "DISTINCT beside a window function is not supported"
        raise shape.plain.error(shape.plain.start, fact, "Put one of them into a sub-select")


def _read_call(tokens: Tokens, start: int) -> tuple[NumberCall, int]:
    """Return the call that begins at a place, and where it ends."""
    opening = start + 4
    end = closing(tokens, opening)
    if not is_symbol(tokens[start + 2], ")") or end is None:
        raise tokens.error(tokens[start], f"{tokens[start].text} takes no arguments", _HINT)
    inside = tokens.part(opening + 1, end)
    words = {word(inside[at]): at for at in reversed(top_level(inside))}
    by, order = words.get("PARTITION BY"), words.get("ORDER BY")
    if order is None or (by not in {None, 0}) or (by is None and order != 0):
        raise inside.error(inside.start, "the numbers of rows need an order", _HINT)
    for name in ("ROWS", "RANGE", "GROUPS"):
        if name in words and words[name] > order + 1:
            fact = f"{tokens[start].text} takes no frame"
            raise inside.error(inside[words[name]], fact, f"Leave out {name} ...")
    keys = () if by is None else tuple(split_commas(inside.part(1, order)))
    items = tuple(map(read_item, split_commas(inside.part(order + 1))))
    numbering = RowNumbering(word(tokens[start]).lower())
    text = plain_text(tokens.part(start, end + 1))
    return NumberCall(numbering, keys, items, text), end + 1


class NumberedParts(NamedTuple):
    """A select with numbers, all types known; ``by`` is what its calls partition and order by."""

    outputs: tuple[OutputColumn, ...]
    qualify: tuple[Predicate, ...]
    by: tuple[OutputColumn, ...]

    @property
    def expressions(self) -> list[Expression]:
        """What stands above the numbers."""
        return [
            *(output.expression for output in self.outputs),
            *(predicate.expression for predicate in self.qualify),
        ]


def read_columns(parts: NumberedParts, scope: NameScope) -> dict[ColumnRef, OutputColumn]:
    """Return the columns of sources that the select list and QUALIFY read, for the rows below."""
    references = dict.fromkeys(ref for one in parts.expressions for ref in one.references)
    return {
        ref: OutputColumn(
            f"#c{ref.flat}",
            column_expression(ref, scope.sources[ref.source].schema.field(ref.column).type),
        )
        for ref in references
        if ref.source < len(scope.sources)
    }


def bind_numbered(
    select: NumberedSelect,
    outputs: Sequence[tuple[str, Draft]],
    names: tuple[Writer, NameScope],
    conditions: Conditions,
    below: tuple[Sequence[OutputColumn], Callable[..., Node]],
) -> Node:
    """Return the node of a select with numbers.

    ``below`` has the columns that order rows, and makes the rows that satisfy predicates.
    """
    (writer, plain), (ties, make) = names, below
    scope = select.scope(plain)
    qualify = select.shape.qualify
    above = [] if qualify is None else list(split_condition(qualify, writer, scope))
    by = select.drafts(writer, plain)
    drafts = [*(draft for _, draft in outputs), *by]
    types = find_types(drafts, [*conditions.all, *above], scope)
    parts = NumberedParts(
        name_outputs([(name, typed(draft, types)) for name, draft in select.names(outputs)]),
        tuple(predicate_of(one, types) for one in above),
        tuple(OutputColumn(f"#by{at}", typed(draft, types)) for at, draft in enumerate(by)),
    )
    read = read_columns(parts, plain)
    columns = (*read.values(), *parts.by, *ties)
    rows = make(predicates=conditions.predicates(types), select=columns)
    return numbered_node(select, parts, read, rows, len(ties))


def numbered_node(
    select: NumberedSelect,
    parts: NumberedParts,
    read: Mapping[ColumnRef, OutputColumn],
    rows: Node,
    ties: int,
) -> Node:
    """Return the select over its rows: those that are read, what calls go by, the order of rows.

    The rule ``limit_numbers`` of the planner bounds the numbers by what QUALIFY states.
    """
    names = {ref: ColumnRef(0, column.name) for ref, column in read.items()}
    at, node = len(read), rows
    for number, call in enumerate(select.calls):
        places = range(at, at + len(call.keys) + len(call.items))
        at = places.stop
        keys, by = tuple(places[: len(call.keys)]), places[len(call.keys) :]
        order = [
            SortKey(one, item.descending, item.nulls_first)
            for one, item in zip(by, call.items, strict=True)
        ]
        for key, item in zip(order, call.items, strict=True):
            check_ordered(rows.schema.field(key.column).type, item.tokens)
        rest = tie_keys(rows.schema if ties else node.schema, set(by), len(node.schema), ties)
        every = tuple(range(len(node.schema)))
        node = TopN(
            node, keys, (*order, *rest), len(order), None, 0, every, call.numbering, f"#n{number}"
        )
    numbers = {
        ref: ColumnRef(0, ref.column)
        for expression in parts.expressions
        for ref in expression.references
        if ref not in names
    }
    names.update(numbers)
    where = tuple(renamed_predicate(predicate, names) for predicate in parts.qualify)
    outputs = tuple(
        OutputColumn(output.name, renamed(output.expression, names)) for output in parts.outputs
    )
    return Project(node, where, outputs)
