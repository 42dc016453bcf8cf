"""Calls with OVER on the tokens of a query: where they stand, and which of them are refused."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pyarrow as pa

from muntin.aggregates import function_called
from muntin.aggregates.function import AggregateFunction, Arguments, Keep, Rank, RankKind
from muntin.errors import SqlError
from muntin.plan.top_n import RowNumbering
from muntin.plan.window_functions import RowFunction
from muntin.sql.lexer import Tokens, closing, is_symbol, word

_EDGES = {RankKind.LEAST, RankKind.GREATEST}
_INSTEAD = {
    "FIRST": "Write FIRST_VALUE(x) OVER (ORDER BY ...)",
    "LAST": "Write LAST_VALUE(x) OVER (ORDER BY ...)",
    "FILL": "Write COALESCE(x, LAG(x) OVER (ORDER BY ...))",
    "NTILE": "Derive it from ROW_NUMBER() and COUNT(*) OVER ()",
    "PERCENT_RANK": "Derive it from RANK() and COUNT(*) OVER ()",
    "CUME_DIST": "Derive it from RANK() and COUNT(*) OVER ()",
}
_KNOWN = (
    "There are ROW_NUMBER, RANK, DENSE_RANK, LAG, LEAD, FIRST_VALUE, LAST_VALUE, NTH_VALUE, COUNT, "
    "SUM, AVG, MIN, MAX, BOOL_AND, BOOL_OR, variances and deviations"
)


def is_over(tokens: Tokens, index: int) -> bool:
    """Return whether a call with OVER begins here, one that is refused included."""
    return _over_of(tokens, index) is not None


def _over_of(tokens: Tokens, index: int) -> int | None:
    """Return the place of the OVER of a call; between them may be FILTER and IGNORE NULLS."""
    if not word(tokens[index]) or index + 1 >= len(tokens) or not is_symbol(tokens[index + 1], "("):
        return None
    end = closing(tokens, index + 1)
    at = None if end is None else end + 1
    while at is not None and at < len(tokens) and word(tokens[at]) != "OVER":
        if word(tokens[at]) in {"IGNORE", "RESPECT", "NULLS", "IGNORE NULLS", "RESPECT NULLS"}:
            at += 1
        elif word(tokens[at]) == "FILTER" and at + 1 < len(tokens):
            end = closing(tokens, at + 1) if is_symbol(tokens[at + 1], "(") else None
            at = None if end is None else end + 1
        else:
            return None
    return at if at is not None and at < len(tokens) else None


def over_findings(tokens: Tokens, index: int) -> Iterator[SqlError]:
    """Yield what is refused of the call with OVER that begins here."""
    name, over = tokens[index], _over_of(tokens, index)
    assert over is not None, "a call with OVER begins here"
    form = f"Write {name.text}(...) OVER (PARTITION BY ... ORDER BY ...)"
    upper = word(name)
    known = upper.lower() in {*RowNumbering, *RowFunction} or _framed(upper) is not None
    if not known:
        fact = f"{name.text} is not supported as a window function"
        yield tokens.error(name, fact, _INSTEAD.get(upper, _KNOWN))
    end = closing(tokens, index + 1)
    assert end is not None, "it is followed by OVER"
    for at in range(index + 2, over):
        inside = at < end
        if word(tokens[at]) == "FILTER" and not inside:
            hint = f"Write {name.text}(CASE WHEN condition THEN x END) OVER (...)"
            yield tokens.error(tokens[at], f"FILTER in {name.text} OVER is not supported", hint)
        elif word(tokens[at]) in {"IGNORE", "IGNORE NULLS"}:
            hint = "Leave out rows with NULL in a sub-select in FROM"
            yield tokens.error(tokens[at], "IGNORE NULLS is not supported", hint)
        elif word(tokens[at]) in {"RESPECT", "RESPECT NULLS"}:
            hint = "Leave it out: NULLs count as values"
            yield tokens.error(tokens[at], "RESPECT NULLS is not supported", hint)
        elif inside and word(tokens[at]) == "DISTINCT" and at == index + 2:
            hint = "Take DISTINCT rows in a sub-select in FROM"
            yield tokens.error(tokens[at], f"{name.text}(DISTINCT ...) OVER is not supported", hint)
        elif inside and word(tokens[at]) in {"ORDER BY", "ORDER"}:
            hint = "Write ORDER BY in OVER (...)"
            yield tokens.error(tokens[at], f"ORDER BY inside {name.text} is not supported", hint)
        elif inside and word(tokens[at]) == "OVER":
            hint = "Take one of them in a sub-select in FROM"
            yield tokens.error(tokens[at], "window functions cannot be nested", hint)
    if over + 1 >= len(tokens) or not is_symbol(tokens[over + 1], "("):
        fact = "OVER with the name of a window is not supported"
        yield tokens.error(tokens[over], fact, form)


def _framed(name: str) -> AggregateFunction | None:
    """Return the aggregate that can be kept for frames, if there is one of this name."""
    function = function_called(name.lower())
    if function is None or function.arguments not in {Arguments.ONE, Arguments.OPTIONAL}:
        return None
    if function.kept_as or function.always_distinct or name.lower() == function.within_group:
        return None
    kept = all(
        isinstance(need, Keep) or (isinstance(need, Rank) and need.kind in _EDGES)
        for need in function.needs(pa.int64(), Fraction(1, 2))
    )
    return function if kept else None
