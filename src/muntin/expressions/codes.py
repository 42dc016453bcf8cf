"""Values as the integers that joins and groups compare: equal values have equal codes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.model.arrays import Integers, Reals

_QUIET_NAN = np.float64("nan")


def whole_codes(column: pa.ChunkedArray) -> Integers:
    """Return codes of integers, booleans, dates and times; NULL as 0."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(column.type) or pa.types.is_time64(column.type):
        column = column.cast(pa.int64())
    if column.null_count:
        column = column.fill_null(0)
    values: Integers = column.to_numpy()
    return (
        values.view(np.int64) if values.dtype == np.uint64 else values.astype(np.int64, copy=False)
    )


def real_codes(column: pa.ChunkedArray) -> Integers:
    """Return codes of floating-point values in their order: one zero, one NaN above infinity."""
    values = column.cast(pa.float64(), safe=False)
    if values.null_count:
        values = pc.fill_null(values, 0.0)
    reals: Reals = values.to_numpy() + 0.0
    reals[np.isnan(reals)] = _QUIET_NAN
    bits = reals.view(np.int64)
    return bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))
