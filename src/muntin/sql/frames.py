"""Frames of window functions: ``ROWS`` and ``RANGE`` in OVER, from tokens to the bounds of a frame.

Distances of RANGE are in units of the key, whose type is known only later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pat

from muntin.plan.window_functions import Bound, BoundKind, Frame, FrameMode
from muntin.sql.cursor import Cursor
from muntin.sql.lexer import Tokens, is_number, is_symbol, top_level, word
from muntin.sql.windows import read_interval
from muntin.sql.writer import plain_text

_FORM = (
    "Write ROWS or RANGE BETWEEN bound AND bound; a bound is UNBOUNDED PRECEDING, n PRECEDING, "
    "CURRENT ROW, n FOLLOWING or UNBOUNDED FOLLOWING"
)
_MODES = {"ROWS", "RANGE", "GROUPS"}
_ENDS = {"PRECEDING", "FOLLOWING", "ROW", "CURRENT ROW", "EXCLUDE"}
_FIRST, _LAST = Bound(BoundKind.FIRST), Bound(BoundKind.LAST)
_CURRENT = Bound(BoundKind.CURRENT)
MOST_ROWS = 1 << 31
"""How many rows away a bound may be."""
_UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}


@dataclass(frozen=True)
class FrameText:
    """A frame as written: its mode, and its bounds as tokens; no second one without BETWEEN."""

    mode: FrameMode
    start: Tokens
    end: Tokens | None
    tokens: Tokens


def frame_place(inside: Tokens) -> int:
    """Return where the frame begins in the parentheses of OVER; their end if there is none."""
    ends = {token.text.upper() for token in inside.part(max(len(inside) - 3, 0))} & _ENDS
    for at in top_level(inside) if ends else []:
        before = inside[at - 1] if at else None
        named = before is not None and (is_symbol(before, ",") or word(before).endswith("BY"))
        if word(inside[at]) in _MODES and at + 1 < len(inside) and not named:
            return at
    return len(inside)


def read_frame(tokens: Tokens) -> FrameText | None:
    """Return a frame as written; None if there is none."""
    if not len(tokens):
        return None
    mode = word(tokens[0])
    if mode == "GROUPS":
        hint = "Write ROWS, or RANGE with a distance from the key"
        raise tokens.error(tokens[0], "frames of GROUPS are not supported", hint)
    for token in tokens:
        if word(token) == "EXCLUDE":
            hint = "Subtract the value of the row, or of its peers, from that of the frame"
            raise tokens.error(token, "EXCLUDE is not supported", hint)
    body = tokens.part(1)
    if word(body[0]) != "BETWEEN":
        return FrameText(FrameMode(mode), body, None, tokens)
    both = body.part(1)
    cut = next((at for at in top_level(both) if word(both[at]) == "AND"), None)
    if cut is None:
        raise tokens.error(body[0], "BETWEEN needs two bounds", _FORM)
    return FrameText(FrameMode(mode), both.part(0, cut), both.part(cut + 1), tokens)


def default_frame() -> Frame:
    """Return the frame of a call that states none: all rows up to the peers of the row."""
    return Frame(FrameMode.RANGE, _FIRST, _CURRENT)


def offset_frame(rows: int) -> Frame:
    """Return the frame of one row, so many rows behind the current one."""
    bound = Bound(BoundKind.OFFSET, rows, str(abs(rows))) if rows else _CURRENT
    return Frame(FrameMode.ROWS, bound, bound)


def bind_frame(text: FrameText | None, keys: Sequence[pa.DataType]) -> Frame:
    """Return a frame; ``keys`` are the types of what its rows are ordered by."""
    if text is None:
        return default_frame()
    start = _bound(text, text.start, keys)
    end = _CURRENT if text.end is None else _bound(text, text.end, keys)
    if _rank(start) > _rank(end) or start == _LAST or end == _FIRST:
        fact = f"the frame {plain_text(text.tokens)} ends before it begins"
        raise text.tokens.error(text.tokens.start, fact, _FORM)
    return Frame(text.mode, start, end)


def _rank(bound: Bound) -> int:
    """Return -1, 0 or 1 for a bound before, at or behind the row."""
    if bound.kind is BoundKind.OFFSET:
        return -1 if bound.distance < 0 else 1
    return {BoundKind.FIRST: -1, BoundKind.CURRENT: 0, BoundKind.LAST: 1}[bound.kind]


def _bound(text: FrameText, tokens: Tokens, keys: Sequence[pa.DataType]) -> Bound:
    words = [token.text.upper() for token in tokens]
    fixed = {
        ("UNBOUNDED", "PRECEDING"): _FIRST,
        ("UNBOUNDED", "FOLLOWING"): _LAST,
        ("CURRENT", "ROW"): _CURRENT,
        ("CURRENT ROW",): _CURRENT,
    }
    if tuple(words) in fixed:
        return fixed[tuple(words)]
    if not words or words[-1] not in {"PRECEDING", "FOLLOWING"} or len(words) < 2:
        where = tokens[0] if len(tokens) else text.tokens[-1]
        raise text.tokens.error(where, "this is no bound of a frame", _FORM)
    sign = -1 if words[-1] == "PRECEDING" else 1
    amount = tokens.part(0, len(tokens) - 1)
    if text.mode is FrameMode.ROWS:
        return _rows(amount, sign)
    return _distance(amount, sign, keys)


def _rows(amount: Tokens, sign: int) -> Bound:
    if len(amount) != 1 or not is_number(amount[0]) or not amount[0].text.isdecimal():
        fact = "a bound in ROWS must be a whole number"
        raise amount.error(amount.start, fact, "Write for example 5 PRECEDING")
    rows = int(amount[0].text)
    if rows > MOST_ROWS:
        hint = "Write UNBOUNDED PRECEDING or UNBOUNDED FOLLOWING"
        raise amount.error(amount.start, f"a bound of {rows} rows is too large", hint)
    return Bound(BoundKind.OFFSET, sign * rows, str(rows)) if rows else _CURRENT


def _distance(amount: Tokens, sign: int, keys: Sequence[pa.DataType]) -> Bound:
    """Return a bound at a distance from the key."""
    if len(keys) != 1:
        fact = "RANGE with a distance needs ORDER BY one number or time"
        raise amount.error(amount.start, fact, "Order by one expression, or write ROWS")
    (kind,) = keys
    if pat.is_timestamp(kind) and kind.unit in _UNITS:
        if word(amount[0]) != "INTERVAL":
            hint = "Write for example INTERVAL 5 SECONDS PRECEDING"
            raise amount.error(amount.start, "RANGE over a time needs an interval", hint)
        cursor = Cursor(amount)
        micros, token = read_interval(cursor, "the distance of RANGE")
        cursor.end(_FORM)
        if micros % _UNITS[kind.unit]:
            fact = f"the distance is finer than the key, of type {kind}"
            raise amount.error(token, fact, "CAST the key to TIMESTAMP")
        distance = micros // _UNITS[kind.unit]
        return Bound(BoundKind.OFFSET, sign * distance, f"INTERVAL {micros} MICROSECONDS")
    whole = pat.is_signed_integer(kind)
    if not whole and kind != pa.float64():
        fact = f"RANGE with a distance from a key of type {kind} is not supported"
        raise amount.error(amount.start, fact, "CAST the key to BIGINT, DOUBLE or TIMESTAMP")
    if len(amount) != 1 or not is_number(amount[0]) or (whole and not amount[0].text.isdecimal()):
        number = "whole number" if whole else "number"
        fact = f"the distance of RANGE must be a {number}, as the key"
        raise amount.error(amount.start, fact, "Write for example 5 PRECEDING")
    value = amount[0].text
    if whole and int(value) > MOST_ROWS**2 // 2:
        raise amount.error(amount.start, f"the distance {value} is too large", "Write UNBOUNDED")
    away = int(value) if whole else float(value)
    return Bound(BoundKind.OFFSET, sign * away, value) if away else _CURRENT
