"""ORDER BY, LIMIT and OFFSET: from tokens to a top-n above the rows of a select."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from muntin.aggregates.types import is_ordered
from muntin.plan.node import Node
from muntin.plan.top_n import SortKey, TopN
from muntin.sql.lexer import Tokens, is_number, split_commas, top_level, word
from muntin.sql.shape import SelectParts
from muntin.sql.writer import plain_text

ORDER_WORDS = ("ORDER BY", "LIMIT", "OFFSET")
ORDER_COLUMN = "#order"
"""What the names of columns begin with that rows carry for their order only."""
_HINT = "Write ORDER BY expression [ASC | DESC] [NULLS FIRST | LAST], ... LIMIT n [OFFSET m]"
_ENDLESS = "Add LIMIT n, or EMIT SNAPSHOT with EVERY, whose rows are in order"


@dataclass(frozen=True)
class OrderItem:
    """One expression of ORDER BY, and its direction."""

    tokens: Tokens
    descending: bool
    nulls_first: bool

    def find(self, names: Sequence[str]) -> int | None:
        """Return the item of the select list that is meant by its number or by its name."""
        if len(self.tokens) != 1:
            return None
        (token,) = self.tokens
        if is_number(token):
            if not token.text.isdecimal() or not 1 <= int(token.text) <= len(names):
                fact = f"the select list has no item {token.text}"
                raise self.tokens.error(token, fact, f"It has {len(names)}; name one instead")
            return int(token.text) - 1
        folded = [name.casefold() for name in names]
        return folded.index(token.text.casefold()) if token.text.casefold() in folded else None


@dataclass(frozen=True)
class Ordering:
    """What ORDER BY, LIMIT and OFFSET say; without LIMIT rows are only sorted."""

    items: tuple[OrderItem, ...]
    limit: int | None
    offset: int
    tokens: Tokens

    def find(self, names: Sequence[str]) -> list[int]:
        """Return the columns of a result that items name, where only those can be named."""
        found = []
        for item in self.items:
            place = item.find(names)
            if place is None:
                fact = f"ORDER BY {plain_text(item.tokens)} names no column of the result"
                hint = f"Behind DISTINCT and set operators, name one of {', '.join(names)}"
                raise item.tokens.error(item.tokens.start, fact, hint)
            found.append(place)
        return found

    def over(self, rows: Node, places: Sequence[int], visible: int, ties: int) -> TopN:
        """Return the first rows.

        ``places`` are the columns to order by and ``visible`` the number of columns that users see;
        the last ``ties`` columns order rows that are equal otherwise, all columns if there are
        none.
        """
        keys = [
            SortKey(place, item.descending, item.nulls_first)
            for item, place in zip(self.items, places, strict=True)
        ]
        for item, key in zip(self.items, keys, strict=True):
            check_ordered(rows.schema.field(key.column).type, item.tokens)
        return TopN(
            rows,
            (),
            (*keys, *tie_keys(rows.schema, {key.column for key in keys}, visible, ties)),
            len(keys),
            self.limit,
            self.offset,
            tuple(range(visible)),
        )


def order_places(ordering: Ordering | None, names: Sequence[str]) -> list[tuple[OrderItem, int]]:
    """Return the column of each item of ORDER BY; those that are not selected come behind."""
    found: list[tuple[OrderItem, int]] = []
    following = len(names)
    for item in () if ordering is None else ordering.items:
        place = item.find(names)
        found.append((item, following if place is None else place))
        following += place is None
    return found


def first_of(node: Node, ordering: Ordering) -> Node:
    """Return the first rows of a node, by columns of its own."""
    names = node.schema.names
    return ordering.over(node, ordering.find(names), len(names), 0)


def tie_keys(schema: pa.Schema, taken: set[int], visible: int, ties: int) -> list[SortKey]:
    """Return the keys that order rows with equal sort keys.

    The order of rows, in the last ``ties`` columns, or else all columns that have an order.
    """
    if ties:
        return [SortKey(place, hidden=True) for place in range(len(schema) - ties, len(schema))]
    return [
        SortKey(place)
        for place in range(visible)
        if place not in taken and is_ordered(schema.field(place).type)
    ]


def read_ordering(shape: SelectParts, *, sorts: bool) -> Ordering | None:
    """Return the ordering of a select; one that only ``sorts`` needs no LIMIT."""
    if shape.order is None and shape.limit is None and shape.offset is None:
        return None
    where = next(part for part in (shape.order, shape.limit, shape.offset) if part is not None)
    if shape.order is None:
        fact = "LIMIT without ORDER BY has no order to take the first rows of"
        raise where.error(where.start, fact, _HINT)
    if shape.limit is None and not sorts:
        raise where.error(where.start, "ORDER BY without LIMIT sorts rows that never end", _ENDLESS)
    items = tuple(read_item(part) for part in split_commas(shape.order))
    limit = None if shape.limit is None else _read_count(shape.limit, "LIMIT")
    offset = 0 if shape.offset is None else _read_count(shape.offset, "OFFSET")
    return Ordering(items, limit, offset, where)


def cut_ordering(tokens: Tokens) -> tuple[Tokens, Tokens]:
    """Return selects with set operators without their ordering, and the ordering."""
    places = [at for at in top_level(tokens) if at and word(tokens[at]) in ORDER_WORDS]
    cut = places[0] if places else len(tokens)
    return tokens.part(0, cut), tokens.part(cut)


def read_item(tokens: Tokens) -> OrderItem:
    """Return one expression of ORDER BY with its direction."""
    body, nulls_first, descending = tokens, False, False
    if len(body) > 2 and word(body[-2]) == "NULLS" and word(body[-1]) in {"FIRST", "LAST"}:
        nulls_first = word(body[-1]) == "FIRST"
        body = body.part(0, len(body) - 2)
    if len(body) > 1 and word(body[-1]) in {"ASC", "DESC"}:
        descending = word(body[-1]) == "DESC"
        body = body.part(0, len(body) - 1)
    if not len(body):
        raise tokens.error(tokens.start, "an expression is missing here", _HINT)
    if len(body) == 1 and word(body[0]) == "ALL":
        raise tokens.error(tokens.start, "ORDER BY ALL is not supported", "List the columns")
    return OrderItem(body, descending, nulls_first)


def _read_count(tokens: Tokens, clause: str) -> int:
    if len(tokens) != 1 or not is_number(tokens[0]) or not tokens[0].text.isdecimal():
        raise tokens.error(tokens.start, f"{clause} needs a whole number", f"Write {clause} 10")
    return int(tokens[0].text)


def check_ordered(kind: pa.DataType, tokens: Tokens) -> None:
    """Raise if values of a type have no order."""
    if not is_ordered(kind):
        fact = f"ORDER BY {plain_text(tokens)} goes by the type {kind}, which is not supported"
        raise tokens.error(tokens.start, fact, "Go by a number, a text or a time")
