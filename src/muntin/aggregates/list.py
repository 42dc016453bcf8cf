"""LIST: the values of all rows in the order of time, NULLs included; NULL if there are none."""

from __future__ import annotations

from muntin.aggregates.function import AggregateFunction, Listed
from muntin.aggregates.types import is_any

FUNCTION = AggregateFunction(
    name="list",
    example="LIST(x)",
    accepts=is_any,
    needs=lambda _kind, _fraction: (Listed.BY_TIME,),
    result=lambda kept, _kind, _fraction: kept.pick(Listed.BY_TIME),
    aliases=("array_agg",),
    takes_distinct=False,
    takes_filter=False,
    oracle="list({argument} ORDER BY {order})",
)
