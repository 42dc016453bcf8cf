"""AVG: the exact sum over the number of values, rounded once; NULL if there are none."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pyarrow.types as pat

from muntin.aggregates.exact import quotients
from muntin.aggregates.function import (
    AggregateFunction,
    ArgumentSummary,
    Partial,
    Result,
    real_result,
)
from muntin.aggregates.sum import summed
from muntin.aggregates.types import is_number

_SUM = pa.decimal128(38, 0)
_TWO_64 = "18446744073709551616"
# The merged sum is rounded to a floating-point number in the same way as `quotients` rounds it.
_WIDE = (
    f"({{0}}::HUGEINT >> 64)::BIGINT::DOUBLE * {_TWO_64}::DOUBLE"
    f" + ({{0}}::HUGEINT & ({_TWO_64}::HUGEINT - 1))::UBIGINT::DOUBLE"
)
_FORM = f"coalesce(TRY_CAST({{0}} AS BIGINT)::DOUBLE, {_WIDE}) / {{1}}::BIGINT::DOUBLE"


def _result(kept: ArgumentSummary, kind: pa.DataType, fraction: Fraction) -> Result:
    del kind, fraction
    return real_result(quotients(kept.counts, kept.whole, kept.reals, kept.scale), kept.counts > 0)


def _partial(kind: pa.DataType | None) -> Partial | None:
    if kind is None or not pat.is_integer(kind):
        return None
    return Partial((("sum", _SUM), ("count", pa.int64())), _FORM)


FUNCTION = AggregateFunction(
    name="avg",
    example="AVG(x)",
    accepts=is_number,
    needs=summed,
    result=_result,
    aliases=("mean",),
    partial=_partial,
)
