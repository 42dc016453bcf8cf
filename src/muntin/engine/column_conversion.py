"""Convert what users push, Python values or Arrow columns, into the types of columns.

Both follow one table of rules (:mod:`muntin.engine.flat_conversion`), so the form in which rows
arrive makes no difference: values of one kind become the Arrow array that holds them unchanged,
and that is converted. Lists, structs and maps are converted child by child.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from enum import Enum
from functools import cache
from itertools import chain
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from pyarrow import types as pat

from muntin.engine.flat_conversion import (
    MOST_DIGITS,
    Column,
    check_zoneless,
    convert_flat,
    decoded,
    is_text,
    to_floating,
)
from muntin.engine.nested_conversion import are_nested_alike, convert_nested, is_list

_EPOCH_UNITS = ("s", "ms", "us", "ns")


def convert(column: Column, kind: pa.DataType) -> Column:
    """Return the column as ``kind``; raise ValueError, TypeError or an Arrow error if it does not fit.

    Integers in a timestamp column are microseconds since 1970, whatever the unit of the column.
    """
    if column.type == kind:
        return column
    column = decoded(column)
    if not are_nested_alike(column.type, kind):
        return convert_flat(column, kind)
    if isinstance(column, pa.Array):
        return convert_nested(column, kind, _convert_child)
    chunks = [convert_nested(chunk, kind, _convert_child) for chunk in column.chunks]
    return pa.chunked_array(chunks, kind)


def _convert_child(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert a child as the values that it holds: NULLs, and no values, fit any type."""
    if column.null_count == len(column):
        return pa.nulls(len(column), kind)
    if pat.is_floating(kind) and (pat.is_decimal(column.type) or pat.is_uint64(column.type)):
        return from_values(column.to_pylist(), kind)  # Python rounds to the nearest float
    return convert(column, kind)


class _Kind(Enum):
    """Kinds of Python values; each has one Arrow type that holds it unchanged."""

    NONE = "None"
    BOOLEAN = "a boolean"
    INTEGER = "an integer"
    REAL = "a float"
    DECIMAL = "a Decimal"
    TEXT = "text"
    BINARY = "bytes"
    IDENTIFIER = "a UUID"
    DATETIME = "a datetime"
    DATE = "a date"
    TIME = "a time"
    DURATION = "a timedelta"
    NUMPY_DATETIME = "a datetime64"
    NUMPY_DURATION = "a timedelta64"
    INTERVAL = "an interval"
    LIST = "a list"
    MAPPING = "a dict"
    OTHER = "none of the kinds that columns hold"


_KINDS: tuple[tuple[type | tuple[type, ...], _Kind], ...] = (
    (type(None), _Kind.NONE),
    ((bool, np.bool_), _Kind.BOOLEAN),
    # A timedelta64 is a numpy integer, so it has to come first.
    (np.timedelta64, _Kind.NUMPY_DURATION),
    (np.datetime64, _Kind.NUMPY_DATETIME),
    ((int, np.integer), _Kind.INTEGER),
    ((float, np.floating), _Kind.REAL),
    (Decimal, _Kind.DECIMAL),
    (str, _Kind.TEXT),
    ((bytes, bytearray, memoryview), _Kind.BINARY),
    (UUID, _Kind.IDENTIFIER),
    (datetime, _Kind.DATETIME),
    (date, _Kind.DATE),
    (time_of_day, _Kind.TIME),
    (timedelta, _Kind.DURATION),
    (pa.MonthDayNano, _Kind.INTERVAL),
    ((list, tuple, np.ndarray), _Kind.LIST),
    (Mapping, _Kind.MAPPING),
)


@cache
def _kind_of(python_type: type) -> _Kind:
    """Return the kind of the values of a class; pandas' NaT calls itself a datetime but is none."""
    if python_type.__name__ == "NaTType":
        return _Kind.OTHER
    return next((kind for known, kind in _KINDS if issubclass(python_type, known)), _Kind.OTHER)


def from_values(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return Python values as an Arrow array of ``kind``; fail as :func:`convert` does."""
    kinds = {_kind_of(python_type) for python_type in set(map(type, values))} - {_Kind.NONE}
    if not kinds:
        return pa.nulls(len(values), kind)
    if len(kinds) == 1:
        return _uniform(values, kinds.pop(), kind)
    kind_of_each = [_kind_of(type(value)) for value in values]  # type: ignore[arg-type]
    pieces, places = [], []
    for each in {*kinds, _Kind.NONE}:
        own = [place for place, found in enumerate(kind_of_each) if found is each]
        if own:
            pieces.append(from_values([values[place] for place in own], kind))
            places.append(np.array(own))
    return pa.concat_arrays(pieces).take(pa.array(np.argsort(np.concatenate(places))))


def _uniform(values: Sequence[Any], given: _Kind, kind: pa.DataType) -> pa.Array:
    """Convert values of one kind, and Nones."""
    if is_list(kind) and given is _Kind.LIST:
        return _list_array(values, kind)
    if pat.is_struct(kind) and given is _Kind.MAPPING:
        return _struct_array(values, kind)
    if pat.is_map(kind) and given in {_Kind.MAPPING, _Kind.LIST}:
        return _map_array(values, kind)
    if pat.is_interval(kind) and given is _Kind.INTERVAL:
        return pa.array(values, kind)
    if given not in _NATURAL:
        raise TypeError(
            f"it is {given.value}"
            if given is _Kind.OTHER
            else f"{given.value} does not convert to {kind}"
        )
    if given is _Kind.BINARY and is_text(kind):
        raise TypeError("bytes are not text")
    if given is _Kind.DECIMAL and pat.is_floating(kind):
        _check_finite(values)
        return _to_floating_decimals(values, kind)
    return _one_array(convert_flat(_NATURAL[given](values), kind))


def _one_array(column: Column) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _booleans(values: Sequence[Any]) -> pa.Array:
    return pa.array(values, pa.bool_())


def _integers(values: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(values, pa.int64())
    except (pa.ArrowInvalid, OverflowError):
        whole = [None if value is None else Decimal(int(value)) for value in values]
        return pa.array(whole, pa.decimal256(MOST_DIGITS, 0))


def _reals(values: Sequence[Any]) -> pa.Array:
    return pa.array(values, pa.float64())


def _decimals(values: Sequence[Any]) -> pa.Array:
    _check_finite(values)
    return pa.array(values)


def _check_finite(values: Sequence[Any]) -> None:
    if not all(value is None or value.is_finite() for value in values):
        raise ValueError("the Decimal is not finite")


def _to_floating_decimals(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Round decimals to the nearest float; Python does that exactly, Arrow does not."""
    reals = [None if value is None else float(value) for value in values]
    if any(value is not None and abs(value) == float("inf") for value in reals):
        raise ValueError(f"value out of range of {kind}")
    return _one_array(to_floating(pa.array(reals, pa.float64()), kind))


def _texts(values: Sequence[Any]) -> pa.Array:
    return pa.array(values, pa.string())


def _binaries(values: Sequence[Any]) -> pa.Array:
    return pa.array(values, pa.binary())


def _identifiers(values: Sequence[Any]) -> pa.Array:
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _datetimes(values: Sequence[Any]) -> pa.Array:
    """Hold datetimes as instants, naive ones as UTC; only those of pandas have nanoseconds."""
    unit = "ns" if any(getattr(value, "nanosecond", 0) for value in values) else "us"
    return pa.array(values, pa.timestamp(unit, "UTC"))


def _dates(values: Sequence[Any]) -> pa.Array:
    return pa.array(values, pa.date32())


def _times(values: Sequence[Any]) -> pa.Array:
    check_zoneless(values)
    return pa.array(values, pa.time64("us"))


def _durations(values: Sequence[Any]) -> pa.Array:
    unit = "ns" if any(getattr(value, "nanoseconds", 0) for value in values) else "us"
    return pa.array(values, pa.duration(unit))


def _numpy_times(values: Sequence[Any]) -> pa.Array:
    """Hold datetime64 or timedelta64 values in their own unit, coarse units as seconds."""
    present = np.array([value for value in values if value is not None])
    unit, _ = np.datetime_data(present.dtype)
    name = "datetime64" if present.dtype.kind == "M" else "timedelta64"
    if np.isnat(present).any():
        raise ValueError("NaT is not a time; use None")
    if unit not in _EPOCH_UNITS:
        present = present.astype(f"{name}[s]", casting="same_kind")
        if present.dtype.kind == "m" and unit in {"Y", "M"}:
            raise ValueError("months have no fixed length")
    found = pa.array(present)
    missing = np.fromiter((value is None for value in values), bool, len(values))
    return found.take(pa.array(np.where(missing, 0, np.cumsum(~missing) - 1), mask=missing))


_NATURAL: dict[_Kind, Callable[[Sequence[Any]], pa.Array]] = {
    _Kind.BOOLEAN: _booleans,
    _Kind.INTEGER: _integers,
    _Kind.REAL: _reals,
    _Kind.DECIMAL: _decimals,
    _Kind.TEXT: _texts,
    _Kind.BINARY: _binaries,
    _Kind.IDENTIFIER: _identifiers,
    _Kind.DATETIME: _datetimes,
    _Kind.DATE: _dates,
    _Kind.TIME: _times,
    _Kind.DURATION: _durations,
    _Kind.NUMPY_DATETIME: _numpy_times,
    _Kind.NUMPY_DURATION: _numpy_times,
}


# -- nested values ---------------------------------------------------------------------------------


def _missing(values: Sequence[Any]) -> pa.Array:
    return pa.array([value is None for value in values], pa.bool_())


def _list_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pat.is_fixed_size_list(kind):
        size = kind.list_size
        if any(value is not None and len(value) != size for value in values):
            raise ValueError(f"not {size} elements")
        filled = chain.from_iterable([None] * size if value is None else value for value in values)
        items = from_values(list(filled), kind.value_type)
        return pa.FixedSizeListArray.from_arrays(items, type=kind, mask=_missing(values))
    items = from_values(
        list(chain.from_iterable(value for value in values if value is not None)), kind.value_type
    )
    maker = pa.LargeListArray if pat.is_large_list(kind) else pa.ListArray
    return maker.from_arrays(_offsets(values), items, type=kind, mask=_missing(values))


def _offsets(values: Sequence[Any]) -> pa.Array:
    sizes = np.fromiter(
        (0 if value is None else len(value) for value in values), np.int64, len(values)
    )
    return pa.array(np.append(0, np.cumsum(sizes)).astype(np.int32))


def _struct_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    names = {field.name for field in kind}
    unknown = {name for value in values if value is not None for name in value} - names
    if unknown:
        raise ValueError(f"there is no field {min(map(repr, unknown))}")
    fields = [
        from_values(
            [None if value is None else value.get(field.name) for value in values], field.type
        )
        for field in kind
    ]
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=_missing(values))


def _map_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    entries = [list(value.items()) if isinstance(value, Mapping) else value for value in values]
    pairs = list(chain.from_iterable(value for value in entries if value is not None))
    if any(not isinstance(pair, tuple) or len(pair) != 2 or pair[0] is None for pair in pairs):
        raise ValueError("entries of a map are pairs of a key and a value")
    for value in entries:
        if value is not None and len({repr(pair[0]) for pair in value}) != len(value):
            raise ValueError("a key of the map appears twice")
    keys = from_values([key for key, _ in pairs], kind.key_type)
    items = from_values([item for _, item in pairs], kind.item_type)
    return pa.MapArray.from_arrays(_offsets(entries), keys, items, type=kind, mask=_missing(values))
