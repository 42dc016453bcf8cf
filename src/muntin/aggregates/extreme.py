"""The common part of MIN, MAX and their kin: the first or last of the ordered values or keys."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from muntin.aggregates.function import (
    AggregateFunction,
    Arguments,
    Keyed,
    Partial,
    Rank,
    RankKind,
    ranked_result,
)
from muntin.aggregates.types import is_any


def by_value(
    name: str, kind: RankKind, accepts: Callable[[pa.DataType], bool]
) -> AggregateFunction:
    """Return the function for the least or the greatest value."""
    rank = Rank(kind)
    return AggregateFunction(
        name=name,
        example=f"{name.upper()}(x)",
        accepts=accepts,
        needs=lambda _kind, _fraction: (rank,),
        result=lambda kept, _kind, _fraction: ranked_result(kept, rank),
        partial=lambda _kind: Partial(((name, None),)),
        merged_by=name,
        ignores_duplicates=True,
    )


def by_key(name: str, kind: RankKind, aliases: tuple[str, ...]) -> AggregateFunction:
    """Return the function for the value of the row with the least or the greatest key.

    Among equal keys it is that of the oldest row. Rows with a NULL in either are ignored.
    """
    row = Keyed(kind)
    direction = "ASC" if kind is RankKind.LEAST else "DESC"
    return AggregateFunction(
        name=name,
        example=f"{name.upper()}(x, y)",
        accepts=is_any,
        needs=lambda _kind, _fraction: (row,),
        result=lambda kept, _kind, _fraction: kept.pick(row),
        aliases=aliases,
        arguments=Arguments.WITH_KEY,
        oracle=(
            f"(list({{argument}} ORDER BY {{key}} {direction}, {{order}}) "
            "FILTER ({argument} IS NOT NULL AND {key} IS NOT NULL))[1]"
        ),
    )
