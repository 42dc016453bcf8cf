"""Read the files of stored tables: ``CREATE TABLE ... WITH (format = 'csv', path = ...)``."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from muntin.engine.declaration_checks import table_mistakes
from muntin.engine.input_rows import read_rows
from muntin.errors import InputError
from muntin.model.allowed_paths import AllowedPaths, local_path
from muntin.model.catalog import Table


def load_table(table: Table, allowed: AllowedPaths | None = None) -> pa.Table:
    """Return the rows of a table from the file or folder in its options; none without a path.

    Where scripts are confined, each file is opened before it is checked, so a link that is swapped
    in between cannot lead out of the ``allowed`` folders.
    """
    return _tables(table, allowed, _read)


def check_table_files(table: Table, allowed: AllowedPaths | None = None) -> None:
    """Raise the first mistake in the files of a table that their first rows show."""
    _tables(table, allowed, _read_columns)


def _tables(
    table: Table,
    allowed: AllowedPaths | None,
    read: Callable[[Path | BinaryIO, str, pa.Schema, bool], pa.Table],
) -> pa.Table:
    """Return what ``read`` finds in the files of a table, as the table declares it."""
    for mistake in table_mistakes(table, allowed):
        raise mistake
    options = {name.lower(): value for name, value in table.options}
    if "path" not in options:
        return table.schema.empty_table()
    path = Path(local_path(options["path"]) or options["path"])
    kind = options.get("format", path.suffix.lstrip(".")).lower()
    where = f"table {table.name}"
    header = options.get("header", "true").lower() == "true"
    files = sorted(path.glob(f"*.{kind}")) if os.path.isdir(path) else [path]  # noqa: PTH112
    if not os.path.exists(path) or not files:  # noqa: PTH110
        raise InputError(
            f"{where} reads {str(path)!r}, where there is no such file",
            hint="Check the path; it is relative to where you run",
            option="path",
        )
    try:
        parts = []
        for file in files:
            with nullcontext(file) if allowed is None else allowed.open(file) as opened:
                parts.append(read(opened, kind, table.schema, header))
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{where} cannot be read from {str(path)!r}: {str(error).splitlines()[0]}",
            hint="Check the file",
            option="path",
        ) from error
    return pa.concat_tables([read_rows(part, table.schema, where) for part in parts])


def _read(
    file: Path | BinaryIO,
    kind: str,
    schema: pa.Schema,
    header: bool,  # noqa: FBT001
) -> pa.Table:
    if kind == "parquet":
        return pa.parquet.read_table(file)
    if kind == "json":
        return pa.json.read_json(file, parse_options=pa.json.ParseOptions(explicit_schema=schema))
    return pa.csv.read_csv(
        file, _csv_reading(schema, header=header), convert_options=_csv_conversion(schema)
    )


def _read_columns(
    file: Path | BinaryIO,
    kind: str,
    schema: pa.Schema,
    header: bool,  # noqa: FBT001
) -> pa.Table:
    """Return the columns of a file without its rows; only the first block of a text is read."""
    if kind == "parquet":
        found = pa.parquet.read_schema(file)
    elif kind == "json":
        found = pa.json.open_json(
            file, parse_options=pa.json.ParseOptions(explicit_schema=schema)
        ).schema
    else:
        found = pa.csv.open_csv(
            file, _csv_reading(schema, header=header), convert_options=_csv_conversion(schema)
        ).schema
    return found.empty_table()


def _csv_reading(schema: pa.Schema, *, header: bool) -> pa.csv.ReadOptions:
    return pa.csv.ReadOptions(column_names=None if header else schema.names)


def _csv_conversion(schema: pa.Schema) -> pa.csv.ConvertOptions:
    return pa.csv.ConvertOptions(
        column_types=schema, strings_can_be_null=True, quoted_strings_can_be_null=False
    )
