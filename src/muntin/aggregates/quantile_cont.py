"""QUANTILE_CONT: the value at a fraction of the order, interpolated between its neighbors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa

from muntin.aggregates.exact import multiply_add
from muntin.aggregates.function import (
    AggregateFunction,
    Arguments,
    ArgumentSummary,
    Rank,
    RankKind,
    Result,
    differ,
)
from muntin.aggregates.types import is_interpolable


def neighbors(kind: pa.DataType, fraction: Fraction) -> tuple[Rank, ...]:
    """Return the two values between which the quantile lies."""
    del kind
    return Rank(RankKind.LOWER, fraction), Rank(RankKind.UPPER, fraction)


def interpolated(kept: ArgumentSummary, kind: pa.DataType, fraction: Fraction) -> Result:
    """Return the values between the neighbors."""
    some = kept.counts > 0
    ranks = neighbors(kind, fraction)
    lower, upper = (
        kept.values(kept.rank(rank)).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        for rank in ranks
    )
    place = np.maximum(kept.counts - 1, 0) * float(fraction)
    share = place - np.floor(place)
    # DuckDB multiplies and adds in one operation, also between equal neighbors.
    with np.errstate(invalid="ignore"):
        numbers = np.where(share == 0, lower, multiply_add(lower, 1.0 - share, upper * share))
    numbers = np.where(some, numbers, 0.0)
    changed = differ(some, numbers.view(np.int64))  # also when only the share has changed
    return Result(pa.array(numbers, mask=~some).cast(kind), changed)


FUNCTION = AggregateFunction(
    name="quantile_cont",
    example="QUANTILE_CONT(x, 0.9)",
    accepts=is_interpolable,
    needs=neighbors,
    result=interpolated,
    within_group="percentile_cont",
    arguments=Arguments.WITH_FRACTION,
)
