"""APPROX_COUNT_DISTINCT: the number of distinct values, exactly; DuckDB's is an estimate of it."""

from __future__ import annotations

from muntin.aggregates.count import counted
from muntin.aggregates.function import AggregateFunction
from muntin.aggregates.types import is_any

FUNCTION = AggregateFunction(
    name="approx_count_distinct",
    example="APPROX_COUNT_DISTINCT(x)",
    accepts=is_any,
    needs=lambda _kind, _fraction: (),
    result=counted,
    always_distinct=True,
    oracle="count(DISTINCT {argument})",
)
