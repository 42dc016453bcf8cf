"""SUM: exact for any order of additions and removals; NULL if there are no values.

Sums of whole numbers and decimals that do not fit into 38 digits are NULL.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from muntin.aggregates.exact import decimals, fits_decimal
from muntin.aggregates.function import (
    AggregateFunction,
    ArgumentSummary,
    Keep,
    Need,
    Partial,
    Result,
    differ,
    real_result,
)
from muntin.aggregates.types import is_summable

_SHORT = 18
"""Digits of decimals whose sums never exceed 38 digits, for any number of rows."""


def summed(kind: pa.DataType, fraction: Fraction) -> tuple[Need, ...]:
    """Return the sum to keep, which is exact for values of a type."""
    del fraction
    return (Keep.REAL_SUM if pat.is_floating(kind) else Keep.WHOLE_SUM,)


def _result(kept: ArgumentSummary, kind: pa.DataType, fraction: Fraction) -> Result:
    del fraction
    some = kept.counts > 0
    if kept.whole is None:
        assert kept.reals is not None, "the function needs it"
        return real_result(kept.reals[:, 0], some)
    fits = some & fits_decimal(kept.whole)
    words = np.where(fits[:, None], kept.whole, 0)
    return Result(decimals(words, fits, kind), differ(words, fits))


def _partial(kind: pa.DataType | None) -> Partial | None:
    short = kind is not None and pat.is_decimal128(kind) and kind.precision <= _SHORT
    whole = kind is not None and pat.is_integer(kind)
    return Partial((("sum", None),)) if whole or short else None


FUNCTION = AggregateFunction(
    name="sum",
    example="SUM(x)",
    accepts=is_summable,
    needs=summed,
    result=_result,
    partial=_partial,
    merged_by="sum",
)
