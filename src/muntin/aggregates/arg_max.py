"""ARG_MAX(x, key): the value of the row with the greatest key, of the oldest among equals; NULLs aside."""

from __future__ import annotations

from muntin.aggregates.function import AggregateFunction, Arguments, Keyed, RankKind
from muntin.aggregates.types import is_any

_ROW = Keyed(RankKind.GREATEST)

FUNCTION = AggregateFunction(
    name="arg_max",
    example="ARG_MAX(x, y)",
    accepts=is_any,
    needs=lambda _kind, _fraction: (_ROW,),
    result=lambda kept, _kind, _fraction: kept.pick(_ROW),
    aliases=("argmax", "max_by"),
    arguments=Arguments.WITH_KEY,
    oracle=(
        "(list({argument} ORDER BY {key} DESC, {order}) FILTER ({argument} IS NOT NULL AND {key} IS NOT NULL))[1]"
    ),
)
