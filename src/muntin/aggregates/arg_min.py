"""ARG_MIN(x, key): the value of the row with the least key.

Among equal keys it is that of the oldest row. Rows with a NULL in either are ignored.
"""

from __future__ import annotations

from muntin.aggregates.function import AggregateFunction, Arguments, Keyed, RankKind
from muntin.aggregates.types import is_any

_ROW = Keyed(RankKind.LEAST)

FUNCTION = AggregateFunction(
    name="arg_min",
    example="ARG_MIN(x, y)",
    accepts=is_any,
    needs=lambda _kind, _fraction: (_ROW,),
    result=lambda kept, _kind, _fraction: kept.pick(_ROW),
    aliases=("argmin", "min_by"),
    arguments=Arguments.WITH_KEY,
    oracle=(
        "(list({argument} ORDER BY {key} ASC, {order}) "
        "FILTER ({argument} IS NOT NULL AND {key} IS NOT NULL))[1]"
    ),
)
