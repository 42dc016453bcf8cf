"""COUNT: the number of values, ignoring NULLs; ``COUNT(*)`` counts rows."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa

from muntin.aggregates.function import (
    AggregateFunction,
    Arguments,
    ArgumentSummary,
    Partial,
    Result,
    differ,
)
from muntin.aggregates.types import is_any


def counted(kept: ArgumentSummary, kind: pa.DataType, fraction: Fraction) -> Result:
    """Return the number of values."""
    del kind, fraction
    return Result(pa.array(kept.counts), differ(kept.counts))


FUNCTION = AggregateFunction(
    name="count",
    example="COUNT(x)",
    accepts=is_any,
    needs=lambda _kind, _fraction: (),
    result=counted,
    arguments=Arguments.OPTIONAL,
    partial=lambda _kind: Partial((("count", None),), "coalesce({0}, 0)::BIGINT"),
    merged_by="sum",
    adds_up_distinct=True,
)
