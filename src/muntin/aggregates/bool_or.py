"""BOOL_OR: whether any values are true, ignoring NULLs; NULL if there are none."""

from __future__ import annotations

import pyarrow.types as pat

from muntin.aggregates.function import AggregateFunction, Partial, Rank, RankKind, ranked_result

_RANK = Rank(RankKind.GREATEST)

FUNCTION = AggregateFunction(
    name="bool_or",
    example="BOOL_OR(x)",
    accepts=pat.is_boolean,
    needs=lambda _kind, _fraction: (_RANK,),
    result=lambda kept, _kind, _fraction: ranked_result(kept, _RANK),
    partial=lambda _kind: Partial((("bool_or", None),)),
    merged_by="bool_or",
    ignores_duplicates=True,
)
