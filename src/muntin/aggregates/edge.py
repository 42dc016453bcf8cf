"""What FIRST and LAST have in common: the value of the row at one end of the order of time."""

from __future__ import annotations

from muntin.aggregates.function import AggregateFunction, Edge
from muntin.aggregates.types import is_any


def by_time(name: str, edge: Edge, *, oracle: str) -> AggregateFunction:
    """Return the function that gives the value at one end."""
    return AggregateFunction(
        name=name,
        example=f"{name.upper()}(x)",
        accepts=is_any,
        needs=lambda _kind, _fraction: (edge,),
        result=lambda kept, _kind, _fraction: kept.pick(edge),
        oracle=oracle,
    )
