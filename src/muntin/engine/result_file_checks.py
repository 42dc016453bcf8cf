"""Check whether results can be written to files: their columns and the folder."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from muntin.errors import SettingError


def column_mistakes(kind: str, schema: pa.Schema) -> Iterator[SettingError]:
    """Yield a mistake for each column of results that a file format cannot hold; json holds all."""
    for field in schema:
        empty = pa.schema([field]).empty_table()
        try:
            if kind == "parquet":
                pa.parquet.write_table(empty, io.BytesIO())
            elif kind == "csv":
                pa.csv.write_csv(empty, io.BytesIO())
        except pa.ArrowException:
            yield SettingError(
                f"column {field.name} of type {field.type} cannot be written as {kind}",
                hint="Cast it, or use format json",
            )


def folder_mistakes(query: str, folder: str) -> Iterator[SettingError]:
    """Yield a mistake if files cannot be written to a local folder, existing or not."""
    try:
        os.stat(folder)  # noqa: PTH116 (only its errors matter)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        yield SettingError(
            f"the sink of query {query} cannot make the folder {folder!r}: {error.strerror}",
            hint="Give another path",
            option="path",
        )
        return
    there = Path(folder)
    while not os.path.exists(there) and there != there.parent:  # noqa: PTH110
        there = there.parent
    if not there.is_dir():
        yield SettingError(
            f"the sink of query {query} cannot make the folder {folder!r}: "
            f"{str(there)!r} is a file",
            hint="Give another path",
            option="path",
        )
    elif not os.access(there, os.W_OK | os.X_OK):
        yield SettingError(
            f"the sink of query {query} cannot write to {str(there)!r}",
            hint="Give another path, or change the permissions of the folder",
            option="path",
        )
