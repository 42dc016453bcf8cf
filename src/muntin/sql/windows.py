"""Intervals, numbers of rows, and the windows made of them, as users write them.

``1 MINUTE``, ``1.5 SECONDS``, ``1 HOUR 30 MINUTES``, ``'1 hour 30 minutes'``, ``INTERVAL '5'
SECOND``, ``5000 ROWS``.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import Token

from muntin.model.clock import AFTER_ALL, parse_instant, parse_interval
from muntin.model.window import FOREVER, PartitionedWindow, RowsWindow, TimeWindow
from muntin.sql.cursor import Cursor
from muntin.sql.lexer import Tokens, is_number, is_symbol, is_text, word

INTERVAL_HINT = "Write a number and a unit, for example 5 SECONDS or '1 hour 30 minutes'"
BRACKET_HINT = (
    "A window is written [RANGE 5 SECONDS], [ROWS 100], [PARTITION BY column ROWS 100], "
    "[UNBOUNDED], [SINCE '2026-01-01 00:00:00'] or [UNTIL column]"
)


@dataclass(frozen=True)
class Extent:
    """How far a window reaches, and the token to blame for it."""

    window: TimeWindow | RowsWindow
    token: Token


def begins_extent(token: Token | None) -> bool:
    """Return whether an interval or a number of rows can begin with this token."""
    if token is None:
        return False
    return (
        is_number(token)
        or is_text(token)
        or word(token) == "INTERVAL"
        or is_symbol(token, "-")
        or is_symbol(token, "+")
    )


def read_extent(cursor: Cursor, what: str) -> Extent:
    """Return an interval or ``n ROWS``."""
    token = cursor.look()
    if token is not None and cursor.match("UNBOUNDED"):
        return Extent(TimeWindow(FOREVER), token)
    if is_count(cursor):
        text, token = cursor.number(what)
        cursor.take("ROWS")
        return Extent(_rows(cursor, text, token), token)
    micros, token = read_interval(cursor, what)
    return Extent(TimeWindow(micros), token)


def is_count(cursor: Cursor) -> bool:
    """Return whether a number of rows comes next, not an interval."""
    token = cursor.look()
    ahead = 1 if token is not None and (is_symbol(token, "-") or is_symbol(token, "+")) else 0
    number, unit = cursor.look(ahead), cursor.look(ahead + 1)
    return (
        number is not None
        and unit is not None
        and is_number(number)
        and word(unit) in {"ROW", "ROWS"}
    )


def read_interval(cursor: Cursor, what: str) -> tuple[int, Token]:
    """Return the microseconds of an interval.

    It must be more than none, and the token to blame for it.
    """
    cursor.match("INTERVAL")
    token = cursor.take(f"an interval for {what}", INTERVAL_HINT)
    pieces = []
    if is_text(token):
        pieces.append(token.text)
        unit = cursor.look()
        if unit is not None and word(unit) and token.text.strip()[-1:].isdigit():
            pieces.append(cursor.take("a unit").text)
    else:
        cursor.index -= 1
        while not pieces or begins_extent(cursor.look()):
            pieces.append(cursor.number(f"an interval for {what}", INTERVAL_HINT)[0])
            unit = cursor.take("a unit of time", INTERVAL_HINT)
            pieces.append(unit.text)
    with cursor.tokens.blame(token):
        micros = parse_interval(" ".join(pieces))
    if micros <= 0:
        raise cursor.tokens.error(
            token,
            f"{what} must be longer than nothing, not {' '.join(pieces)}",
            "Give a positive interval",
        )
    return micros, token


def read_bracket(
    tokens: Tokens,
) -> tuple[TimeWindow | RowsWindow | PartitionedWindow, tuple[Token, ...]]:
    """Return the window in a pair of brackets, and the tokens of the columns that it names."""
    cursor = Cursor(tokens.part(1, len(tokens) - 1))
    columns: list[Token] = []
    window: TimeWindow | RowsWindow | PartitionedWindow
    if cursor.match("UNBOUNDED"):
        window = TimeWindow(FOREVER)
    elif cursor.match("SINCE"):
        window = TimeWindow(FOREVER, _instant(cursor))
    elif cursor.match("UNTIL"):
        columns.append(cursor.name("a column"))
        window = TimeWindow(FOREVER, until=columns[0].text)
    elif cursor.match("RANGE"):
        window = TimeWindow(read_interval(cursor, "the window")[0])
    elif cursor.match("PARTITION BY") or cursor.match("PARTITION", "BY"):
        columns.append(cursor.name("a column"))
        while cursor.match_symbol(","):
            columns.append(cursor.name("a column"))
        cursor.expect("ROWS", BRACKET_HINT)
        rows = _rows(cursor, *cursor.number("a number of rows", BRACKET_HINT)).rows
        window = PartitionedWindow(tuple(column.text for column in columns), rows)
    else:
        cursor.expect("ROWS", BRACKET_HINT)
        window = _rows(cursor, *cursor.number("a number of rows", BRACKET_HINT))
    cursor.end(BRACKET_HINT)
    return window, tuple(columns)


def _instant(cursor: Cursor) -> int:
    """Return the instant of SINCE: a text, with or without the word TIMESTAMP."""
    cursor.match("TIMESTAMP")
    token = cursor.take("an instant for SINCE", BRACKET_HINT)
    if not is_text(token):
        raise cursor.tokens.error(token, "SINCE needs an instant in quotes", BRACKET_HINT)
    with cursor.tokens.blame(token):
        return parse_instant(token.text)


def _rows(cursor: Cursor, text: str, token: Token) -> RowsWindow:
    if not text.lstrip("-").isdecimal():
        raise cursor.tokens.error(
            token, f"a number of rows must be a whole number, not {text}", "Write for example 100"
        )
    rows = int(text)
    if rows <= 0:
        raise cursor.tokens.error(
            token,
            f"a window must hold at least one row, not {text}",
            "Give a positive number of rows",
        )
    if rows >= AFTER_ALL:
        raise cursor.tokens.error(
            token, f"a window of {text} rows is too large", "Windows hold up to 4 * 10^18 rows"
        )
    return RowsWindow(rows)
