from __future__ import annotations

import pyarrow as pa
import pytest

from muntin.errors import InputError, Place, SqlError
from muntin.sql.streams import make_stream, make_table

ONE = pa.schema([("k", pa.int64()), ("At", pa.timestamp("ns"))])
TWO = pa.schema(
    [("k", pa.int64()), ("a", pa.timestamp("us")), ("b", pa.timestamp("s", tz="Europe/Berlin"))]
)
NONE = pa.schema([("k", pa.int64()), ("day", pa.date32())])


def test_the_only_timestamp_is_the_time() -> None:
    stream = make_stream("A", ONE, slack=5, options=(("format", "csv"),))
    assert (stream.name, stream.time, stream.slack, stream.options) == (
        "A",
        "At",
        5,
        (("format", "csv"),),
    )
    assert stream.schema.field("At").type == pa.timestamp("us")


def test_the_time_may_be_chosen_in_any_case_and_keeps_its_zone() -> None:
    stream = make_stream("A", TWO, time="B")
    assert stream.time == "b"
    assert stream.schema.field("b").type == pa.timestamp("us", tz="Europe/Berlin")
    assert stream.schema.field("a").type == pa.timestamp("us")


@pytest.mark.parametrize(
    ("schema", "time", "slack", "message"),
    [
        (
            NONE,
            None,
            0,
            "stream A has no time column. Every stream needs a column of type TIMESTAMP",
        ),
        (
            TWO,
            None,
            0,
            "stream A has several columns that could be its time: a, b. Choose one with time = 'a'",
        ),
        (ONE, "ts", 0, "stream A has no column 'ts' to take the time from. It has k, At"),
        (
            NONE,
            "day",
            0,
            "the time column day of stream A has type date32[day]. Declare it as TIMESTAMP",
        ),
        (
            ONE,
            None,
            -1,
            (
                "the slack of stream A is negative. Give the longest delay to wait for, such as "
                "'2 seconds'"
            ),
        ),
        (pa.schema([]), None, 0, "there are no columns. Declare at least one"),
        (
            pa.schema([("_ts", pa.timestamp("us"))]),
            None,
            0,
            (
                "a column cannot be called '_ts'. Results use _op and _ts themselves; choose "
                "another name"
            ),
        ),
    ],
)
def test_invalid_streams_are_refused(
    schema: pa.Schema, time: str | None, slack: int, message: str
) -> None:
    with pytest.raises(InputError) as unplaced:
        make_stream("A", schema, time, slack)
    assert str(unplaced.value) == message
    with pytest.raises(SqlError) as placed:
        make_stream("A", schema, time, slack, place=Place(3, 4))
    assert str(placed.value) == f"line 3, column 4: {message}"


def test_tables_need_columns_and_a_name() -> None:
    assert make_table("T", NONE).schema == NONE
    with pytest.raises(InputError, match="there are no columns"):
        make_table("T", pa.schema([]))
    with pytest.raises(SqlError, match="line 1, column 1: the name of a table is empty"):
        make_table("", NONE, place=Place(1, 1))
