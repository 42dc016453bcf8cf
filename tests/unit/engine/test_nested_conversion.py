"""Arrow columns of lists, structs, maps and texts convert like the same Python values."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from muntin.engine.column_conversion import convert, from_values
from muntin.engine.input_rows import UNFIT
from muntin.engine.nested_conversion import are_nested_alike

Convert = Callable[[Any, pa.DataType], Any]
INT, BIG, TEXT = pa.int32(), pa.int64(), pa.string()
STRUCT, MAP = pa.struct([("a", INT), ("b", TEXT)]), pa.map_(TEXT, INT)
LISTS = pa.array([[9, 9], [1, 2], None, [], [None, 3], [4, 5]], pa.list_(INT))
MAPS = pa.array([[("a", 1), ("b", 2)], None, [], [("1", None)]], MAP)
HIDDEN = pa.array([False, True, False])
"""Marks the second of three values as NULL, whatever stands below it."""

NESTED: tuple[pa.Array, ...] = (
    LISTS,
    LISTS.slice(1, 3),
    LISTS.slice(3, 1),
    pa.ListArray.from_arrays(pa.array([0, 2, 4, 6], INT), pa.array(range(6), INT), mask=HIDDEN),
    pa.array([[1, 2], None], pa.large_list(INT)),
    pa.array([[9, 9], [1, 2], None, [3, None]], pa.list_(INT, 2)).slice(1),
    pa.array([["1", "2"], None], pa.list_(TEXT)),
    pa.array([["2026-01-01 00:00:05+02:00"], ["2026-01-01"]], pa.list_(TEXT)),
    pa.array([["x"]], pa.list_(TEXT)),
    pa.array([[Decimal("1.10")], None], pa.list_(pa.decimal128(9, 2))),
    pa.array([[2**63]], pa.list_(pa.uint64())),
    pa.array([[[1], None], []], pa.list_(pa.list_(INT))),
    pa.array([["a", "b"], ["a"]], pa.list_(pa.dictionary(pa.int8(), TEXT))),
    pa.array([None, None], pa.list_(TEXT)),
    pa.array([], pa.list_(INT)),
    pa.array([{"a": 1, "b": "2"}, None, {"a": None, "b": "3"}], STRUCT).slice(1),
    pa.StructArray.from_arrays(
        [pa.array([1, 2, 3], INT), pa.array(["1", "x", "3"])], ["a", "b"], mask=HIDDEN
    ),
    pa.array([{"a": 1}], pa.struct([("a", INT)])),
    pa.array([{"c": 1}], pa.struct([("c", INT)])),
    pa.array([None], pa.struct([("c", INT)])),
    MAPS,
    MAPS.slice(1),
    pa.array([[("1", 1)], [("1", 2)]], MAP),
    pa.array([[("1", 1), ("1", 2)]], MAP),
    pa.array([[([1], 1), ([2], 2)]], pa.map_(pa.list_(INT), INT)),
    pa.array([[([1], 1), ([1], 2)]], pa.map_(pa.list_(INT), INT)),
    pa.MapArray.from_arrays(
        pa.array([0, 1, 2, 3], INT),
        pa.array(["a", "x", "b"]),
        pa.array([1, 2, 3], INT),
        mask=HIDDEN,
    ),
)
KINDS = (
    pa.list_(BIG), pa.large_list(BIG), pa.list_(BIG, 2), pa.list_(pa.int8()),
    pa.list_(pa.float64()), pa.list_(TEXT),
    pa.list_(pa.timestamp("s")), pa.list_(pa.decimal128(18, 3)), pa.list_(pa.list_(BIG)),
    pa.struct([("a", BIG), ("b", INT)]), pa.struct([("b", TEXT), ("a", BIG)]), pa.map_(TEXT, BIG),
    pa.map_(INT, INT),
    pa.map_(pa.list_(BIG), BIG),
)  # fmt: skip


def outcome(convert: Convert, given: Any, kind: pa.DataType) -> list[Any] | None:
    """Return the result of a conversion, or None if it fails."""
    try:
        found = convert(given, kind)
    except UNFIT:
        return None
    found.validate(full=True)
    values: list[Any] = found.to_pylist()
    return values


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_nested_column_converts_like_its_values(kind: pa.DataType) -> None:
    for array in (array for array in NESTED if are_nested_alike(array.type, kind)):
        wanted = outcome(from_values, array.to_pylist(), kind)
        assert outcome(convert, array, kind) == wanted, array
        twice = outcome(convert, pa.chunked_array([array, array]), kind)
        assert twice == (None if wanted is None else wanted * 2)


TIMES = (
    "12:30:00", "12:30", "12", "123000", "T12:30", "12:30:00.5", "12:30:00.123456",
    "12:30:00.1234567", "24:00:00",
    "12:30:00Z", " 12:30:00", "abc", "",
)  # fmt: skip
INSTANTS = (
    "2026-01-01 00:00:05", "2026-01-01", "2026-01-01 00:00:05Z", "2026-01-01T00:00:05+02:00",
    "2026-01-01 00:00:05-0230",
    "2026-01-01 00:00:05.5+02", "2026-01-01 00:00:05.123456789Z", "20260101T000005Z",
    "9999-12-31 18:00:00-05:00", "x",
)  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "kind"),
    [(TIMES, pa.time64("us")), (TIMES, pa.time32("s"))]
    + [
        (INSTANTS, pa.timestamp(unit, zone)) for unit in ("s", "us", "ns") for zone in (None, "UTC")
    ],
    ids=lambda value: str(value) if isinstance(value, pa.DataType) else "",
)
def test_a_text_is_read_the_same_alone_and_among_others(
    texts: tuple[str, ...], kind: pa.DataType
) -> None:
    alone = {text: outcome(convert, pa.array([text]), kind) for text in texts}
    assert None in alone.values()
    read = {text: found[0] for text, found in alone.items() if found is not None}
    assert len(read) > 3
    assert outcome(convert, pa.array([None, *read]), kind) == [None, *read.values()]
    for text, found in read.items():  # Arrow may or may not read a pair of forms at once
        pair = outcome(convert, pa.array([texts[0], text]), kind)
        assert pair == [read[texts[0]], found]


def test_durations_become_days_and_the_remainder_of_a_day() -> None:
    day = timedelta(days=1)
    durations = [timedelta(0), day, -day, -timedelta(microseconds=1), None, 40 * day + day / 3]
    kind = pa.month_day_nano_interval()
    column = pa.array([day, *durations], pa.duration("us")).slice(1)
    assert convert(column, kind).to_pylist() == pa.array(durations, kind).to_pylist()
