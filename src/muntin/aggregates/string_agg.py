"""STRING_AGG: the values as texts in the order of time, a separator between them, NULLs aside."""

from __future__ import annotations

from muntin.aggregates.function import AggregateFunction, Arguments, Listed
from muntin.aggregates.types import is_any

FUNCTION = AggregateFunction(
    name="string_agg",
    example="STRING_AGG(x, ',')",
    accepts=is_any,
    needs=lambda _kind, _fraction: (Listed.BY_TIME,),
    result=lambda kept, _kind, _fraction: kept.pick(Listed.BY_TIME),
    aliases=("group_concat", "listagg"),
    arguments=Arguments.WITH_SEPARATOR,
    takes_distinct=False,
    kept_as="list",
    form="list_aggregate({0}, 'string_agg', {1})",
)
