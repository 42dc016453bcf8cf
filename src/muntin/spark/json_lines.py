"""Write rows as lines of JSON, made by DuckDB column by column, without Python objects per row.

What JSON cannot express is written as Spark writes and reads it: times and dates as text, binary
values as base64, NaN and the infinities as the texts ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``,
maps as objects. Numbers have all their digits.
"""

from __future__ import annotations

from typing import IO

import numpy as np
import pyarrow as pa

from muntin.expressions.duck import Duck


def write_json(rows: pa.Table, file: IO[bytes]) -> None:
    """Write one object per row, each on one line."""
    if not len(rows):
        return
    # Columns under numbers: names that differ only in case are one name to DuckDB.
    numbered = rows.rename_columns([f"c{number}" for number in range(rows.num_columns)])
    fields = [
        (name, f"c{number}", kind)
        for number, (name, kind) in enumerate(
            zip(rows.column_names, rows.schema.types, strict=True)
        )
    ]
    lines = (
        Duck()
        .run(f"SELECT {_object(fields)} || chr(10) AS line FROM results", results=numbered)
        .column("line")
    )
    for chunk in lines.cast(pa.large_string()).chunks:
        # The texts of an Arrow array are contiguous.
        _, offsets, texts = chunk.buffers()
        places = np.frombuffer(offsets, np.int64)[chunk.offset : chunk.offset + len(chunk) + 1]
        file.write(texts.slice(places[0], places[-1] - places[0]))


def _object(fields: list[tuple[str, str, pa.DataType]]) -> str:
    """Return SQL for the text of an object; ``fields`` are keys, SQL of the values, and types."""
    pieces = [
        f"to_json({_quoted(key)}) || ':' || {_text(value, kind)}" for key, value, kind in fields
    ]
    return "'{' || " + " || ',' || ".join(pieces) + " || '}'" if pieces else "'{}'"


def _text(value: str, kind: pa.DataType, depth: int = 0) -> str:
    """Return SQL for the text of a value; NULL becomes null."""
    return f"coalesce(CAST({_known(value, kind, depth)} AS VARCHAR), 'null')"


def _known(value: str, kind: pa.DataType, depth: int) -> str:
    if pa.types.is_decimal(kind):
        return value
    if pa.types.is_floating(kind):
        text = f"to_json({value})"
        return (
            f"CASE WHEN isfinite({value}) THEN CAST({text} AS VARCHAR) "
            f"ELSE '\"' || {text} || '\"' END"
        )
    if (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    ):
        return f"to_json(base64({value}))"
    if pa.types.is_struct(kind):
        fields = [
            (field.name, f"struct_extract({value}, {_quoted(field.name)})", field.type)
            for field in kind.fields
        ]
        return f"CASE WHEN {value} IS NOT NULL THEN {_object(fields)} END"
    inner = f"e{depth}"
    if pa.types.is_map(kind):
        text = _text(f"{inner}.value", kind.item_type, depth + 1)
        entry = f"to_json(CAST({inner}.key AS VARCHAR)) || ':' || {text}"
        return _joined(f"map_entries({value})", inner, entry, "{}")
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _joined(value, inner, _text(inner, kind.value_type, depth + 1), "[]")
    return f"to_json({value})"


def _joined(values: str, name: str, text: str, brackets: str) -> str:
    texts = f"list_transform({values}, lambda {name}: {text})"
    return f"'{brackets[0]}' || array_to_string({texts}, ',') || '{brackets[1]}'"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
