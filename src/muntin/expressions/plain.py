"""Conditions that need no DuckDB: a column of whole numbers compared with a number.

A call to DuckDB takes about a millisecond for any number of rows, which dominates the cost of small
batches.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pat

from muntin.model.arrays import Mask

_Plain: TypeAlias = tuple[str, Callable[[Any, Any], Any], int]

_OPERATORS = {
    "=": operator.eq, "<>": operator.ne, "!=": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_FORM = re.compile(r'"((?:[^"]|"")+)"\s*(<=|>=|<>|!=|=|<|>)\s*(-?\d{1,18})')
"""Numbers of more digits may be of another type."""


@lru_cache(maxsize=1_024)
def _read(text: str) -> _Plain | None:
    """Return the column, the operator and the number of a condition; None for other forms."""
    found = _FORM.fullmatch(text.strip())
    return (
        None
        if found is None
        else (found[1].replace('""', '"'), _OPERATORS[found[2]], int(found[3]))
    )


def plain_mask(text: str, batch: pa.Table) -> Mask | None:
    """Return whether a condition is true, not false or NULL, row by row; None for other forms.

    >>> plain_mask('"0.x" >= 2', pa.table({"0.x": [1, 2, None]})).tolist()
    [False, True, False]
    >>> plain_mask('"0.x" >= 2.5', pa.table({"0.x": [1, 2, None]})) is None
    True
    """
    plain = _read(text)
    if plain is None:
        return None
    name, compare, number = plain
    column = batch.column(name)
    if not pat.is_signed_integer(column.type):
        return None
    values = column.fill_null(0) if column.null_count else column
    mask: Mask = compare(values.to_numpy(), number)
    return mask & column.is_valid().to_numpy() if column.null_count else mask
