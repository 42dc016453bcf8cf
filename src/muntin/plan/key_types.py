"""The type in which the two sides of an equality are compared by operators above joins."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pat

_SMALL = (pa.uint64(), pa.float32())


def key_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the type in which values compare as in SQL; None if that takes more than a cast."""
    if left == right:
        return left
    if any(kind in _SMALL for kind in (left, right)):
        return None
    if pat.is_integer(left) and pat.is_integer(right):
        return pa.int64()
    if all(pat.is_integer(kind) or pat.is_float64(kind) for kind in (left, right)):
        return pa.float64()
    return None
