"""GROUP BY, HAVING and a select list with aggregates.

The rows below the grouping carry the keys and the arguments of the aggregates, each as one column.
The select list and HAVING are the user's text with keys and aggregates replaced by columns of the
groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from muntin.aggregates.function import Arguments
from muntin.aggregates.types import is_ordered
from muntin.plan.expression import ColumnRef, OutputColumn, quote
from muntin.plan.node import Node
from muntin.plan.nodes import Aggregate, GroupBy
from muntin.sql.aggregates import Call, find_calls, is_aggregate, refuse_aggregates, result_type
from muntin.sql.binder import cut_alias, default_name, items_of, name_outputs, predicate_of
from muntin.sql.conjuncts import unwrap
from muntin.sql.group_nesting import GroupNesting, scope_above
from muntin.sql.group_writer import GroupWriter
from muntin.sql.grouping_sets import KeySet, is_grouping, keys_first, read_sets
from muntin.sql.lexer import Tokens, is_number, word
from muntin.sql.scope import NameScope
from muntin.sql.shape import SelectParts
from muntin.sql.typecheck import Condition, find_types, typed
from muntin.sql.types import RESERVED
from muntin.sql.window_calls import union_of
from muntin.sql.writer import Draft, Writer, plain_text


@dataclass(frozen=True)
class _Item:
    """An item of the select list: the expression, and its name if it was given one."""

    body: Tokens
    alias: str


@dataclass(frozen=True)
class _Bound:
    """A call of an aggregate with what it is over, and the key it goes by."""

    call: Call
    argument: Draft | None
    key: Draft | None

    @property
    def drafts(self) -> list[Draft]:
        """Return the columns that rows below must carry for it."""
        return [draft for draft in (self.argument, self.key) if draft is not None]


@dataclass
class Grouping:
    """The grouping of one select, from its parts to its node.

    First :meth:`columns`, then :meth:`node`.
    """

    shape: SelectParts
    tree: exp.Select
    writer: Writer
    scope: NameScope
    nesting: GroupNesting
    _items: list[_Item] = field(default_factory=list)
    _more: list[_Item] = field(default_factory=list)
    _keys: list[Draft] = field(default_factory=list)
    _sets: list[list[int]] = field(default_factory=list)
    _calls: list[_Bound] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """Return the names of the items of the select list."""
        items = [_Item(*cut_alias(*item)) for item in items_of(self.shape, self.tree)]
        return [item.alias or plain_text(item.body) for item in items]

    def also(self, name: str, tokens: Tokens) -> None:
        """Add an item behind the select list; before :meth:`columns`."""
        self._more.append(_Item(tokens, name))

    def columns(self) -> list[Draft]:
        """Return the columns of the rows below: keys, then the arguments of aggregates."""
        self._items = list(self._read_items())
        self._read_keys()
        more = [item.body for item in self._more]
        items = [*self.nesting.operands, *(item.body for item in self._items)]
        for tokens in (*items, self.shape.having, *more):
            for call in find_calls(tokens) if tokens is not None else ():
                key = None if call.key is None else self.writer.write(unwrap(call.key), self.scope)
                self._calls.append(_Bound(call, self._argument(call), key))
        return [*self._keys, *self._arguments()] or [Draft("1", (), self.shape.plain)]

    @property
    def by_time(self) -> Call | None:
        """A call for which the rows below must carry their order, such as FIRST."""
        return next((bound.call for bound in self._calls if bound.call.function.by_time), None)

    def _arguments(self) -> list[Draft]:
        """Return the different arguments and keys of the aggregates."""
        return list({draft.sql: draft for bound in self._calls for draft in bound.drafts}.values())

    def _read_items(self) -> Iterator[_Item]:
        for tokens, item in items_of(self.shape, self.tree):
            star = item.this if isinstance(item, exp.Column) else item
            if isinstance(star, exp.Star):
                raise tokens.error(
                    tokens.start,
                    "* cannot stand beside aggregates or GROUP BY",
                    "List the columns instead",
                )
            yield _Item(*cut_alias(tokens, item))

    def _read_keys(self) -> None:
        """Read the keys, and which of them each grouping goes by.

        Expressions, names and places of items, or ALL items without aggregates.
        """
        places: dict[str, int] = {}
        for keys in self._key_sets():
            drafts = {draft.sql: draft for draft in map(self._checked_key, keys)}
            self._keys += (draft for sql, draft in drafts.items() if sql not in places)
            places = {draft.sql: place for place, draft in enumerate(self._keys)}
            self._sets.append(sorted(places[sql] for sql in drafts))

    def _key_sets(self) -> list[KeySet]:
        tokens = self.shape.group
        if tokens is None:
            return [()]
        if len(tokens) == 1 and word(tokens[0]) == "ALL":
            bodies = [item.body for item in self._items]
            return [tuple(body for body in bodies if not _has_aggregate(body))]
        return read_sets(tokens)

    def _checked_key(self, tokens: Tokens) -> Draft:
        refuse_aggregates(tokens, "in GROUP BY", "Aggregate in a sub-select in FROM first")
        return self._key(unwrap(tokens))

    def _key(self, part: Tokens) -> Draft:
        body = part
        if len(part) == 1 and is_number(part[0]):
            if not part[0].text.isdecimal() or not 1 <= int(part[0].text) <= len(self._items):
                fact = f"the select list has no item {part[0].text}"
                raise part.error(part[0], fact, f"It has {len(self._items)}; name the key instead")
            body = self._items[int(part[0].text) - 1].body
        elif len(part) == 1 and not self._is_column(part):
            named = [
                item for item in self._items if item.alias.casefold() == part[0].text.casefold()
            ]
            body = named[0].body if named else part
        if body is not part:
            refuse_aggregates(
                body,
                "in GROUP BY",
                f"{part[0].text} of the select list is one; group by something else",
            )
        return self.writer.write(unwrap(body), self.scope)

    def _is_column(self, part: Tokens) -> bool:
        name = part[0].text.casefold()
        return any(
            name == column.casefold()
            for source in self.scope.sources
            for column in source.schema.names
        )

    def _argument(self, call: Call) -> Draft | None:
        """Return the argument of an aggregate.

        With FILTER it is NULL where the condition does not hold.
        """
        value = (
            Draft("1", (), call.tokens)
            if call.argument is None
            else self.writer.write(unwrap(call.argument), self.scope)
        )
        if call.separator:
            value = replace(value, sql=f"CAST({value.sql} AS VARCHAR)")
        if call.condition is None:
            return None if call.argument is None else value
        condition = self.writer.write(unwrap(call.condition), self.scope)
        references = tuple(dict.fromkeys(condition.references + value.references))
        return Draft(f"CASE WHEN {condition.sql} THEN {value.sql} END", references, call.tokens)

    # -- above the groups -------------------------------------------------------------------------

    def node(
        self,
        rows: tuple[Callable[[tuple[OutputColumn, ...]], Node], Callable[[Node], Node]],
        columns: Sequence[OutputColumn],
        order: Sequence[OutputColumn] = (),
    ) -> Node:
        """Return the node over the rows that ``rows`` makes, and copies.

        ``columns`` are theirs in the order of :meth:`columns`; ``order`` are those that order rows.
        """
        columns = [*columns, *order]
        last = tuple(range(len(columns) - len(order), len(columns)))
        places = {
            column.expression.sql: place for place, column in reversed(list(enumerate(columns)))
        }
        aggregates = []
        for bound in self._calls:
            call, key = bound.call, bound.key
            place = None if bound.argument is None else places[bound.argument.sql]
            kind = result_type(call, None if place is None else columns[place].expression.type)
            function = "count" if place is None else call.function.kept_as or call.function.name
            text = plain_text(call.tokens)
            by = last if call.function.by_time else ()
            by = by if key is None else (self._key_place(call, places[key.sql], columns), *by)
            aggregates.append(
                Aggregate(function, place, kind, call.distinct, call.fraction, by, text)
            )
        shown: dict[Aggregate, Aggregate] = {}
        for aggregate in aggregates:
            shown.setdefault(replace(aggregate, text=""), aggregate)
        order_of = {aggregate: number for number, aggregate in enumerate(shown)}
        numbers = [
            order_of[replace(aggregate, text="")] for aggregate in aggregates[: len(self._calls)]
        ]
        make, copy = rows
        below = make(tuple(columns))
        copies = [below, *(copy(below) for _ in self._sets[1:])]
        groups = [
            self._grouped(each, keys, tuple(shown.values()))
            for each, keys in zip(copies, self._sets, strict=True)
        ]
        return union_of(
            [
                self._shown(group, columns, keys, numbers)
                for group, keys in zip(groups, self._sets, strict=True)
            ]
        )

    @staticmethod
    def _grouped(rows: Node, keys: Sequence[int], aggregates: tuple[Aggregate, ...]) -> GroupBy:
        """Return rows grouped by some of the keys, without a select list."""
        rows, aggregates = keys_first(rows, keys, aggregates)
        if not aggregates and not keys:  # shows that the group exists
            aggregates = (Aggregate("count", None, pa.int64(), text="COUNT(*)"),)
        return GroupBy(rows, len(keys), aggregates, None, ())

    def _shown(
        self,
        group: GroupBy,
        columns: Sequence[OutputColumn],
        kept: Sequence[int],
        numbers: Sequence[int],
    ) -> Node:
        """Return a grouping with its HAVING and select list."""
        written = GroupWriter(
            self.writer, self.scope, self._keys, columns, kept, iter(numbers), self._key
        )
        joins = self.nesting.joins(written.write, self._key_columns(columns, kept))
        written.writer = replace(self.writer, values={**self.writer.values, **joins.values})
        outputs = [
            (item.alias or self._name(item.body), written.write(item.body), item)
            for item in self._items
        ]
        having = None
        if self.shape.having is not None:
            having = Condition(written.write(unwrap(self.shape.having)))
        outputs += [(item.alias, written.write(item.body), item) for item in self._more]
        conditions = [*joins.conditions, *([having] if having else [])]
        above = scope_above(group, joins)
        types = find_types([draft for _, draft, _ in outputs], conditions, above)
        for name, draft, _ in outputs:
            if name.casefold() in RESERVED:
                fact = f"a column of the result cannot be called {name!r}"
                raise draft.tokens.error(
                    draft.tokens.start, fact, "Results use that name; give it an alias"
                )
        select = name_outputs([(name, typed(draft, types)) for name, draft, _ in outputs])
        predicate = None if having is None else predicate_of(having, types)
        if joins.joins:
            on = [predicate_of(one, types) for one in joins.conditions]
            where = () if predicate is None else (predicate,)
            return self.nesting.over(group, joins, (on, where), select)
        condition = None if predicate is None else predicate.expression
        return replace(group, having=condition, select=select)

    def _key_columns(
        self, columns: Sequence[OutputColumn], kept: Sequence[int]
    ) -> dict[ColumnRef, ColumnRef]:
        """Return the keys of a grouping that are columns of the rows below."""
        keys = {place: self._keys[place] for place in kept}
        return {
            key.references[0]: ColumnRef(0, columns[place].name)
            for place, key in keys.items()
            if len(key.references) == 1 and key.sql == quote(key.references[0].flat)
        }

    @staticmethod
    def _key_place(call: Call, place: int, columns: Sequence[OutputColumn]) -> int:
        """Return the place of a key or second argument, if it is of a type that can be one."""
        kind = columns[place].expression.type
        if call.function.arguments is Arguments.PAIR:
            if call.key is not None and not call.function.accepts(kind):
                fact = f"{plain_text(call.tokens)} is over the type {kind}, which is not supported"
                raise call.key.error(call.key.start, fact, "Cast it to a number")
            return place
        if call.key is not None and not is_ordered(kind):
            fact = f"{plain_text(call.tokens)} goes by the type {kind}, which is not supported"
            raise call.key.error(call.key.start, fact, "Go by a number, a text or a time")
        return place

    def _name(self, body: Tokens) -> str:
        """Return the name of an item without alias: a column's own, or the text."""
        if _has_aggregate(body) or any(is_grouping(body, at) for at in range(len(body))):
            return plain_text(body)
        return default_name(body, self.writer.write(unwrap(body), self.scope))


def _has_aggregate(tokens: Tokens) -> bool:
    return any(is_aggregate(tokens, at) for at in range(len(tokens)))
