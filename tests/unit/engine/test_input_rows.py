"""All forms of input give the same rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from muntin.engine.input_rows import read_rows, read_times
from muntin.errors import InputError

SCHEMA = pa.schema(
    [("k", pa.int32()), ("Name", pa.string()), ("x", pa.float64()), ("ts", pa.timestamp("us"))]
)
WANTED = pa.table(
    [
        [1, None],
        ["a", None],
        [0.5, None],
        pa.array([1_000_000, 2_000_000]).cast(pa.timestamp("us")),
    ],
    schema=SCHEMA,
)
MOMENTS = [
    datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
    datetime(1970, 1, 1, 2, 0, 2, tzinfo=timezone(timedelta(hours=2))),
]

FORMS: dict[str, Callable[[], Any]] = {
    "table": lambda: WANTED,
    "batch": lambda: WANTED.to_batches()[0],
    "other order and case": lambda: WANTED.select(["ts", "x", "Name", "k"]).rename_columns(
        ["TS", "X", "name", "K"]
    ),
    "wider types": lambda: pa.table(
        {
            "k": pa.array([1, None], pa.int64()),
            "Name": pa.array(["a", None], pa.large_string()),
            "x": pa.array([0.5, None], pa.float32()),
            "ts": pa.array([1, 2], pa.timestamp("s")),
        }
    ),
    "integer times": lambda: WANTED.set_column(3, "ts", pa.array([1_000_000, 2_000_000])),
    "zoned times": lambda: WANTED.set_column(
        3, "ts", pa.array([1_000_000, 2_000_000]).cast(pa.timestamp("us", tz="Asia/Tokyo"))
    ),
    "text times": lambda: WANTED.set_column(
        3, "ts", pa.array(["1970-01-01 00:00:01", "1970-01-01T00:00:02"])
    ),
    "dictionary": lambda: WANTED.set_column(1, "Name", WANTED.column("Name").dictionary_encode()),
    "several chunks": lambda: pa.concat_tables([WANTED.slice(0, 1), WANTED.slice(1, 1)]),
    "pandas": WANTED.to_pandas,
    "pandas with an index": lambda: WANTED.to_pandas().set_index(pd.Index([7, 8])),
    "pandas of nullable types": lambda: WANTED.to_pandas().convert_dtypes(),
    "dicts": lambda: [{"k": 1, "Name": "a", "x": 0.5, "ts": 1_000_000}, {"ts": 2_000_000}],
    "dicts of mixed case": lambda: [
        {"K": 1, "NAME": "a", "x": 0.5, "ts": 1_000_000},
        {"k": None, "TS": 2_000_000},
    ],
    "tuples": lambda: [(1, "a", 0.5, 1_000_000), (None, None, None, 2_000_000)],
    "lists": lambda: [[1.0, "a", 0.5, "1970-01-01 00:00:01"], [None, None, None, MOMENTS[1]]],
    "numbers of numpy": lambda: [
        (np.int64(1), "a", np.float32(0.5), np.int64(1_000_000)),
        (None, None, None, 2_000_000),
    ],
    "moments": lambda: ((1, "a", 0.5, MOMENTS[0]), (None, None, None, MOMENTS[1])),
    "pandas moments": lambda: [
        (1, "a", 0.5, pd.Timestamp(MOMENTS[0])),
        (None, None, None, pd.Timestamp(MOMENTS[1])),
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_rows(form: str) -> None:
    rows = read_rows(FORMS[form](), SCHEMA, "stream A")
    assert rows.schema == SCHEMA
    assert rows.to_pylist() == WANTED.to_pylist()
    assert read_times(rows, "ts", "stream A").tolist() == [1_000_000, 2_000_000]


@pytest.mark.parametrize(
    "empty",
    [
        [],
        (),
        SCHEMA.empty_table(),
        pa.RecordBatch.from_pylist([], SCHEMA),
        pd.DataFrame(columns=SCHEMA.names),
        WANTED.to_pandas().iloc[:0],
    ],
    ids=["list", "tuple", "table", "batch", "frame without types", "frame"],
)
def test_no_rows_of_any_kind(empty: Any) -> None:
    rows = read_rows(empty, SCHEMA, "stream A")
    assert (len(rows), rows.schema) == (0, SCHEMA)
    assert read_times(rows, "ts", "stream A").tolist() == []


def test_a_table_of_the_schema_is_not_copied() -> None:
    assert read_rows(WANTED, SCHEMA, "stream A") is WANTED


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            WANTED.append_column("y", [[1, 2]]),
            "the rows for stream A have a column 'y' that does not belong there",
        ),
        (WANTED.append_column("K", [[1, 2]]), "have a column 'K' that does not belong there"),
        (WANTED.drop_columns(["k", "x"]), "the rows for stream A have no column 'k', 'x'"),
        (
            WANTED.set_column(0, "k", pa.array([1, 2**31])),
            "column 'k' of the rows for stream A is int64 and cannot become int32",
        ),
        (
            WANTED.set_column(0, "k", pa.array([1, 1.5])),
            "column 'k' .* is double and cannot become int32",
        ),
        (
            WANTED.set_column(3, "ts", pa.array([1.0, 2.0])),
            "column 'ts' .* is double and cannot become timestamp",
        ),
        (
            WANTED.set_column(3, "ts", pa.array([1, 2], pa.timestamp("ns"))),
            "column 'ts' .* cannot become timestamp",
        ),
        (
            pd.DataFrame([[1, 2, 3, 4]], columns=["k", "k", "x", "ts"]),
            "the DataFrame for stream A cannot be converted: Duplicate column",
        ),
        (pd.DataFrame({"k": [1j]}), "the DataFrame for stream A cannot be converted"),
        (
            [(1, b"a", 0.5, 0)],
            "row 0 for stream A: column 'Name' is string and cannot be b'a': bytes are not text",
        ),
        ([(1, "a", "x", 0)], "row 0 for stream A: column 'x' is double and cannot be 'x'"),
        (
            [(1, "a", 0.5, 0), (2**31, "a", 0.5, 0)],
            "row 1 for stream A: column 'k' is int32 and cannot be 2147483648",
        ),
        ([(True, "a", 0.5, 0)], "row 0 for stream A: column 'k' is int32 and cannot be True"),
        (
            [(float("nan"), "a", 0.5, 0)],
            "row 0 for stream A: column 'k' is int32 and cannot be nan",
        ),
        (
            [(float("inf"), "a", 0.5, 0)],
            "row 0 for stream A: column 'k' is int32 and cannot be inf",
        ),
        ([(1, "a", 0.5, date(1970, 1, 1))], "row 0 for stream A: column 'ts' is timestamp"),
        ([(1, "a", 0.5, pd.NaT)], "row 0 for stream A: column 'ts' is timestamp"),
        ([(1, "a", 0.5, 1.5)], "row 0 for stream A: column 'ts' is timestamp"),
        ([{"k": 1, 2: 3}], "the rows for stream A have a column 2 that does not belong there"),
        (["abcd"], "row 0 for stream A does not have 4 values: 'abcd'"),
        ([1, 2], "row 0 for stream A does not have 4 values: 1"),
        ([{1, 2, 3, 4}], "row 0 for stream A does not have 4 values"),
        ({"k": [1]}, "cannot take rows from dict for stream A"),
        (iter([]), "cannot take rows from list_iterator for stream A"),
        (np.zeros((1, 4)), "cannot take rows from ndarray for stream A"),
    ],
)
def test_rows_that_do_not_fit_get_specific_errors(rows: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        read_rows(rows, SCHEMA, "stream A")
    assert raised.value.hint


@pytest.mark.parametrize("time", [2**62, -(2**62), 2**63 - 1])
def test_times_must_leave_room_for_a_window(time: int) -> None:
    with pytest.raises(
        InputError, match="a row for stream A has a time out of range in column 'ts'"
    ):
        read_times(read_rows([(1, "a", 0.5, time)], SCHEMA, "stream A"), "ts", "stream A")
