"""Calls with OVER as written: functions, arguments, what they partition and order by, frames."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from muntin.aggregates import function_called
from muntin.plan.top_n import RowNumbering
from muntin.plan.window_functions import RowFunction
from muntin.sql.aggregates import argument_type, refuse_aggregates
from muntin.sql.frames import FrameText, frame_place, read_frame
from muntin.sql.lexer import Tokens, closing, is_number, is_symbol, split_commas, top_level, word
from muntin.sql.order_by import OrderItem, read_item
from muntin.sql.probe import ask
from muntin.sql.writer import Draft, plain_text

_HINT = "Write {name}({arguments}) OVER (PARTITION BY ... ORDER BY ...)"
_ARGUMENTS = {
    "row_number": "",
    "rank": "",
    "dense_rank": "",
    "lag": "x, rows, default",
    "lead": "x, rows, default",
    "nth_value": "x, number",
}
_OFFSETS = {RowFunction.LAG, RowFunction.LEAD}
_NEST = "Aggregate in a sub-select in FROM first"


@dataclass(frozen=True)
class OverCall:
    """A call: what it is over, what it partitions and orders by, its frame, and its text.

    ``number`` is the second argument of LAG, LEAD and NTH_VALUE, ``default`` the third one.
    """

    function: str
    argument: Tokens | None
    number: int
    default: Tokens | None
    keys: tuple[Tokens, ...]
    items: tuple[OrderItem, ...]
    frame: FrameText | None
    text: str
    tokens: Tokens

    @property
    def numbering(self) -> RowNumbering | None:
        """Return how it numbers rows, if it does."""
        return RowNumbering(self.function) if self.function in set(RowNumbering) else None

    def type_over(self, argument: pa.DataType | None) -> pa.DataType:
        """Return the type of the call over an argument of a type."""
        if argument is None:
            return pa.int64()
        if self.function in set(RowFunction):
            return argument
        function = function_called(self.function)
        assert function is not None, "it was looked up when the call was read"
        return argument_type(function, argument, self.tokens)


def read_over_call(tokens: Tokens, start: int) -> tuple[OverCall, int]:
    """Return the call that begins at a place, and where it ends; it is none that is refused."""
    name = tokens[start]
    end = closing(tokens, start + 1)
    assert end is not None, "refusals come first"
    opening = end + 2
    close = closing(tokens, opening)
    if close is None:
        raise tokens.error(tokens[opening], "the parenthesis is not closed", "Write OVER (...)")
    whole = tokens.part(start, close + 1)
    known = function_called(name.text.lower())
    function = name.text.lower() if known is None else known.name
    hint = _HINT.format(name=name.text, arguments=_ARGUMENTS.get(function, "x"))
    parts = _arguments(tokens.part(start + 2, end), function, tokens, start, hint)
    inside = tokens.part(opening + 1, close)
    keys, items, frame = _read_over(inside, hint)
    call = OverCall(
        function,
        parts[0] if parts else None,
        _number(parts[1], function, hint) if len(parts) > 1 else 1,
        parts[2] if len(parts) > 2 else None,
        keys,
        items,
        frame,
        plain_text(whole),
        whole,
    )
    if call.numbering is not None and not items:
        raise inside.error(inside.start, "the numbers of rows need an order", hint)
    if frame is not None and (call.numbering is not None or function in _OFFSETS):
        fact = f"{name.text} takes no frame"
        raise inside.error(frame.tokens.start, fact, f"Leave out {frame.mode} ...")
    return call, close + 1


def _arguments(
    inside: Tokens, function: str, tokens: Tokens, start: int, hint: str
) -> list[Tokens]:
    """Return the arguments of a call; none for ``COUNT(*)``."""
    name = tokens[start].text
    parts = split_commas(inside) if len(inside) else []
    if function == "count" and len(parts) == 1 and _is_star(parts[0]):
        parts = []
    least, most = 1, 1
    if function in set(RowNumbering) or (function == "count" and not parts):
        least, most = 0, 0
    elif function in _OFFSETS:
        most = 3
    elif function == RowFunction.NTH_VALUE:
        least, most = 2, 2
    if not least <= len(parts) <= most or not all(len(part) for part in parts):
        counted = {0: "no arguments", 1: "one argument", 2: "two arguments"}
        takes = counted[least] if least == most else "one to three arguments"
        raise tokens.error(tokens[start], f"{name} takes {takes}", hint)
    if parts and _is_star(parts[0]):
        raise tokens.error(parts[0].start, f"{name} needs an expression, not *", hint)
    for part in parts:
        refuse_aggregates(part, "inside a window function", _NEST)
    return parts


def _is_star(tokens: Tokens) -> bool:
    return len(tokens) == 1 and is_symbol(tokens[0], "*")


def _number(tokens: Tokens, function: str, hint: str) -> int:
    """Return the second argument of LAG, LEAD or NTH_VALUE."""
    least = int(function == RowFunction.NTH_VALUE)
    given = len(tokens) == 1 and is_number(tokens[0]) and tokens[0].text.isdecimal()
    if not given or not least <= int(tokens[0].text) < 1 << 31:
        number = "a number of rows from 1" if least else "a number of rows"
        fact = f"the second argument of {function.upper()} must be {number}"
        raise tokens.error(tokens.start, fact, f"{hint} with a whole number")
    return int(tokens[0].text)


def _read_over(
    inside: Tokens, hint: str
) -> tuple[tuple[Tokens, ...], tuple[OrderItem, ...], FrameText | None]:
    """Return what is in the parentheses of OVER: keys, order and frame."""
    cut = frame_place(inside)
    body = inside.part(0, cut)
    words = {word(body[at]): at for at in reversed(top_level(body))}
    by, order = words.get("PARTITION BY"), words.get("ORDER BY", len(body))
    if by not in {None, 0} or (by is None and order != 0 and len(body)):
        raise inside.error(inside.start, "this is no window of a function", hint)
    keys = () if by is None else tuple(split_commas(body.part(1, order)))
    items = () if order == len(body) else tuple(map(read_item, split_commas(body.part(order + 1))))
    if not all(len(key) for key in keys):
        raise inside.error(inside.start, "PARTITION BY names nothing", hint)
    return keys, items, read_frame(inside.part(cut))


def default_draft(draft: Draft, kind: pa.DataType) -> Draft:
    """Return the default of LAG or LEAD in the type of the argument, as DuckDB has it."""
    return Draft(f"CAST({draft.sql} AS {_sql_type(kind)})", draft.references, draft.tokens)


@lru_cache(maxsize=256)
def _sql_type(kind: pa.DataType) -> str:
    """Return DuckDB's name of a type."""
    batch = pa.table({"x": pa.nulls(1, kind)})
    return str(ask("SELECT typeof(x) AS y FROM batch", batch=batch).column(0)[0].as_py())
