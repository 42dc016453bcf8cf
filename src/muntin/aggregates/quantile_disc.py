"""QUANTILE_DISC: the first value such that at least a fraction of all values is not above it."""

from __future__ import annotations

from muntin.aggregates.function import AggregateFunction, Arguments, Rank, RankKind, ranked_result
from muntin.aggregates.types import is_interpolable

FUNCTION = AggregateFunction(
    name="quantile_disc",
    example="QUANTILE_DISC(x, 0.9)",
    accepts=is_interpolable,
    needs=lambda _kind, fraction: (Rank(RankKind.DISCRETE, fraction),),
    result=lambda kept, _kind, fraction: ranked_result(kept, Rank(RankKind.DISCRETE, fraction)),
    aliases=("quantile",),
    within_group="percentile_disc",
    arguments=Arguments.WITH_FRACTION,
)
