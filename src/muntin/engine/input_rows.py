"""Read pushed rows as an Arrow table of the stream's schema, all of them or none."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from decimal import DecimalException
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.engine.column_conversion import convert, from_values
from muntin.errors import InputError
from muntin.model.catalog import find_column
from muntin.model.clock import AFTER_ALL, BEFORE_ALL
from muntin.sql.types import build_schema
from muntin.state.batch import times_of

if TYPE_CHECKING:
    import pandas as pd

_PythonRows: TypeAlias = Sequence[Mapping[str, Any]] | Sequence[Sequence[Any]]
Rows: TypeAlias = "pa.Table | pa.RecordBatch | pd.DataFrame | _PythonRows"
"""What ``push`` accepts."""

UNFIT = (pa.ArrowException, InputError, ValueError, TypeError, OverflowError, DecimalException)
"""What a conversion raises when a value does not fit its column."""


def read_rows(rows: Rows, schema: pa.Schema, where: str) -> pa.Table:
    """Return rows as a table of the schema; ``where`` names the stream or table in errors."""
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    elif _is_pandas(rows):
        rows = _from_pandas(rows, where)
    elif hasattr(rows, "__arrow_c_stream__") and not isinstance(rows, pa.Table):
        rows = _from_capsule(rows, where)
    if isinstance(rows, pa.Table):
        return _from_arrow(rows, schema, where)
    if isinstance(rows, (str, bytes)) or not isinstance(rows, Sequence):
        raise InputError(
            f"cannot take rows from {type(rows).__name__} for {where}",
            hint="Push a pyarrow Table or RecordBatch, a pandas or polars DataFrame, "
            "or a list of dicts or tuples",
        )
    return _from_python(rows, schema, where)


def _is_pandas(rows: Any) -> TypeGuard[pd.DataFrame]:
    """Return whether rows are a DataFrame, without importing pandas for it."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(rows, pandas.DataFrame)


def _from_pandas(rows: pd.DataFrame, where: str) -> pa.Table:
    try:
        return pa.Table.from_pandas(rows, preserve_index=False)
    except UNFIT as error:
        raise InputError(
            f"the DataFrame for {where} cannot be converted: {_reason(error)}",
            hint="Give every column one plain type",
        ) from error


def _from_capsule(rows: Any, where: str) -> pa.Table:
    """Take rows from any library that offers Arrow's C stream interface, such as polars."""
    try:
        return pa.table(rows)
    except UNFIT as error:
        raise InputError(
            f"the {type(rows).__name__} for {where} cannot be converted: {_reason(error)}",
            hint="Push an Arrow table instead",
        ) from error


def _from_arrow(rows: pa.Table, schema: pa.Schema, where: str) -> pa.Table:
    if rows.schema.equals(schema):
        return rows
    given: dict[str, str] = {}
    for name in rows.column_names:
        known = find_column(schema, name)
        if known is None or known in given:
            raise InputError(
                f"the rows for {where} have a column {name!r} that does not belong there",
                hint=_columns_hint(schema),
            )
        given[known] = name
    missing = [name for name in schema.names if name not in given]
    if missing:
        raise InputError(
            f"the rows for {where} have no column {', '.join(map(repr, missing))}",
            hint=_columns_hint(schema),
        )
    if not len(rows):
        return schema.empty_table()
    columns = []
    for field in schema:
        column = rows.column(given[field.name])
        try:
            columns.append(column if column.type == field.type else convert(column, field.type))
        except UNFIT as error:
            raise InputError(
                f"column {field.name!r} of the rows for {where} is {column.type} "
                f"and cannot become {field.type}: {_reason(error)}",
                hint="Convert it before you push it",
            ) from error
    return pa.table(columns, schema=schema)


def _from_python(rows: Sequence[Any], schema: pa.Schema, where: str) -> pa.Table:
    if not rows:
        return schema.empty_table()
    split = _split_mappings if isinstance(rows[0], Mapping) else _split_sequences
    columns = split(rows, schema, where)
    return pa.table(
        [_column(values, field, where) for values, field in zip(columns, schema, strict=True)],
        schema=schema,
    )


def _split_mappings(rows: Sequence[Any], schema: pa.Schema, where: str) -> list[list[Any]]:
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(
                f"row {number} for {where} is not a dict like those before it: {row!r}",
                hint=_columns_hint(schema),
            )
    names = {name: find_column(schema, str(name)) for row in rows for name in row}
    unknown = [name for name, known in names.items() if known is None]
    if unknown:
        raise InputError(
            f"the rows for {where} have a column {unknown[0]!r} that does not belong there",
            hint=_columns_hint(schema),
        )
    spelled: dict[str, list[str]] = {name: [] for name in schema.names}
    for name, known in names.items():
        spelled[known or ""].append(name)
    if all(len(spellings) == 1 for spellings in spelled.values()):
        return [[row.get(spelled[name][0]) for row in rows] for name in schema.names]
    return [
        [
            next((row[spelling] for spelling in spelled[name] if spelling in row), None)
            for row in rows
        ]
        for name in schema.names
    ]


def _split_sequences(rows: Sequence[Any], schema: pa.Schema, where: str) -> list[list[Any]]:
    for number, row in enumerate(rows):
        if (
            isinstance(row, (str, bytes))
            or not isinstance(row, Sequence)
            or len(row) != len(schema)
        ):
            raise InputError(
                f"row {number} for {where} does not have {len(schema)} values: {row!r}",
                hint=_columns_hint(schema),
            )
    return [list(values) for values in zip(*rows, strict=True)]


def _column(values: list[Any], field: pa.Field, where: str) -> pa.Array:
    try:
        return from_values(values, field.type)
    except UNFIT as error:
        for number, value in enumerate(values):
            try:
                from_values([value], field.type)
            except UNFIT as cause:
                raise InputError(
                    f"row {number} for {where}: column {field.name!r} is {field.type} "
                    f"and cannot be {value!r}: {_reason(cause)}",
                    hint="Nothing of this push was taken; correct the row and push again",
                ) from error
        raise InputError(
            f"column {field.name!r} of the rows for {where} cannot become {field.type}: "
            f"{_reason(error)}",
            hint="Nothing of this push was taken; give the column values of one kind",
        ) from error


def read_times(rows: pa.Table, column: str, where: str) -> npt.NDArray[np.int64]:
    """Return the times of rows as integers; raise for NULL and for times out of range."""
    values = rows.column(column)
    if values.null_count:
        number = int(np.flatnonzero(~values.is_valid().to_numpy())[0])
        raise InputError(
            f"row {number} for {where} has no time: column {column!r} is NULL",
            hint="Every row needs a time; nothing of this push was taken",
        )
    times = times_of(rows, column)
    if len(times) and not BEFORE_ALL < times.min() <= times.max() < AFTER_ALL:
        raise InputError(
            f"a row for {where} has a time out of range in column {column!r}",
            hint="Nothing of this push was taken",
        )
    return times


def read_table(rows: Rows, columns: Mapping[str, str] | None, name: str) -> pa.Table:
    """Return the rows of a stored table; ``columns`` gives SQL types that rows do not carry."""
    if columns is not None:
        return read_rows(rows, build_schema(columns), f"table {name}")
    if isinstance(rows, pa.Table):
        return rows
    try:
        return pa.Table.from_pylist(rows) if isinstance(rows, list) else pa.table(rows)
    except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"cannot make table {name} from {type(rows).__name__}",
            hint="Pass a pyarrow Table, a DataFrame or a list of dicts",
        ) from error


def _columns_hint(schema: pa.Schema) -> str:
    return f"Its columns are {', '.join(f'{field.name} {field.type}' for field in schema)}"


def _reason(error: BaseException) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
