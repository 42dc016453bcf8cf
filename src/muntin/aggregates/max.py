"""MAX: the greatest value, ignoring NULLs; NULL if there are none."""

from __future__ import annotations

from muntin.aggregates.function import AggregateFunction, Partial, Rank, RankKind, ranked_result
from muntin.aggregates.types import is_ordered

_RANK = Rank(RankKind.GREATEST)

FUNCTION = AggregateFunction(
    name="max",
    example="MAX(x)",
    accepts=is_ordered,
    needs=lambda _kind, _fraction: (_RANK,),
    result=lambda kept, _kind, _fraction: ranked_result(kept, _RANK),
    partial=lambda _kind: Partial((("max", None),)),
    merged_by="max",
    ignores_duplicates=True,
)
