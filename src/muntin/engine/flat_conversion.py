"""Convert Arrow columns of plain types into the types of a stream's columns: the table of rules.

A value arrives as DuckDB's CAST would give it, or the conversion fails. Conversions that lose
something (a fraction of a second, a decimal, a digit) fail too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import time as time_of_day
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pat

from muntin.model.clock import TOO_FINE, parse_instant

Column: TypeAlias = "pa.Array | pa.ChunkedArray"
Cast: TypeAlias = Callable[[Column, pa.DataType], Column]
Test: TypeAlias = Callable[[pa.DataType], bool]

_DAY = 86_400_000_000
_OFFSET = r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$"
"""The offset from UTC at the end of an ISO text."""
_INT64_DIGITS, _UINT64_DIGITS, MOST_DIGITS = 19, 20, 76


def convert_flat(column: Column, kind: pa.DataType) -> Column:
    """Return the column as ``kind``; raise ValueError, TypeError or an Arrow error if it does not fit.

    Integers in a timestamp column are microseconds since 1970, whatever the unit of the column.
    """
    if column.type == kind:
        return column
    column = decoded(column)
    if column.type == kind:
        return column
    if pat.is_null(column.type):
        return pa.nulls(len(column), kind)
    for wanted, given, cast in _RULES:
        if wanted(kind) and given(column.type):
            return cast(column, kind)
    raise TypeError(f"{column.type} does not convert to {kind}")


def decoded(column: Column) -> Column:
    """Return the column without encodings: dictionaries, runs and views become plain values."""
    kind = column.type
    if pat.is_dictionary(kind) or pat.is_run_end_encoded(kind):
        return decoded(column.cast(kind.value_type))
    if kind == pa.string_view():
        return column.cast(pa.string())
    return column.cast(pa.binary()) if kind == pa.binary_view() else column


def _cast(column: Column, kind: pa.DataType) -> Column:
    """Cast as Arrow does, which fails when a value would be cut off or overflow."""
    return column.cast(kind)


def _to_integer(column: Column, kind: pa.DataType) -> Column:
    if pat.is_decimal(column.type) and column.type.scale > 0:
        column = column.cast(_decimal(_digits(column.type), 0))
    return column.cast(kind)


def to_floating(column: Column, kind: pa.DataType) -> Column:
    """Cast numbers to floats; fail where one becomes infinite."""
    result = column.cast(kind)
    if _infinite(result) > (_infinite(column) if pat.is_floating(column.type) else 0):
        raise ValueError(f"value out of range of {kind}")
    return result


def _infinite(column: Column) -> int:
    return int(pc.sum(pc.is_inf(column)).as_py() or 0)


def _to_decimal(column: Column, kind: pa.DataType) -> Column:
    if pat.is_integer(column.type):
        digits = _UINT64_DIGITS if column.type == pa.uint64() else _INT64_DIGITS
        return column.cast(pa.decimal128(digits, 0)).cast(kind)
    result = column.cast(kind)
    if (
        pat.is_floating(column.type)
        and not pc.all(pc.equal(result.cast(column.type), column)).as_py()
    ):
        raise ValueError("the number has more digits than the column")
    return result


def _decimal(digits: int, scale: int) -> pa.DataType:
    return pa.decimal256(min(digits, MOST_DIGITS), scale)


def _digits(kind: pa.DataType) -> int:
    return int(kind.precision)


def _integers_to_timestamp(column: Column, kind: pa.DataType) -> Column:
    return column.cast(pa.int64()).cast(pa.timestamp("us", kind.tz)).cast(kind)


def _text_to_timestamp(column: Column, kind: pa.DataType) -> Column:
    """Read ISO texts, as DuckDB does in UTC where they have no offset."""
    try:
        return column.cast(pa.timestamp(kind.unit)).cast(kind)
    except pa.ArrowInvalid:
        return _instants(column).cast(pa.timestamp("us", kind.tz)).cast(kind)


def _instants(column: Column) -> Column:
    """Read ISO texts, some with an offset, as microseconds; a column that Arrow cannot read, text by text."""
    zoned = pc.match_substring_regex(column, _OFFSET)
    try:
        here = pc.if_else(zoned, None, column).cast(pa.timestamp("us"))
        elsewhere = pc.if_else(zoned, column, None).cast(pa.timestamp("us", "UTC"))
    except pa.ArrowInvalid:
        texts = column.to_pylist()
        micros = [None if text is None else parse_instant(text) for text in texts]
        return pa.array(micros, pa.int64())
    return pc.coalesce(here.cast(pa.int64()), elsewhere.cast(pa.int64()))


def _timestamp_to_date(column: Column, kind: pa.DataType) -> Column:
    result = column.cast(kind)
    if not pc.all(pc.equal(result.cast(column.type), column)).as_py():
        raise ValueError("the date has a time of day")
    return result


def _duration_to_interval(column: Column, kind: pa.DataType) -> Column:
    """Split durations into days and the rest of a day, which is never negative."""
    micros = column.cast(pa.duration("us")).cast(pa.int64())
    present = micros.fill_null(0).to_numpy()
    parts = np.empty(len(column), [("months", "i4"), ("days", "i4"), ("nanos", "i8")])
    parts["months"] = 0
    parts["days"], parts["nanos"] = np.divmod(present, _DAY)
    parts["nanos"] *= 1000
    intervals = pa.Array.from_buffers(kind, len(column), [None, pa.py_buffer(parts)])
    return intervals if not column.null_count else pc.if_else(column.is_valid(), intervals, None)


def _text_to_time(column: Column, kind: pa.DataType) -> Column:
    """Read ISO texts as those of a day; a column that Arrow cannot read so, text by text."""
    day = pa.scalar("1970-01-01", column.type)
    try:
        moments = pc.binary_join_element_wise(day, column, pa.scalar("T", column.type))
        return moments.cast(pa.timestamp("us")).cast(pa.time64("us")).cast(kind)
    except pa.ArrowInvalid:
        return _times_of_day(column.to_pylist()).cast(kind)


def _times_of_day(texts: list[str | None]) -> pa.Array:
    if any(text is not None and TOO_FINE.search(text) for text in texts):
        raise ValueError("a time of day finer than microseconds")
    times = [None if text is None else time_of_day.fromisoformat(text) for text in texts]
    check_zoneless(times)
    return pa.array(times, pa.time64("us"))


def check_zoneless(times: Iterable[Any]) -> None:
    """Raise if a time of day has a time zone, which no column holds."""
    if any(value is not None and value.tzinfo is not None for value in times):
        raise ValueError("a time of day with a time zone")


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds text."""
    return bool(pat.is_string(kind) or pat.is_large_string(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pat.is_binary(kind) or pat.is_large_binary(kind) or pat.is_fixed_size_binary(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pat.is_integer(kind) or pat.is_floating(kind) or pat.is_decimal(kind))


_RULES: tuple[tuple[Test, Test, Cast], ...] = (
    (pat.is_boolean, is_text, _cast),
    (pat.is_integer, is_text, _cast),
    (pat.is_floating, is_text, to_floating),
    (pat.is_decimal, is_text, _cast),
    (pat.is_integer, _is_number, _to_integer),
    (pat.is_floating, _is_number, to_floating),
    (pat.is_decimal, _is_number, _to_decimal),
    (is_text, is_text, _cast),
    (_is_binary, _is_binary, _cast),
    (pat.is_date, pat.is_date, _cast),
    (pat.is_date, pat.is_timestamp, _timestamp_to_date),
    (pat.is_date, is_text, _cast),
    (pat.is_time, pat.is_time, _cast),
    (pat.is_time, is_text, _text_to_time),
    (pat.is_timestamp, pat.is_timestamp, _cast),
    (pat.is_timestamp, pat.is_integer, _integers_to_timestamp),
    (pat.is_timestamp, is_text, _text_to_timestamp),
    (pat.is_duration, pat.is_duration, _cast),
    (pat.is_interval, pat.is_duration, _duration_to_interval),
)
"""Which types convert to which, and how: the wanted type, the given one, the conversion."""
