"""The parts of a select, as runs of tokens.

Its items, the entries of FROM with their windows and conditions, and the clauses behind them.

Window brackets and sub-selects belong to the entry of FROM they stand in and are taken out here;
what is left is plain SQL.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import TokenType

from muntin.sql.lexer import Tokens, closing, is_name, is_symbol, split_commas, top_level, word
from muntin.sql.window_calls import cut_call
from muntin.sql.windows import BRACKET_HINT

_JOIN_WORDS = {
    "NATURAL", "ASOF", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI",
}  # fmt: skip
_CLAUSES = ("WHERE", "GROUP BY", "HAVING", "QUALIFY", "ORDER BY", "LIMIT", "OFFSET")
_ORDER = f"Write SELECT ... FROM ... {' ... '.join(_CLAUSES)} ..., each once"


@dataclass(frozen=True)
class FromEntry:
    """One entry of FROM.

    Its name and alias, how it is joined to those before it, and its window with the brackets.

    For a sub-select, ``select`` is what stands in the parentheses, and ``tokens`` its alias alone.
    For a window function, ``call`` is the call, and ``tokens`` its alias, or the stream it is over.
    """

    tokens: Tokens
    join: str
    window: Tokens | None = None
    on: Tokens | None = None
    using: Tokens | None = None
    select: Tokens | None = None
    call: Tokens | None = None


@dataclass(frozen=True)
class SelectParts:
    """A select in its parts.

    ``plain`` is all of it without window brackets, and with the alias of a sub-select in place of
    the sub-select.
    """

    items: tuple[Tokens, ...]
    entries: tuple[FromEntry, ...]
    where: Tokens | None
    plain: Tokens
    distinct: bool = False
    group: Tokens | None = None
    having: Tokens | None = None
    order: Tokens | None = None
    limit: Tokens | None = None
    offset: Tokens | None = None
    qualify: Tokens | None = None


def read_shape(tokens: Tokens) -> SelectParts:
    """Cut a select into its parts, without judging what is in them."""
    if not len(tokens) or word(tokens[0]) != "SELECT":
        raise tokens.error(
            tokens.start, "a query begins with SELECT", "Write SELECT ... FROM ... WINDOW ..."
        )
    top = top_level(tokens)
    source = next(
        (
            index
            for index in top
            if word(tokens[index]) == "FROM" and word(tokens[index - 1]) != "DISTINCT"
        ),
        None,
    )
    if source is None:
        raise tokens.error(
            tokens[0],
            "the query has no FROM",
            "Name the streams to select from: SELECT ... FROM stream WINDOW ...",
        )
    clauses = [index for index in top if index > source and word(tokens[index]) in _CLAUSES]
    parts = _read_clauses(tokens, clauses)
    entries = _read_entries(tokens.part(source + 1, clauses[0] if clauses else None))
    distinct = word(tokens[1]) == "DISTINCT"
    first = 2 if distinct or word(tokens[1]) == "ALL" else 1
    items = split_commas(tokens.part(first, source))
    if len(items) > 1 and not len(items[-1]):
        items.pop()  # DuckDB allows a comma after the last item
    for item in items:
        if not len(item):
            raise tokens.error(
                item.stop,
                "an expression is missing here",
                "Write expressions with commas between them",
            )
    return SelectParts(
        tuple(items),
        entries,
        parts.get("WHERE"),
        _without_windows(tokens, entries),
        distinct,
        parts.get("GROUP BY"),
        parts.get("HAVING"),
        parts.get("ORDER BY"),
        parts.get("LIMIT"),
        parts.get("OFFSET"),
        parts.get("QUALIFY"),
    )


def read_tail(tokens: Tokens) -> SelectParts:
    """Return what stands behind selects with set operators: ORDER BY, LIMIT and OFFSET."""
    clauses = [index for index in top_level(tokens) if word(tokens[index]) in _CLAUSES]
    parts = _read_clauses(tokens, clauses)
    order = (parts.get(name) for name in ("ORDER BY", "LIMIT", "OFFSET"))
    return SelectParts((), (), None, tokens, False, None, None, *order)


def _read_clauses(tokens: Tokens, clauses: list[int]) -> dict[str, Tokens]:
    """Return what follows each word of a clause, in the order that SQL has them in."""
    cuts = dict(zip(clauses, [*clauses[1:], len(tokens)], strict=False))
    parts = {word(tokens[start]): tokens.part(start + 1, end) for start, end in cuts.items()}
    if [word(tokens[index]) for index in clauses] != [name for name in _CLAUSES if name in parts]:
        raise tokens.error(
            tokens[clauses[-1]], f"{word(tokens[clauses[-1]])} stands at the wrong place", _ORDER
        )
    return parts


def _read_entries(region: Tokens) -> tuple[FromEntry, ...]:
    entries = []
    start, join = 0, ""
    for index in [*top_level(region), len(region)]:
        name = word(region[index]) if index < len(region) else ""
        if index == len(region):
            entries.append(_read_entry(region.part(start), join))
        elif region[index].token_type == TokenType.COMMA:
            entries.append(_read_entry(region.part(start, index), join))
            start, join = index + 1, ","
        elif name == "JOIN" and not is_symbol(region[index - 1], "."):
            end = index
            while (
                end > start
                and word(region[end - 1]) in _JOIN_WORDS
                and not is_symbol(region[end - 2], ".")
            ):
                end -= 1
            entries.append(_read_entry(region.part(start, end), join))
            start, join = index + 1, " ".join(word(region[at]) for at in range(end, index + 1))
    return tuple(entries)


def _read_entry(body: Tokens, join: str) -> FromEntry:
    top = top_level(body)
    on = next(
        (index for index in top if word(body[index]) in {"ON", "USING"} and index > 0), len(body)
    )
    window, rest = _cut_window(body.part(0, on))
    select, rest = _cut_select(rest)
    call, rest = cut_call(rest)
    entry = FromEntry(rest, join, window, select=select, call=call)
    if on == len(body):
        return entry
    condition = body.part(on + 1)
    if word(body[on]) == "ON":
        return replace(entry, on=condition)
    end = closing(condition, 0) if len(condition) and is_symbol(condition[0], "(") else None
    if end is None or end != len(condition) - 1:
        raise body.error(body[on], "USING needs a list of columns", "Write USING (column, ...)")
    return replace(entry, using=condition.part(1, end))


def _cut_select(tokens: Tokens) -> tuple[Tokens | None, Tokens]:
    """Return the text in the parentheses of a sub-select, and its alias."""
    depth = 0
    while depth < len(tokens) and is_symbol(tokens[depth], "("):
        depth += 1
    if not depth or depth == len(tokens) or word(tokens[depth]) not in {"SELECT", "WITH"}:
        return None, tokens
    end = closing(tokens, 0)
    if end is None:
        raise tokens.error(
            tokens[0],
            "the parenthesis of the sub-select is not closed",
            "Write (SELECT ...) AS name",
        )
    alias = tokens.part(end + 1)
    if len(alias) and word(alias[0]) == "AS":
        alias = alias.part(1)
    if len(alias) != 1 or not is_name(alias[0]):
        where = alias[1] if len(alias) > 1 else tokens[0]
        raise tokens.error(
            where, "a sub-select needs a name, and nothing after it", "Write (SELECT ...) AS name"
        )
    return tokens.part(1, end), alias


def _cut_window(tokens: Tokens) -> tuple[Tokens | None, Tokens]:
    brackets = [index for index in top_level(tokens) if is_symbol(tokens[index], "[")]
    if not brackets or brackets[0] == 0:
        return None, tokens
    start = brackets[0]
    if len(brackets) > 1:
        raise tokens.error(tokens[brackets[1]], "this stream has two windows", "Keep one of them")
    end = closing(tokens, start)
    if end is None:
        raise tokens.error(tokens[start], "the bracket of the window is not closed", BRACKET_HINT)
    return tokens.part(start, end + 1), replace(
        tokens, items=tokens.items[:start] + tokens.items[end + 1 :]
    )


def _without_windows(tokens: Tokens, entries: tuple[FromEntry, ...]) -> Tokens:
    taken = {token.start for entry in entries if entry.window is not None for token in entry.window}
    for entry in entries:
        if entry.call is not None:
            # The name that is left: the alias, or the stream in the parentheses.
            name, first = entry.tokens[0].start, entry.call[0].start
            last = max(name, entry.call[-1].start)
            every = (token.start for token in tokens if first <= token.start <= last)
            taken.update(start for start in every if start != name)
        if entry.select is not None:
            # All tokens from before the parenthesis that opens it up to the alias.
            inside = [
                place
                for place, token in enumerate(tokens)
                if entry.select.start <= token.start < entry.tokens.start
            ]
            taken.update(tokens[place].start for place in (inside[0] - 1, *inside))
    return replace(tokens, items=tuple(token for token in tokens if token.start not in taken))
