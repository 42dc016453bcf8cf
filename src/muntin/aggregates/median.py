"""MEDIAN: the value in the middle, or the mean of the two in the middle."""

from __future__ import annotations

from muntin.aggregates.function import AggregateFunction
from muntin.aggregates.quantile_cont import interpolated, neighbors
from muntin.aggregates.types import is_interpolable

FUNCTION = AggregateFunction(
    name="median",
    example="MEDIAN(x)",
    accepts=is_interpolable,
    needs=neighbors,
    result=interpolated,
)
