"""BOOL_AND: whether all values are true, ignoring NULLs; NULL if there are none."""

from __future__ import annotations

import pyarrow.types as pat

from muntin.aggregates.function import AggregateFunction, Partial, Rank, RankKind, ranked_result

_RANK = Rank(RankKind.LEAST)

FUNCTION = AggregateFunction(
    name="bool_and",
    example="BOOL_AND(x)",
    accepts=pat.is_boolean,
    needs=lambda _kind, _fraction: (_RANK,),
    result=lambda kept, _kind, _fraction: ranked_result(kept, _RANK),
    partial=lambda _kind: Partial((("bool_and", None),)),
    merged_by="bool_and",
    ignores_duplicates=True,
)
