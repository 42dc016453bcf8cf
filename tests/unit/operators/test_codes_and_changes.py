"""Codes keep equality and order; changes of one instant cancel."""

from __future__ import annotations

import datetime as dt
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.expressions.codes import real_codes, whole_codes
from muntin.expressions.duck import Duck
from muntin.operators.consolidate import consolidate
from muntin.state.columns import sign_column, time_column


@given(st.lists(st.floats(allow_nan=True), min_size=2, max_size=20))
def test_real_codes_order_as_duckdb_does(values: list[float]) -> None:
    """There is no negative zero and one NaN, which is above infinity."""
    codes = real_codes(pa.chunked_array([pa.array(values, pa.float64())])).tolist()
    for left, a in zip(codes, values, strict=True):
        for right, b in zip(codes, values, strict=True):
            same = a == b or (math.isnan(a) and math.isnan(b))
            less = (not math.isnan(a) and math.isnan(b)) or a < b
            assert (left == right, left < right) == (same, less)


@pytest.mark.parametrize(
    ("values", "kind", "codes"),
    [
        ([1, None, -5], pa.int16(), [1, 0, -5]),
        ([True, None, False], pa.bool_(), [1, 0, 0]),
        ([dt.date(1970, 1, 2), None], pa.date32(), [1, 0]),
        ([dt.time(0, 0, 1), None], pa.time64("us"), [1_000_000, 0]),
        ([5, None], pa.timestamp("us"), [5, 0]),
        ([2**64 - 1], pa.uint64(), [-1]),
    ],
)
def test_whole_codes_are_the_numbers_underneath(
    values: list[object], kind: pa.DataType, codes: list[int]
) -> None:
    assert whole_codes(pa.chunked_array([pa.array(values, kind)])).tolist() == codes


def changes(*rows: tuple[str, int, object]) -> pa.Table:
    signs, times, values = zip(*rows, strict=True)
    return pa.table(
        {
            "_op": list(signs),
            "_ts": pa.array(times).cast(pa.timestamp("us")),
            "x": pa.array(values, pa.int64()),
        }
    )


def test_equal_rows_cancel_at_one_instant_only() -> None:
    before = changes(
        ("+", 1, 5),
        ("-", 2, 5),
        ("+", 2, 5),
        ("+", 2, 6),
        ("-", 3, 6),
        ("+", 3, None),
        ("-", 3, None),
        ("-", 3, 7),
        ("-", 3, 7),
        ("+", 3, 7),
    )
    after = consolidate(before, Duck())
    assert list(zip(*(after.column(name).to_pylist() for name in ("_op", "x")), strict=True)) == [
        ("+", 5),
        ("+", 6),
        ("-", 6),
        ("-", 7),
    ]


def test_changes_are_put_in_the_order_of_time() -> None:
    after = consolidate(changes(("+", 3, 1), ("+", 1, 2), ("+", 1, 3)), Duck())
    assert after.column("x").to_pylist() == [2, 3, 1]
    assert consolidate(after.slice(0, 0), Duck()).num_rows == 0


def test_signs_and_times_are_columns_without_a_python_object_per_row() -> None:
    assert sign_column(None, 2).to_pylist() == ["+", "+"]
    assert sign_column(np.array([1, -1], np.int8), 2).to_pylist() == ["+", "-"]
    times = np.array([0, -1])
    column = time_column(times)
    times[0] = 99
    assert column.cast(pa.int64()).to_pylist() == [0, -1]
