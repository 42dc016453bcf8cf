"""The common part of FIRST and LAST: the value of the oldest or newest row."""

from __future__ import annotations

from muntin.aggregates.function import AggregateFunction, Edge
from muntin.aggregates.types import is_any


def by_time(name: str, edge: Edge, *, oracle: str) -> AggregateFunction:
    """Return the function for the oldest or the newest row."""
    return AggregateFunction(
        name=name,
        example=f"{name.upper()}(x)",
        accepts=is_any,
        needs=lambda _kind, _fraction: (edge,),
        result=lambda kept, _kind, _fraction: kept.pick(edge),
        oracle=oracle,
    )
