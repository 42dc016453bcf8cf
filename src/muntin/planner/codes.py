"""Which comparisons a join can make on integers: the choice of codes.

Sound because a code keeps exactly what the comparison asks of the values: for WHOLE and REAL both
equality and order as DuckDB defines them on the type in which it compares the two sides; for HASH
equality one way only, so such comparisons are made again on the real values. A pair of types for
which neither holds gets no code, and the comparison is evaluated by DuckDB on the candidates.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pat

from muntin.plan.join import CodeKind


def _is_whole(kind: pa.DataType) -> bool:
    return bool(
        pat.is_signed_integer(kind) or (pat.is_unsigned_integer(kind) and kind.bit_width < 64)
    )


def _is_fixed(kind: pa.DataType) -> bool:
    return bool(
        pat.is_boolean(kind)
        or pat.is_date32(kind)
        or pat.is_time64(kind)
        or (pat.is_timestamp(kind) and kind.unit == "us")
    )


def _is_hashable(kind: pa.DataType) -> bool:
    return bool(
        pat.is_string(kind)
        or pat.is_large_string(kind)
        or pat.is_binary(kind)
        or pat.is_large_binary(kind)
        or pat.is_decimal128(kind)
        or pat.is_uint64(kind)
        or _is_string_view(kind)
        or pat.is_timestamp(kind)
    )


def _is_string_view(kind: pa.DataType) -> bool:
    return str(kind) == "string_view"


def code_kind(left: pa.DataType, right: pa.DataType, operator: str) -> CodeKind | None:
    """Return the kind of code on which ``left operator right`` can be decided, or None."""
    if (_is_whole(left) and _is_whole(right)) or (left == right and _is_fixed(left)):
        return CodeKind.WHOLE
    if all(pat.is_floating(kind) and kind.bit_width > 16 for kind in (left, right)):
        return CodeKind.REAL
    if {_is_whole(left), _is_whole(right)} == {True, False} and any(
        pat.is_float64(kind) for kind in (left, right)
    ):
        return CodeKind.REAL
    if operator == "=" and left == right and _is_hashable(left):
        return CodeKind.HASH
    return None
