"""Types of arguments that aggregate functions accept."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pat


def is_any(kind: pa.DataType) -> bool:
    """Accept every type."""
    del kind
    return True


def is_number(kind: pa.DataType) -> bool:
    """Accept integers, floating-point numbers and decimals."""
    return bool(pat.is_integer(kind) or pat.is_floating(kind) or pat.is_decimal128(kind))


def is_summable(kind: pa.DataType) -> bool:
    """Accept numbers, and booleans, which count as 0 and 1."""
    return is_number(kind) or bool(pat.is_boolean(kind))


def is_ordered(kind: pa.DataType) -> bool:
    """Accept types whose order codes keep: all that are not nested."""
    return not pat.is_nested(kind)


def is_interpolable(kind: pa.DataType) -> bool:
    """Accept numbers between which a quantile may lie."""
    return bool(pat.is_integer(kind) or pat.is_floating(kind)) and kind != pa.uint64()
