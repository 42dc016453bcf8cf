"""The clauses that follow a select.

WINDOW, EVERY, EMIT, FRESHNESS and WITH, in any order, each once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import Token

from muntin.plan.query import Emit
from muntin.sql.cursor import Cursor, Option, read_options
from muntin.sql.lexer import Tokens, is_symbol, top_level, word
from muntin.sql.refusals import ends_operand
from muntin.sql.windows import Extent, begins_extent, read_extent, read_interval

_WORDS = ("WINDOW", "EVERY", "EMIT", "FRESHNESS", "WITH")
_INSIDE = ("WINDOW", "EVERY", "EMIT", "FRESHNESS")
_BEFORE = {"WHERE", "FROM", "JOIN", "AND", "OR", "QUALIFY", "ORDER BY", "LIMIT", "OFFSET"}
_HINT = "After the select come WINDOW, EVERY, EMIT, FRESHNESS and WITH (...), each once"


@dataclass
class Clauses:
    """What the clauses say; freshness of alias None is that of all streams."""

    window: Extent | None = None
    window_text: str = ""
    every: int | None = None
    emit: Emit | None = None
    freshness: list[tuple[Token | None, Extent]] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


def cut_clauses(tokens: Tokens) -> tuple[Tokens, Clauses]:
    """Return the select without its clauses, and the clauses."""
    start = _first_clause(tokens)
    clauses = Clauses()
    cursor = Cursor(tokens.part(start))
    seen: set[str] = set()
    while (token := cursor.look()) is not None:
        name = word(token)
        if name not in _WORDS:
            before = (
                f"{name} must stand before {', '.join(sorted(seen))}" if name in _BEFORE else ""
            )
            raise tokens.error(
                token,
                before or f"unexpected {tokens.source(token)!r} after the clauses of the query",
                _HINT,
            )
        if name in seen:
            raise tokens.error(token, f"{name} is given twice", _HINT)
        seen.add(name)
        begun = cursor.index
        cursor.take(name)
        _read_clause(name, cursor, clauses)
        if name == "WINDOW":
            clauses.window_text = cursor.tokens.part(begun, cursor.index).original
    return tokens.part(0, start), clauses


def refuse_inside(tokens: Tokens) -> None:
    """Raise if a select that is a part of a query has one of the clauses."""
    for index in top_level(tokens)[1:]:
        name = word(tokens[index])
        if (
            name in _INSIDE
            and word(tokens[index - 1]) not in {"AS", "SELECT"}
            and _ends_select(tokens, index)
        ):
            hint = f"Write {name} at the end, for the whole query"
            raise tokens.error(tokens[index], f"{name} cannot stand inside a query", hint)


def _ends_select(tokens: Tokens, index: int) -> bool:
    """Return whether a word stands behind FROM, where it is no name of a column."""
    return any(
        word(tokens[at]) == "FROM" for at in top_level(tokens) if at < index
    ) and not is_symbol(tokens[index - 1], ".")


def _first_clause(tokens: Tokens) -> int:
    after_from = len(tokens) > 0 and is_symbol(tokens[0], "(")
    for index in top_level(tokens):
        name = word(tokens[index])
        if (
            after_from
            and name in _WORDS
            and (ends_operand(tokens[index - 1]) or _groups_all(tokens, index))
        ):
            after = tokens[index + 1] if index + 1 < len(tokens) else None
            if name != "WITH" or after is None or is_symbol(after, "("):
                return index
        after_from = after_from or (name == "FROM" and word(tokens[index - 1]) != "DISTINCT")
    return len(tokens)


def _groups_all(tokens: Tokens, index: int) -> bool:
    """Return whether GROUP BY ALL comes before a place."""
    return index > 1 and word(tokens[index - 1]) == "ALL" and word(tokens[index - 2]) == "GROUP BY"


def _read_clause(name: str, cursor: Cursor, clauses: Clauses) -> None:
    match name:
        case "WINDOW":
            _refuse_named_window(cursor)
            clauses.window = read_extent(cursor, "the window")
        case "EVERY":
            clauses.every = read_interval(cursor, "EVERY")[0]
        case "EMIT":
            clauses.emit = _read_emit(cursor)
        case "FRESHNESS":
            clauses.freshness = _read_freshness(cursor)
        case _:
            clauses.options = read_options(cursor)


def _refuse_named_window(cursor: Cursor) -> None:
    name, follower = cursor.look(), cursor.look(1)
    if name is not None and follower is not None and word(follower) == "AS":
        hint = (
            "WINDOW takes an interval or a number of rows, "
            "for example WINDOW 1 MINUTE, WINDOW 100 ROWS or WINDOW UNBOUNDED"
        )
        raise cursor.tokens.error(name, "named windows are not supported", hint)


def _read_emit(cursor: Cursor) -> Emit:
    hint = "Write EMIT INSERTS, EMIT CHANGES, EMIT SNAPSHOT or EMIT FINAL"
    token = cursor.take("INSERTS, CHANGES, SNAPSHOT or FINAL", hint)
    match word(token):
        case "INSERTS":
            return Emit.INSERTS
        case "CHANGES":
            return Emit.CHANGES
        case "SNAPSHOT":
            return Emit.SNAPSHOT
        case "FINAL":
            return Emit.FINAL
    cursor.index -= 1
    raise cursor.unexpected("INSERTS, CHANGES, SNAPSHOT or FINAL", hint)


def _read_freshness(cursor: Cursor) -> list[tuple[Token | None, Extent]]:
    if begins_extent(cursor.look()):
        return [(None, read_extent(cursor, "FRESHNESS"))]
    parts: list[tuple[Token | None, Extent]] = []
    while not parts or cursor.match_symbol(","):
        alias = cursor.name("an interval or the name of a stream")
        parts.append((alias, read_extent(cursor, "FRESHNESS")))
    return parts
