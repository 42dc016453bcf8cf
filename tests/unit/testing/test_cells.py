from __future__ import annotations

import pyarrow as pa
import pytest

from muntin.testing.cells import (
    read_schema,
    read_seconds,
    read_table,
    split_cells,
    split_columns,
    sql_type,
    write_cell,
    write_columns,
    write_seconds,
    write_table,
)


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        ("1  2", ["1", "2"]),
        ("'a b' NULL 'NULL'", ["a b", None, "NULL"]),
        ("'it''s' ''", ["it's", ""]),
        ("1 '#2' # three", ["1", "#2"]),
        ("   ", []),
        ("[1,2] {'a':1}", ["[1,2]", "{'a':1}"]),
    ],
)
def test_a_line_is_split_into_cells(line: str, cells: list[str | None]) -> None:
    assert split_cells(line) == cells


@pytest.mark.parametrize("line", ["'a b", "1 'a'b"])
def test_an_open_quote_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="not closed"):
        split_cells(line)


@pytest.mark.parametrize("cell", ["", "NULL", "a b", "it's", "#1", "'", "7", None])
def test_written_cells_are_read_back(cell: str | None) -> None:
    assert split_cells(write_cell(cell, quoted=False)) == [cell]


@pytest.mark.parametrize(
    ("text", "micros"),
    [("4", 4_000_000), ("0.000001", 1), ("-1.5", -1_500_000), ("1e3", 1_000_000_000)],
)
def test_times_are_seconds(text: str, micros: int) -> None:
    assert read_seconds(text) == micros
    assert read_seconds(write_seconds(micros)) == micros


@pytest.mark.parametrize("text", ["", "x", "nan", "inf", "0.0000001"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="time"):
        read_seconds(text)


def test_values_are_cast_to_and_from_the_type_of_their_column() -> None:
    schema = read_schema(
        split_columns('k int, "my key" decimal(10, 2), s varchar, d double, l int[], t timestamp')
    )
    rows: list[list[str | None]] = [
        ["1", "2.50", "x y", "nan", "[1, NULL]", "1970-01-01 00:00:05"],
        [None] * 6,
    ]
    table = read_table(rows, schema)
    assert table.schema == schema
    assert table.column("my key").type == pa.decimal128(10, 2)
    assert write_table(table) == rows


def test_no_rows() -> None:
    schema = read_schema([("k", "int")])
    assert write_table(read_table([], schema)) == []


def test_rows_that_do_not_fit_are_refused() -> None:
    schema = read_schema([("k", "int")])
    with pytest.raises(ValueError, match="expected 1 values"):
        read_table([["1", "2"]], schema)
    with pytest.raises(ValueError, match="Could not convert string 'x'"):
        read_table([["x"]], schema)
    with pytest.raises(ValueError, match="nosuchtype"):
        read_schema([("k", "nosuchtype")])
    with pytest.raises(ValueError, match="not a column"):
        split_columns("k")


def test_columns_are_written_as_sql() -> None:
    columns = [("k", "int"), ("my key", "decimal(10, 2)"), ("é", "int")]
    assert write_columns(columns) == 'k int, "my key" decimal(10, 2), "é" int'
    assert split_columns(write_columns(columns)) == columns


def test_types_have_their_names_in_sql() -> None:
    assert [sql_type(arrow) for arrow in (pa.int64(), pa.string(), pa.timestamp("us"))] == [
        "BIGINT",
        "VARCHAR",
        "TIMESTAMP",
    ]
