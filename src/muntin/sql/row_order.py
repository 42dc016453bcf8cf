"""The columns that rows carry for their order, where something above them depends on it."""

from __future__ import annotations

import pyarrow as pa

from muntin.model.catalog import Catalog, Stream
from muntin.plan.expression import POSITION, ColumnRef, Expression, OutputColumn, quote
from muntin.sql.aggregates import Call
from muntin.sql.bound_from import BoundFrom


def order_columns(bound: BoundFrom, catalog: Catalog) -> list[OutputColumn]:
    """Return the columns that order rows: none over sub-selects and outer joins.

    The time of the newest member, then the places of all in their streams.
    """
    sources = bound.sources
    if any(bound.ordered) or all(source.stored for source in sources):
        return []
    places = [ColumnRef(place, POSITION) for place in range(len(sources))]
    order = [Expression(quote(reference.flat), (reference,), pa.int64()) for reference in places]
    relations = [catalog.find(source.relation) for source in sources]
    times = tuple(
        ColumnRef(place, relation.time)
        for place, relation in enumerate(relations)
        if isinstance(relation, Stream)
    )
    if len(times) == 1:
        kind = sources[times[0].source].schema.field(times[0].column).type
        order.insert(0, Expression(quote(times[0].flat), times, kind))
    else:
        instants = ", ".join(f"epoch_us({quote(reference.flat)})" for reference in times)
        order.insert(0, Expression(f"greatest({instants})", times, pa.int64()))
    return [OutputColumn(f"#o{number}", expression) for number, expression in enumerate(order)]


def order_for(call: Call, bound: BoundFrom, catalog: Catalog) -> list[OutputColumn]:
    """Return the columns that order rows for FIRST, LAST and the like; raise if there are none."""
    if any(bound.ordered):
        raise call.tokens.error(
            call.tokens.start,
            f"{call.tokens[0].text} over a sub-select or an outer join is not supported",
            "Take it inside the sub-select, over streams and tables",
        )
    return order_columns(bound, catalog)
