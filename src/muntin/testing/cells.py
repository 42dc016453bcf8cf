"""How golden scripts write values: text that DuckDB casts to and from the column's type.

A row is a line of cells between blanks. A cell in single quotes may hold blanks (a quote is
doubled); the bare word ``NULL`` is NULL; a bare ``#`` starts a comment. Times are seconds since
1970, decimals allowed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import TypeAlias

import duckdb
import pyarrow as pa

from muntin.plan.expression import quote
from muntin.testing.connection import run_sql

Cell: TypeAlias = str | None
"""The text of a value, None for NULL."""

_CELL = re.compile(r"'((?:[^']|'')*)'(?=\s|$)|([^\s']\S*)")
_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_MICROS = 1_000_000


def split_cells(line: str) -> list[Cell]:
    """Return the cells of a line.

    Raises
    ------
    ValueError
        When a quote is not closed.

    Examples
    --------
    >>> split_cells("1.5 'it''s me' NULL x  # why")
    ['1.5', "it's me", None, 'x']
    """
    cells: list[Cell] = []
    end = 0
    while rest := line[end:].strip():
        start = line.index(rest[0], end)
        if rest.startswith("#"):
            break
        match = _CELL.match(line, start)
        if match is None:
            raise ValueError(f"a quote is not closed in {line.strip()!r}")
        quoted, bare = match.groups()
        cells.append(
            quoted.replace("''", "'") if quoted is not None else None if bare == "NULL" else bare
        )
        end = match.end()
    return cells


def write_cell(cell: Cell, *, quoted: bool) -> str:
    """Return a cell as written in a script, in quotes if asked for or needed.

    >>> write_cell("a b", quoted=False)
    "'a b'"
    """
    if cell is None:
        return "NULL"
    if quoted or cell in ("", "NULL") or cell[0] in "#'" or re.search(r"\s", cell):
        return "'" + cell.replace("'", "''") + "'"
    return cell


def read_seconds(text: str) -> int:
    """Microseconds of a time in seconds.

    >>> read_seconds("4.5")
    4500000
    """
    try:
        micros = Decimal(text) * _MICROS
        exact = int(micros)
    except (InvalidOperation, OverflowError, ValueError):
        raise ValueError(f"{text!r} is not a time in seconds") from None
    if exact != micros:
        raise ValueError(f"the time {text} is finer than a microsecond")
    return exact


def write_seconds(micros: int) -> str:
    """Return a time as seconds, with as many decimals as it needs.

    >>> write_seconds(4500000)
    '4.5'
    """
    sign = "-" if micros < 0 else ""
    whole, part = divmod(abs(micros), _MICROS)
    return f"{sign}{whole}.{part:06d}".rstrip("0").rstrip(".") if part else f"{sign}{whole}"


def read_table(rows: Sequence[Sequence[Cell]], schema: pa.Schema) -> pa.Table:
    """Return the rows, each cell cast by DuckDB to its column's type.

    Raises
    ------
    ValueError
        When a row has the wrong number of cells or a cell does not fit its type.
    """
    for row in rows:
        if len(row) != len(schema.names):
            raise ValueError(
                f"expected {len(schema.names)} values ({', '.join(schema.names)}), got {len(row)}"
            )
    columns = list(zip(*rows, strict=True)) or [()] * len(schema.names)
    texts = pa.table(
        [pa.array(column, type=pa.string()) for column in columns], names=_plain(schema)
    )
    casts = ", ".join(
        f"CAST({name} AS {sql_type(field.type)})"
        for name, field in zip(_plain(schema), schema, strict=True)
    )
    try:
        return _arranged(run_sql(f"SELECT {casts} FROM cells", {"cells": texts}), schema)
    except duckdb.Error as error:
        raise ValueError(str(error).splitlines()[0]) from error


def write_table(table: pa.Table) -> list[list[Cell]]:
    """Return the rows of a table as text, by DuckDB's cast to VARCHAR.

    >>> write_table(pa.table({"x": [1.5, None]}))
    [['1.5'], [None]]
    """
    plain = table.rename_columns(_plain(table.schema))
    casts = ", ".join(f"CAST({name} AS VARCHAR)" for name in _plain(table.schema))
    texts = run_sql(f"SELECT {casts} FROM cells", {"cells": plain})
    return [
        list(row) for row in zip(*(column.to_pylist() for column in texts.columns), strict=True)
    ]


def read_schema(columns: Sequence[tuple[str, str]]) -> pa.Schema:
    """Return the Arrow schema of columns given by name and SQL type.

    >>> read_schema([("k", "int")]).field("k").type
    DataType(int32)
    """
    names = ", ".join(
        f"NULL::{declared} AS c{place}" for place, (_, declared) in enumerate(columns)
    )
    try:
        types = run_sql(f"SELECT {names}", {}).schema.types
    except duckdb.Error as error:
        raise ValueError(str(error).splitlines()[0]) from error
    return pa.schema(
        [pa.field(name, arrow) for (name, _), arrow in zip(columns, types, strict=True)]
    )


@cache
def sql_type(arrow: pa.DataType) -> str:
    """DuckDB's name for an Arrow type.

    >>> sql_type(pa.int64())
    'BIGINT'
    """
    column = pa.table({"x": pa.nulls(1, arrow)})
    return str(run_sql("SELECT typeof(x) AS name FROM t", {"t": column}).column("name")[0])


def is_text(arrow: pa.DataType) -> bool:
    """Return whether values of the type are written in quotes."""
    return bool(pa.types.is_string(arrow) or pa.types.is_large_string(arrow))


def split_columns(text: str) -> list[tuple[str, str]]:
    """Names and SQL types of a list of column definitions.

    >>> split_columns('k int, "my key" decimal(10, 2)')
    [('k', 'int'), ('my key', 'decimal(10, 2)')]
    """
    columns = []
    for part in re.split(r",(?![^(\[]*[)\]])", text):
        match = re.fullmatch(r'\s*("(?:[^"]|"")+"|[^\s"]+)\s+(.+?)\s*', part)
        if match is None:
            raise ValueError(f"{part.strip()!r} is not a column: write its name and its type")
        name = match.group(1)
        columns.append(
            (name[1:-1].replace('""', '"') if name.startswith('"') else name, match.group(2))
        )
    return columns


def write_columns(columns: Sequence[tuple[str, str]]) -> str:
    """Column definitions as SQL text."""
    return ", ".join(
        f"{name if _PLAIN.fullmatch(name) else quote(name)} {declared}"
        for name, declared in columns
    )


def _arranged(table: pa.Table, schema: pa.Schema) -> pa.Table:
    return pa.table(
        [column.cast(field.type) for column, field in zip(table.columns, schema, strict=True)],
        schema=schema,
    )


def _plain(schema: pa.Schema) -> list[str]:
    return [f"c{place}" for place in range(len(schema.names))]
