"""Reading the files of stored tables: ``CREATE TABLE ... WITH (format = 'csv', path = ...)``."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from muntin.engine.input_rows import read_rows
from muntin.errors import InputError
from muntin.model.catalog import Table

_FORMATS = ("csv", "json", "parquet")


def load_table(table: Table) -> pa.Table:
    """The rows of a table from the file or folder that its options name; no path: an empty table."""
    options = {name.lower(): value for name, value in table.options}
    if "path" not in options:
        return table.schema.empty_table()
    path = Path(options["path"])
    kind = options.get("format", path.suffix.lstrip(".")).lower()
    where = f"table {table.name}"
    if kind not in _FORMATS:
        raise InputError(f"{where} has format {kind!r}, which cannot be read", hint=f"Formats are {', '.join(_FORMATS)}")
    files = sorted(path.glob(f"*.{kind}")) if path.is_dir() else [path]
    if not path.exists() or not files:
        raise InputError(
            f"{where} reads {str(path)!r}, where there is no such file", hint="Check the path; it is relative to where you run"
        )
    try:
        parts = [_read(file, kind, table.schema, header=options.get("header", "true").lower() == "true") for file in files]
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{where} cannot be read from {str(path)!r}: {str(error).splitlines()[0]}", hint="Check the file") from error
    return pa.concat_tables([read_rows(part, table.schema, where) for part in parts])


def _read(file: Path, kind: str, schema: pa.Schema, *, header: bool) -> pa.Table:
    if kind == "parquet":
        return pa.parquet.read_table(file)
    if kind == "json":
        return pa.json.read_json(file, parse_options=pa.json.ParseOptions(explicit_schema=schema))
    reading = pa.csv.ReadOptions(column_names=None if header else schema.names)
    return pa.csv.read_csv(
        file,
        reading,
        convert_options=pa.csv.ConvertOptions(column_types=schema, strings_can_be_null=True, quoted_strings_can_be_null=False),
    )
