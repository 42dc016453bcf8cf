"""Results as text, for a browser that shows them in a table."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date, datetime, time
from typing import Any

import pyarrow as pa

from muntin.console.source import Rows
from muntin.model.printable import printable

LONGEST = 200
"""Characters of a value that are shown."""


def rows_of(table: pa.Table) -> Rows:
    """Return the rows of a table as text; None for NULL.

    >>> rows_of(pa.table({"k": [1, None], "v": [[1, 2], []]}))
    [('1', '[1, 2]'), (None, '[]')]
    """
    columns = [[shown(value) for value in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else []


def shown(value: object) -> str | None:
    """Return a value as text on one line, cut where it is too long."""
    if value is None:
        return None
    if isinstance(value, datetime | date | time):
        value = value.isoformat(sep=" ") if isinstance(value, datetime) else value.isoformat()
    if isinstance(value, bool):
        value = str(value).lower()
    text = value[: LONGEST + 1] if isinstance(value, str) else str(value)
    text = printable(text)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def newest(table: pa.Table, most: int) -> pa.Table:
    """Return the last rows of a table, without the memory of the others."""
    if len(table) <= most:
        return table
    return table.take(pa.array(range(len(table) - most, len(table))))


def plain(value: Any) -> Any:
    """Return a value with what JSON lacks as text, or as None where it is no number.

    >>> plain({"a": float("nan"), 1: (2, 3)})
    {'a': None, '1': [2, 3]}
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, Iterable):
        return [plain(each) for each in value]
    return str(value)
