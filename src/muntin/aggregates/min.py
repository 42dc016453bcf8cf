"""MIN: the least value, ignoring NULLs; NULL if there are none."""

from __future__ import annotations

from muntin.aggregates.function import AggregateFunction, Partial, Rank, RankKind, ranked_result
from muntin.aggregates.types import is_ordered

_RANK = Rank(RankKind.LEAST)

FUNCTION = AggregateFunction(
    name="min",
    example="MIN(x)",
    accepts=is_ordered,
    needs=lambda _kind, _fraction: (_RANK,),
    result=lambda kept, _kind, _fraction: ranked_result(kept, _RANK),
    partial=lambda _kind: Partial((("min", None),)),
    merged_by="min",
    ignores_duplicates=True,
)
