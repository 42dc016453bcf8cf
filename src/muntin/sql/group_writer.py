"""Expressions above a grouping: the user's text, keys and aggregates as columns of the groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from muntin.plan.expression import ColumnRef, OutputColumn, quote
from muntin.sql.aggregates import Call, find_calls, is_aggregate
from muntin.sql.conjuncts import unwrap
from muntin.sql.grouping_sets import grouping_arguments, grouping_value, is_grouping, null_of
from muntin.sql.lexer import Tokens, is_number, is_symbol, is_text, word
from muntin.sql.scope import NameScope
from muntin.sql.writer import Draft, Writer, end_of, join_pieces, plain_text

_KEYS = "Name it in GROUP BY, or use an aggregate such as MIN"
_EDGES = {"(", ")", ","}
_LOOSE = {"=", "==", "<>", "!=", "<", "<=", ">", ">=", "AND", "OR", "NOT", "IS", "IN", "BETWEEN"}
_LOOSE |= {"CASE", "WHEN", "THEN", "ELSE", "END"}


@dataclass
class GroupWriter:
    """Writes expressions over groups: keys and aggregates become columns, others are refused.

    ``writer``, ``scope`` and ``keys`` belong to the rows below the groups, ``columns`` are theirs;
    ``kept`` are the places of the keys that this grouping goes by, the others are NULL.
    ``numbers`` has the number of the aggregate of each call, in the order of the text. ``key_of``
    reads a key as GROUP BY does.
    """

    writer: Writer
    scope: NameScope
    keys: Sequence[Draft]
    columns: Sequence[OutputColumn]
    kept: Sequence[int]
    numbers: Iterator[int]
    key_of: Callable[[Tokens], Draft]

    @cached_property
    def _longest(self) -> int:
        """Return the most tokens that a part equal to a key can have; ``a.name`` counts three."""
        lengths = [len(key.tokens) for key in self.keys]
        return max((3 * length for length in lengths if length > 1), default=0)

    def write(self, tokens: Tokens) -> Draft:
        """Return the expression over groups."""
        body = unwrap(tokens)
        whole = (
            None
            if any(is_aggregate(body, at) or is_grouping(body, at) for at in range(len(body)))
            else self.writer.write(body, self.scope)
        )
        keys = [key.sql for key in self.keys]
        if whole is not None and whole.sql in keys:
            return self._column(keys.index(whole.sql), tokens)
        calls = {call.start: call for call in find_calls(tokens)}
        pieces = []
        references: dict[ColumnRef, None] = {}
        index = 0
        while index < len(tokens):
            found, end = self._replaced(tokens, index, calls, keys)
            text = self.writer.text_of(tokens, index) if found is None else found.sql
            references |= dict.fromkeys(() if found is None else found.references)
            pieces.append((text, tokens[index], tokens[end - 1]))
            index = end
        return Draft(join_pieces(pieces), tuple(references), tokens)

    def _replaced(
        self, tokens: Tokens, index: int, calls: dict[int, Call], keys: list[str]
    ) -> tuple[Draft | None, int]:
        """Return what of the groups stands for what begins here, and where that ends."""
        if (nested := self.writer.values.get(tokens[index].start)) is not None:
            return nested, index + 1
        if index in calls:
            call, reference = calls[index], ColumnRef(0, f"a{next(self.numbers)}")
            text = call.function.form.format(quote(reference.flat), call.separator)
            return Draft(text, (reference,), tokens), call.end
        if is_grouping(tokens, index):
            arguments, end = grouping_arguments(tokens, index)
            places = [self._place(argument, keys) for argument in arguments]
            value = grouping_value(places, self.kept)
            return Draft(f"CAST({value} AS BIGINT)", (), tokens), end
        for end in range(min(len(tokens), index + self._longest), index, -1):
            if _stands_alone(tokens, index, end) and not any(
                at in calls or is_grouping(tokens, at) for at in range(index, end)
            ):
                draft = self.writer.write(tokens.part(index, end), self.scope)
                if draft.references and draft.sql in keys:
                    return self._column(keys.index(draft.sql), tokens), end
        use = self.writer.uses.get(tokens[index].start)
        if use is None:
            return None, index + 1
        reference, consumed = self.scope.resolve(use, tokens)
        text, _ = self.scope.value_of(reference, consumed)
        if text not in keys:
            shown = ".".join(use.names[:consumed])
            raise tokens.error(
                tokens[index],
                f"the column {shown} is neither a key of the groups nor inside an aggregate",
                _KEYS,
            )
        column = self._column(keys.index(text), tokens)
        return column, end_of(tokens, index, use.offsets[consumed - 1])

    def _place(self, argument: Tokens, keys: list[str]) -> int:
        """Return the place of the key that is an argument of GROUPING."""
        key = self.key_of(unwrap(argument))
        if key.sql not in keys:
            fact = f"{plain_text(argument)} is no key of GROUP BY"
            raise argument.error(argument.start, fact, "GROUPING is over keys of GROUP BY")
        return keys.index(key.sql)

    def _column(self, place: int, tokens: Tokens) -> Draft:
        """Return a key of the groups; NULL if this grouping leaves it out."""
        column = self.columns[place]
        if place not in self.kept:
            return Draft(null_of(column.expression.type), (), tokens)
        reference = ColumnRef(0, column.name)
        return Draft(quote(reference.flat), (reference,), tokens)


def _stands_alone(tokens: Tokens, start: int, end: int) -> bool:
    """Return whether a part of an expression cannot bind with what is around it.

    It stands between parentheses or commas, or is tighter than the comparisons, AND, OR and so on
    that it stands between.
    """
    if end - start < 2:
        return False
    depth = 0
    edges = _EDGES | _LOOSE
    for at in range(start, end):
        depth += is_symbol(tokens[at], "(") - is_symbol(tokens[at], ")")
        if depth < 0:
            return False
        if depth == 0 and _mark(tokens, at) in _LOOSE:
            edges = _EDGES
    return (
        depth == 0
        and (start == 0 or _mark(tokens, start - 1) in edges)
        and (end == len(tokens) or _mark(tokens, end) in edges)
    )


def _mark(tokens: Tokens, at: int) -> str:
    return word(tokens[at]) or (
        "" if is_text(tokens[at]) or is_number(tokens[at]) else tokens[at].text
    )
