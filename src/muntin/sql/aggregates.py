"""The aggregates of a select.

Where their calls stand, what they are over, and of what type they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

import pyarrow as pa

from muntin.aggregates import AggregateFunction, aggregate_functions, function_called
from muntin.aggregates.function import Arguments
from muntin.sql.functions import Ban, refused_functions
from muntin.sql.grouping_sets import is_grouping
from muntin.sql.lexer import Tokens, closing, is_number, is_symbol, is_text, split_commas, word
from muntin.sql.over_syntax import is_over
from muntin.sql.probe import DuckRefusalError, ask
from muntin.sql.refusals import is_called
from muntin.sql.writer import plain_text

_NEST = "Aggregate in a sub-select in FROM first"


@dataclass(frozen=True)
class Call:
    """A call of an aggregate.

    From which token to which (the end not included), its function and what is in it.
    """

    start: int
    end: int
    tokens: Tokens
    function: AggregateFunction
    distinct: bool
    argument: Tokens | None
    fraction: str
    condition: Tokens | None
    key: Tokens | None = None
    separator: str = ""


def is_aggregate(tokens: Tokens, index: int) -> bool:
    """Return whether a call of an aggregate begins here."""
    if index + 1 >= len(tokens) or not is_symbol(tokens[index + 1], "("):
        return False
    before = tokens[index - 1] if index else None
    name = tokens[index].text.lower()
    # DuckDB's catalog does not list what its parser turns into something else.
    return (
        function_called(name) is not None or refused_functions().get(name) is Ban.AGGREGATE
    ) and is_called(tokens[index], before)


def _known() -> str:
    """Return the names of all aggregate functions, for people."""
    *names, last = (name.upper() for name in aggregate_functions())
    return f"{', '.join(names)} and {last}"


def refuse_aggregates(tokens: Tokens | None, where: str, hint: str) -> None:
    """Raise if there is an aggregate, GROUPING or a window function where none can be."""
    for index in range(len(tokens) if tokens else 0):
        if tokens is not None and is_over(tokens, index):
            fact = f"a window function cannot stand {where}"
            hint = "Write it in the select list of a sub-select in FROM, or in QUALIFY"
            raise tokens.error(tokens[index], fact, hint)
        if tokens is not None and is_grouping(tokens, index):
            name = tokens[index].text
            hint = "It is over the keys of GROUP BY, in the select list and HAVING"
            raise tokens.error(tokens[index], f"{name} cannot stand {where}", hint)
        if tokens is not None and is_aggregate(tokens, index):
            raise tokens.error(tokens[index], f"an aggregate cannot stand {where}", hint)


def find_calls(tokens: Tokens) -> Iterator[Call]:
    """Yield the calls of aggregates, from left to right."""
    index = 0
    while index < len(tokens):
        if is_aggregate(tokens, index):
            call = _read_call(tokens, index)
            yield call
            index = call.end
        else:
            index += 1


def _read_call(tokens: Tokens, start: int) -> Call:
    name = tokens[start]
    spelling = name.text.lower()
    function = function_called(spelling)
    if start > 0 and is_symbol(tokens[start - 1], "."):
        raise tokens.error(
            name,
            f"the aggregate {name.text} cannot be called with a dot",
            f"Write {name.text}(...)",
        )
    if function is None:
        raise tokens.error(
            name, f"the aggregate {name.text} is not supported", f"There are {_known()}"
        )
    end = closing(tokens, start + 1)
    if end is None:
        raise tokens.error(
            tokens[start + 1], "the parenthesis is not closed", f"Write {name.text}(...)"
        )
    inside = tokens.part(start + 2, end)
    if spelling == function.within_group:
        return _read_within(tokens, start, end, function)
    distinct = len(inside) > 0 and word(inside[0]) == "DISTINCT"
    if len(inside) and word(inside[0]) in {"DISTINCT", "ALL"}:
        inside = inside.part(1)
    for token in inside:
        if word(token) in {"ORDER BY", "ORDER"}:
            hint = "The order of rows does not change this aggregate"
            if function.by_time:
                keyed = function.arguments is Arguments.WITH_KEY
                hint = f"{name.text} goes by {'its key, then by ' if keyed else ''}time"
            raise tokens.error(
                token, f"ORDER BY inside {name.text} is not supported", f"{hint}; leave it out"
            )
    refuse_aggregates(inside, "inside another one", _NEST)
    separator = ""
    if function.arguments is Arguments.WITH_SEPARATOR:
        inside, separator = _read_separator(inside, name.text)
    argument, fraction, key = _read_arguments(inside, function, tokens.source(name))
    pair = function.arguments is Arguments.PAIR
    if distinct and (function.by_time or not function.takes_distinct):
        why = "It is one value already" if function.takes_distinct else "Leave DISTINCT out"
        why = "Take DISTINCT pairs in a sub-select in FROM" if pair else why
        raise tokens.error(
            name,
            f"{name.text} with DISTINCT is not supported",
            f"{why}: write {name.text}({function.arguments})",
        )
    if distinct and argument is None:
        raise tokens.error(
            name, "DISTINCT needs an expression", f"Write {name.text}(DISTINCT expression)"
        )
    condition, stop = _read_filter(tokens, end + 1)
    if condition is not None and not function.takes_filter:
        raise tokens.error(
            name, f"{name.text} with FILTER is not supported", "Write the condition in WHERE"
        )
    distinct = (distinct or function.always_distinct) and not function.ignores_duplicates
    return Call(
        start,
        stop,
        tokens.part(start, stop),
        function,
        distinct,
        argument,
        fraction,
        condition,
        key,
        separator,
    )


def _read_filter(tokens: Tokens, stop: int) -> tuple[Tokens | None, int]:
    """Return the condition of a FILTER that may begin here, and where the call then ends."""
    condition = None
    if (
        stop + 1 < len(tokens)
        and word(tokens[stop]) == "FILTER"
        and is_symbol(tokens[stop + 1], "(")
    ):
        close = closing(tokens, stop + 1)
        condition = tokens.part(stop + 2, close)
        if close is None or not len(condition) or word(condition[0]) != "WHERE":
            raise tokens.error(
                tokens[stop], "FILTER needs a condition", "Write FILTER (WHERE condition)"
            )
        condition = condition.part(1)
        refuse_aggregates(condition, "in FILTER", _NEST)
        stop = close + 1
    return condition, stop


def _read_within(tokens: Tokens, start: int, end: int, function: AggregateFunction) -> Call:
    """``PERCENTILE_CONT(fraction) WITHIN GROUP (ORDER BY expression)``.

    The quantile of the standard.
    """
    name = tokens[start].text
    form = (
        f"Write {name}(fraction) WITHIN GROUP (ORDER BY expression), "
        "or QUANTILE_CONT(expression, fraction)"
    )
    parts = split_commas(tokens.part(start + 2, end))
    begin = next(
        (
            at + 1
            for at in (end + 1, end + 2)
            if at < len(tokens) and word(tokens[at]) in {"WITHIN GROUP", "GROUP"}
        ),
        None,
    )
    close = (
        closing(tokens, begin)
        if begin is not None and begin < len(tokens) and is_symbol(tokens[begin], "(")
        else None
    )
    if len(parts) != 1 or begin is None or close is None:
        raise tokens.error(
            tokens[start], f"{name} takes one fraction, and WITHIN GROUP what it is over", form
        )
    inside = tokens.part(begin + 1, close)
    at = next(
        (number + 1 for number, token in enumerate(inside) if word(token) in {"ORDER BY", "BY"}),
        None,
    )
    argument = None if at is None else inside.part(at)
    if argument is None or not len(argument) or len(split_commas(argument)) != 1:
        raise tokens.error(tokens[begin], f"{name} needs one expression to go by", form)
    down = word(argument[len(argument) - 1]) == "DESC"
    if down or word(argument[len(argument) - 1]) == "ASC":
        argument = argument.part(0, len(argument) - 1)
    refuse_aggregates(argument, "inside another one", _NEST)
    fraction = _read_fraction(parts[0], name, form)
    if down:
        fraction = str(1 - Decimal(fraction))
    condition, stop = _read_filter(tokens, close + 1)
    return Call(
        start,
        stop,
        tokens.part(start, stop),
        function,
        distinct=False,
        argument=argument,
        fraction=fraction,
        condition=condition,
    )


def _read_separator(inside: Tokens, name: str) -> tuple[Tokens, str]:
    """Return what comes before the separator, and the separator as SQL, by default a comma."""
    parts = split_commas(inside)
    if len(parts) != 2:
        return inside, "','"
    if len(parts[1]) != 1 or not is_text(parts[1][0]):
        raise inside.error(
            parts[1].start,
            f"the separator of {name} must be a text",
            f"Write {name}(expression, ', ')",
        )
    return parts[0], plain_text(parts[1])


def _read_fraction(tokens: Tokens, name: str, form: str) -> str:
    text = plain_text(tokens)
    if len(tokens) != 1 or not is_number(tokens[0]) or not 0 <= Decimal(text) <= 1:
        raise tokens.error(
            tokens.start, f"the fraction of {name} must be a number from 0 to 1", form
        )
    return text


def _read_arguments(
    inside: Tokens, function: AggregateFunction, name: str
) -> tuple[Tokens | None, str, Tokens | None]:
    """Return the expression, None for ``COUNT(*)`` and ``COUNT()``.

    The fraction of a quantile; the key to go by.
    """
    if function.arguments is Arguments.OPTIONAL and (
        not len(inside) or (len(inside) == 1 and is_symbol(inside[0], "*"))
    ):
        return None, "", None
    parts = split_commas(inside)
    two = {Arguments.WITH_FRACTION, Arguments.WITH_KEY, Arguments.PAIR}
    wanted = 2 if function.arguments in two else 1
    if len(parts) != wanted or not all(len(part) for part in parts):
        form = f"{name}({function.arguments if wanted == 2 else 'expression'})"
        raise inside.error(
            inside.start,
            f"{name} takes {'two arguments' if wanted == 2 else 'one argument'}",
            f"Write {form}",
        )
    if len(parts[0]) == 1 and is_symbol(parts[0][0], "*"):
        raise inside.error(
            inside.start, f"{name} needs an expression, not *", f"Write {name}(expression)"
        )
    if function.arguments in {Arguments.WITH_KEY, Arguments.PAIR}:
        return parts[0], "", parts[1]
    if wanted == 1:
        return parts[0], "", None
    return parts[0], _read_fraction(parts[1], name, f"Write for example {name}(x, 0.9)"), None


def result_type(call: Call, argument: pa.DataType | None) -> pa.DataType:
    """Return DuckDB's type of the aggregate, if Muntin can compute it over the argument."""
    if call.argument is None or argument is None:
        return pa.int64()
    fraction = f", {call.fraction}" if call.fraction else ", 1" if call.key is not None else ""
    form = f"{{}}({'DISTINCT ' if call.distinct else ''}x{fraction})"
    return argument_type(call.function, argument, call.tokens, form)


def argument_type(
    function: AggregateFunction, argument: pa.DataType, tokens: Tokens, form: str = "{}(x)"
) -> pa.DataType:
    """Return DuckDB's type of an aggregate over an argument of a type; raise if it takes none."""
    if not function.accepts(argument):
        fact = f"{plain_text(tokens)} is over the type {argument}, which is not supported"
        raise tokens.error(tokens.start, fact, "Cast it to a number, for example CAST(x AS DOUBLE)")
    try:
        return _ask_type(form.format(function.kept_as or function.name), argument)
    except DuckRefusalError as refusal:
        raise tokens.error(
            tokens.start, refusal.fact, refusal.advice or "Correct the argument"
        ) from refusal


@lru_cache(maxsize=1_024)
def _ask_type(call: str, argument: pa.DataType) -> pa.DataType:
    """Return the type that DuckDB gives a call over a column ``x`` of that type."""
    batch = pa.table({"x": pa.nulls(0, argument)})
    return ask(f"SELECT {call} AS y FROM batch", batch=batch).schema.field(0).type
