"""Every kind of value converts to every column type as DuckDB's CAST does, or fails clearly."""

# ruff: noqa: DTZ001 - times without a zone are what is tested

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import muntin
from muntin.engine.input_rows import read_rows
from muntin.errors import InputError
from muntin.model.clock import parse_instant
from muntin.sql.streams import plain_schema
from muntin.sql.types import arrow_type, build_schema

EAST = timezone(timedelta(hours=2))
TIMESTAMPS = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMPTZ")
NUMBERS = (
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
    "HUGEINT",
    "FLOAT", "DOUBLE", "DECIMAL(4, 1)", "DECIMAL(18, 3)", "DECIMAL(38, 0)",
)  # fmt: skip
TYPES = (
    "BOOLEAN", *NUMBERS, "VARCHAR", "BLOB", "DATE", "TIME", "TIME_NS", *TIMESTAMPS, "INTERVAL",
    "INTEGER[]", "INTEGER[2]", "TIMESTAMP_S[]", "STRUCT(a INTEGER, b TIMESTAMP_MS)",
    "MAP(VARCHAR, INTEGER)",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, np.True_,
    0, 1, -1, 5, 128, 300, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 10**20, 10**38,
    10**80,
    np.int8(5), np.int64(2**40), np.uint64(2**63 + 1),
    1.0, 1.5, 2.5, -0.0, 0.1, 1e10, 1e20, 1e300, math.nan, math.inf, -math.inf, np.float32(1.1),
    np.float64(1.5),
    Decimal(1), Decimal("1.5"), Decimal("1.25"), Decimal("99999.9"), Decimal("1e50"),
    Decimal("1e-5"), Decimal("1e400"),
    Decimal(12345678901234567890), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"),
    Decimal("-Infinity"),
    "0x10", "1e3", "inf", "NaN", "1_000", "+5", "007", "-0", "1e400", "1.25", "99999", "-1", "f",
    "0", "1e-400", "0.1", "16777217",
    "1", "1.5", "abc", "true", "", " 7 ", "12:30:00", "2026-01-01", "1 day", "[1, 2]",
    np.str_("abc"), "\ud800",
    "2026-01-01 00:00:05", "2026-01-01T00:00:05.123", "2026-01-01 00:00:05.123456",
    "2026-01-01 00:00:05.123456789",
    b"1", b"abc", b"\xff", bytearray(b"ab"), memoryview(b"ab"), np.bytes_(b"ab"), UUID(int=5),
    datetime(2026, 1, 1), datetime(2026, 1, 1, 0, 0, 5), datetime(2026, 1, 1, 0, 0, 5, 123000),
    datetime(2026, 1, 1, 0, 0, 5, 123456), datetime(2026, 1, 1, 0, 0, 5, tzinfo=EAST),
    datetime(1600, 1, 1), datetime(9999, 12, 31, 23),
    date(2026, 1, 1), date(1, 1, 1), time(12, 30), time(12, 30, 0, 5), time(12, 30, tzinfo=EAST),
    timedelta(seconds=5), timedelta(days=40, microseconds=3),
    pd.Timestamp("2026-01-01 00:00:05.123456"), pd.Timestamp("2026-01-01", tz="Europe/Berlin"),
    pd.NaT, pd.NA,
    pd.Timestamp("2026-01-01 00:00:05.123456789"), pd.Timedelta("5s"),
    np.datetime64("2026-01-01T00:00:05.123456"), np.datetime64("2026-01-01"),
    np.datetime64("2026-01-01T00:00:05.123456789"),
    np.datetime64("NaT"), np.timedelta64(5, "s"), np.timedelta64(3, "M"),
    [1, 2], (1, 2), [1, None], ["x"], [1.5], [], np.array([1, 2]), [datetime(2026, 1, 1, 0, 0, 5)],
    [[1]],
    {"a": 1}, {"a": 1, "b": datetime(2026, 1, 1)}, {"a": 1, "c": 2}, {"x": 1}, {}, {"a": None},
    {None: 1},
    {1, 2}, range(2), object(), 1j,
)  # fmt: skip


BEYOND_DUCKDB = {
    ("INTERVAL", "np.timedelta64(5,'s')"), ("STRUCT(a INTEGER, b TIMESTAMP_MS)", "{}"),
    ("MAP(VARCHAR, INTEGER)", "[]"),
}  # fmt: skip
"""Values that are accepted although DuckDB's Python client does not support them; none is lost."""


class Truth:
    """DuckDB's CAST; integers are microseconds since 1970 if the type is a timestamp."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("SET TimeZone = 'UTC'")

    def cast(self, value: Any, sql_type: str) -> Any:
        sql = f"CAST($1 AS {sql_type})"
        if (
            isinstance(value, int | np.integer)
            and not isinstance(value, bool)
            and sql_type in TIMESTAMPS
        ):
            if (
                abs(int(value)) >= 2**63 - 1
            ):  # infinity to DuckDB; as a row's time it is out of range
                return ("us", int(value))
            sql = f"CAST(make_timestamp(CAST($1 AS BIGINT)) AS {sql_type})"
        if isinstance(value, (np.datetime64, np.timedelta64)) or getattr(
            value, "nanosecond", False
        ):
            value = str(value)
        elif isinstance(value, (np.generic, np.ndarray)):
            value = value.tolist()
        try:
            found = self._connection.sql(f"SELECT {sql} AS x", params=[value]).to_arrow_table()
        except (duckdb.Error, UnicodeError, OverflowError) as error:
            return type(error)
        return scalars(found.column(0))[0]


def scalars(column: pa.ChunkedArray) -> list[object]:
    """Return the values of a column in a form that ``==`` compares exactly for any range."""
    if pa.types.is_timestamp(column.type):
        return [
            None if value is None else (column.type.unit, value)
            for value in column.cast(pa.int64()).to_pylist()
        ]
    if pa.types.is_floating(column.type):
        return [None if value is None else repr(value) for value in column.to_pylist()]
    return [
        list(map(tuple, value)) if value and pa.types.is_map(column.type) else value
        for value in column.to_pylist()
    ]


def taken(value: Any, kind: pa.DataType) -> Any:
    """Return the contents of a column after a push, or InputError; raise any other error."""
    try:
        return scalars(read_rows([(value,)], pa.schema([("x", kind)]), "stream S").column(0))[0]
    except InputError:
        return InputError


@pytest.fixture(scope="module")
def truth() -> Truth:
    return Truth()


@pytest.mark.parametrize("sql_type", TYPES)
def test_a_value_is_what_duckdb_casts_it_to_or_an_error(sql_type: str, truth: Truth) -> None:
    kind = arrow_type(sql_type)
    accepted = 0
    for value in VALUES:
        found = taken(value, kind)
        accepted += found is not InputError
        if found is not InputError and (sql_type, repr(value)) not in BEYOND_DUCKDB:
            wanted = truth.cast(value, sql_type)
            assert found == wanted, f"{value!r} into {sql_type}: {found!r}, DuckDB says {wanted!r}"
    assert accepted > 1, "a column takes more than None"


ACCEPTED: tuple[tuple[str, Any, Any], ...] = (
    ("BOOLEAN", np.True_, True),
    ("TINYINT", 5.0, 5),
    ("BIGINT", Decimal(5), 5),
    ("BIGINT", "5", 5),
    ("UBIGINT", 2**64 - 1, 2**64 - 1),
    ("HUGEINT", 10**20, Decimal(10**20)),
    ("DOUBLE", Decimal("1e50"), "1e+50"),
    ("DOUBLE", 5, "5.0"),
    ("DECIMAL(4, 1)", 1.5, Decimal("1.5")),
    ("DECIMAL(4, 1)", 7, Decimal("7.0")),
    ("VARCHAR", UUID(int=5), "00000000-0000-0000-0000-000000000005"),
    ("BLOB", bytearray(b"ab"), b"ab"),
    ("DATE", "2026-01-01", date(2026, 1, 1)),
    ("DATE", datetime(2026, 1, 1), date(2026, 1, 1)),
    ("TIME", "12:30:00", time(12, 30)),
    ("TIMESTAMP_S", datetime(2026, 1, 1, 0, 0, 5), ("s", 1767225605)),
    ("TIMESTAMP_S", "2026-01-01 00:00:05", ("s", 1767225605)),
    ("TIMESTAMP_S", 1767225605000000, ("s", 1767225605)),
    ("TIMESTAMP_MS", datetime(2026, 1, 1, 0, 0, 5, 123000), ("ms", 1767225605123)),
    ("TIMESTAMP_MS", "2026-01-01T02:00:05.123+02:00", ("ms", 1767225605123)),
    ("TIMESTAMP_MS", 1767225605123000, ("ms", 1767225605123)),
    ("TIMESTAMP_NS", datetime(2026, 1, 1, 0, 0, 5, 123456), ("ns", 1767225605123456000)),
    ("TIMESTAMP_NS", "2026-01-01 00:00:05.123456789", ("ns", 1767225605123456789)),
    ("TIMESTAMP_NS", 1767225605123456, ("ns", 1767225605123456000)),
    ("TIMESTAMP_NS", pd.Timestamp("2026-01-01 00:00:05.123456789"), ("ns", 1767225605123456789)),
    ("TIMESTAMPTZ", datetime(2026, 1, 1, 2, 0, 5, tzinfo=EAST), ("us", 1767225605000000)),
    ("TIMESTAMP_S[]", [datetime(2026, 1, 1, 0, 0, 5), 1767225605000000],
        [datetime(2026, 1, 1, 0, 0, 5)] * 2),
    ("STRUCT(a INTEGER, b TIMESTAMP_S)", {"b": "2026-01-01"},
        {"a": None, "b": datetime(2026, 1, 1)}),
    ("MAP(VARCHAR, INTEGER)", {"a": 1}, [("a", 1)]),
)  # fmt: skip


@pytest.mark.parametrize(("sql_type", "value", "wanted"), ACCEPTED)
def test_values_that_fit_are_taken(sql_type: str, value: Any, wanted: Any) -> None:
    assert taken(value, arrow_type(sql_type)) == wanted


REFUSED = (
    *(
        (number, Decimal(text))
        for number in NUMBERS
        for text in ("NaN", "sNaN", "Infinity", "-Infinity", "1e400")
    ),
    *((number, Decimal("1e50")) for number in NUMBERS if number != "DOUBLE"),
    ("TIMESTAMP_S", datetime(2026, 1, 1, 0, 0, 5, 1)),
    ("TIMESTAMP_MS", "2026-01-01 00:00:05.1234"),
    ("TIMESTAMP_S", 1_500_000),
    ("TIMESTAMP", "2026-01-01 00:00:05.1234567"),
    ("TIMESTAMP_NS", datetime(9999, 1, 1)),
    ("TIMESTAMP", True),
    ("TIMESTAMP", 1.0),
    ("DATE", datetime(2026, 1, 1, 1)),
    ("FLOAT", 1e300),
    ("BIGINT", "1.5"),
    ("BOOLEAN", 1),
    ("VARCHAR", 1),
    ("BLOB", "abc"),
)


@pytest.mark.parametrize(("sql_type", "value"), REFUSED)
def test_values_that_do_not_fit_are_refused(sql_type: str, value: Any) -> None:
    with pytest.raises(
        InputError, match=r"row 0 for stream S: column 'x' is .+ and cannot be .+: .+"
    ):
        read_rows([(value,)], pa.schema([("x", arrow_type(sql_type))]), "stream S")


# -- Arrow -----------------------------------------------------------------------------------------

BEYOND_PYTHON = pa.array([10**14], pa.timestamp("s"))
ARROW = (
    pa.array([None, None]),
    pa.array([True, False, None]),
    *(pa.array([1, 0, 100, None], kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(),
        pa.uint8(), pa.uint64())),
    pa.array([2**62, -5]), pa.array([2**64 - 1], pa.uint64()),
    pa.array([1.0, -3.0, None], pa.float32()), pa.array([1.5, None]), pa.array([1e300]),
    pa.array([math.nan, math.inf]),
    pa.array([Decimal("1.0"), None]), pa.array([Decimal("1.25")]), pa.array([Decimal("1e50")]),
    pa.array([Decimal("-7.5")], pa.decimal32(5, 2)),
    *(pa.array(["1", "x", None], kind) for kind in (pa.string(), pa.large_string(),
        pa.string_view())),
    pa.array(["2026-01-01", None]), pa.array(["12:30:00"]), pa.array(["2026-01-01 00:00:05.5"]),
    pa.array(["a", "a"]).dictionary_encode(),
    *(pa.array([b"1", b"\xff", None], kind) for kind in (pa.binary(), pa.large_binary(),
        pa.binary_view())),
    pa.array([b"ab"], pa.binary(2)),
    pa.array([1, None], pa.date32()), pa.array([86_400_000, None], pa.date64()),
    pa.array([5, None], pa.time32("s")), pa.array([5], pa.time32("ms")),
    pa.array([5], pa.time64("us")), pa.array([5], pa.time64("ns")),
    *(pa.array([1_767_225_605, None], pa.timestamp(unit, zone)) for unit in ("s", "ms", "us", "ns")
      for zone in (None, "UTC", "Asia/Tokyo")),
    pa.array([86_400, None], pa.timestamp("s")), BEYOND_PYTHON,
    *(pa.array([5, None], pa.duration(unit)) for unit in ("s", "ms", "us", "ns")),
    pa.array([(1, 2, 3000), None], pa.month_day_nano_interval()),
    pa.array([[1, 2], None, []]), pa.array([[1, 2]], pa.large_list(pa.int64())),
    pa.array([[1, 2]], pa.list_(pa.int32(), 2)),
    pa.array([[10**6, None]], pa.list_(pa.timestamp("us"))), pa.array([["2026-01-01"]]),
    pa.array([{"a": 1, "b": datetime(2026, 1, 1)}, None]), pa.array([{"a": 1, "z": 1}]),
    pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
)  # fmt: skip


def arrow_truth(connection: duckdb.DuckDBPyConnection, column: pa.Array, sql_type: str) -> Any:
    if pa.types.is_decimal256(column.type):  # DuckDB cannot read it
        return [TRUTH.cast(value, sql_type) for value in column.to_pylist()]
    given_rows = pa.table({"x": column})
    sql = f"CAST(x AS {sql_type})"
    if pa.types.is_integer(column.type) and sql_type in TIMESTAMPS:
        sql = f"CAST(make_timestamp(CAST(x AS BIGINT)) AS {sql_type})"
    connection.register("given_rows", given_rows)
    try:
        return scalars(
            connection.sql(f"SELECT {sql} AS x FROM given_rows").to_arrow_table().column(0)
        )
    except duckdb.Error as error:
        return type(error)


@pytest.mark.parametrize("sql_type", TYPES)
def test_an_arrow_column_is_what_duckdb_casts_it_to_or_an_error(sql_type: str) -> None:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    schema = pa.schema([("x", arrow_type(sql_type))])
    accepted = 0
    for column in ARROW:
        try:
            found = scalars(read_rows(pa.table({"x": column}), schema, "stream S").column(0))
        except InputError:
            continue
        accepted += 1
        assert found == arrow_truth(connection, column, sql_type), f"{column.type} into {sql_type}"
        if not pa.types.is_nested(column.type) and column is not BEYOND_PYTHON:
            from_list = read_rows([(value,) for value in column.to_pylist()], schema, "stream S")
            assert scalars(from_list.column(0)) == found, f"a list of {column.type} into {sql_type}"
    assert accepted > 1


# -- forms -----------------------------------------------------------------------------------------


class Capsule:
    """A table of another library such as polars, which offers only Arrow's C stream interface."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._rows.__arrow_c_stream__(requested_schema)


MOMENTS = st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)).map(
    lambda moment: moment.replace(microsecond=0)
)
ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-(2**31), 2**31 - 1),
        st.none() | st.floats(allow_nan=False),
        st.none() | st.text(st.characters(exclude_categories=["Cs"])),
        st.none() | st.booleans(),
        st.none() | st.dates(date(1700, 1, 1), date(2200, 1, 1)),
        *[st.none() | MOMENTS] * 5,
    ),
    min_size=1,
)
COLUMNS = {
    "i": "integer",
    "x": "double",
    "s": "varchar",
    "b": "boolean",
    "d": "date",
    **{name: name for name in TIMESTAMPS},
}


def micros(value: Any) -> Any:
    return parse_instant(value) if isinstance(value, datetime) else value


@given(ROWS)
def test_every_form_gives_the_same_columns(rows: list[tuple[Any, ...]]) -> None:
    schema = build_schema(COLUMNS)
    natural = [
        pa.int64(),
        pa.float64(),
        pa.string(),
        pa.bool_(),
        pa.date32(),
        *[pa.timestamp("us")] * 5,
    ]
    columns = list(zip(*rows, strict=True))
    table = pa.table(
        [pa.array(column, kind) for column, kind in zip(columns, natural, strict=True)],
        names=list(COLUMNS),
    )
    text = [
        tuple(value.isoformat(" ") if isinstance(value, datetime) else value for value in row)
        for row in rows
    ]
    whole = [tuple(map(micros, row)) for row in rows]
    wanted = read_rows(table, schema, "stream S")
    pandas = table.to_pandas(
        types_mapper={pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}.get
    )
    forms = (
        rows,
        text,
        whole,
        [dict(zip(COLUMNS, row, strict=True)) for row in rows],
        pandas,
        Capsule(table),
        table.to_batches()[0],
    )
    for form in forms:
        assert read_rows(form, schema, "stream S").equals(wanted)


NUMBER = st.one_of(st.integers(-(10**25), 10**25), st.floats(), st.decimals(), st.booleans())
MOMENT = st.one_of(
    st.integers(-(2**53), 2**53), st.datetimes(), st.datetimes(timezones=st.just(EAST)),
    MOMENTS.map(str),
    st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)).map(str), MOMENTS,
)  # fmt: skip
PAIRS = st.tuples(st.sampled_from(NUMBERS), NUMBER) | st.tuples(st.sampled_from(TIMESTAMPS), MOMENT)


@given(PAIRS)
def test_random_values_are_what_duckdb_casts_them_to_or_an_error(pair: tuple[str, Any]) -> None:
    sql_type, value = pair
    found = taken(value, arrow_type(sql_type))
    if found is not InputError:
        wanted = TRUTH.cast(value, sql_type)
        if isinstance(value, Decimal) and sql_type in {
            "FLOAT",
            "DOUBLE",
        }:  # DuckDB's own rounding is off by a bit
            assert float(found) == pytest.approx(
                float(wanted), rel=1e-6 if sql_type == "FLOAT" else 1e-15
            )
        else:
            assert found == wanted


TRUTH = Truth()


@pytest.mark.parametrize("sql_type", TIMESTAMPS)
def test_the_time_column_counts_microseconds_whatever_its_declared_unit(sql_type: str) -> None:
    instants = []
    for moment in (
        1_767_225_605_000_000,
        "2026-01-01 00:00:05",
        datetime(2026, 1, 1, 0, 0, 5),
        pd.Timestamp("2026-01-01 00:00:05"),
    ):
        engine = muntin.Engine()
        engine.stream("S", {"ts": sql_type})
        query = engine.query("SELECT ts FROM S WINDOW 1 MINUTE")
        engine.push("S", [(moment,)])
        engine.advance("2026-01-01 00:00:05")
        instants += query.poll().column("_ts").cast(pa.int64()).to_pylist()
    assert instants == [1_767_225_605_000_000] * 4


@pytest.mark.parametrize(
    "sql_type", ["BIT", "TIMETZ", "GEOMETRY", "VARIANT", '"NULL"', "BIT[]", "STRUCT(a TIMETZ)"]
)
def test_types_that_arrow_changes_cannot_be_declared(sql_type: str) -> None:
    with pytest.raises(InputError, match="a column cannot have type"):
        arrow_type(sql_type)


def test_names_of_foreign_types_are_fine_as_names_and_values() -> None:
    assert arrow_type("STRUCT(bit INTEGER)") == pa.struct([("bit", pa.int32())])
    assert plain_schema(build_schema({"x": "ENUM('BIT', 'b')"})).field("x").type == pa.string()
