"""Rule: fix for every origin of new rows the order in which the other sources are joined.

A given order comes first, then the cheapest one, then an order along the equalities. Sound because
results are put into their ruled order afterwards if the join order does not yield it.
"""

from __future__ import annotations

from dataclasses import replace

from muntin.model.clock import SECOND
from muntin.model.settings import Algorithm
from muntin.planner.draft import JoinDraft
from muntin.planner.join_graph import JoinGraph
from muntin.planner.lazy_orders import WindowStatistics, local_orders
from muntin.planner.orders import Order, OrderSources, choose_orders


def order_sources(draft: JoinDraft) -> JoinDraft:
    """Choose the join orders."""
    cheapest = draft.choice.orders if draft.choice else None
    if draft.algorithm is Algorithm.GENERAL_LAZY and draft.graph is not None:
        cheapest = _general_lazy_orders(draft.graph, draft.reevaluation) or cheapest
    sources = OrderSources(draft.settings.join.order, cheapest, draft.connected)
    return replace(draft, orders=tuple(choose_orders(draft.query, sources, draft.algorithm)))


def _general_lazy_orders(graph: JoinGraph, interval: int | None) -> tuple[Order, ...] | None:
    """Return the orders of GENERAL LAZY, with new rows at any place.

    None unless one attribute is common to all sources and the interval is known.
    """
    common = next(
        (
            members
            for members in graph.classes
            if len({node[0] for node in members}) == graph.count == len(members)
        ),
        None,
    )
    if common is None or interval is None:
        return None
    if any(not graph.rate(source) for source in range(graph.count)):
        return None
    windows = [
        WindowStatistics(
            graph.rate(node[0]),
            graph.rows(node[0]),
            graph.distinct(node),
            graph.buckets[node[0]] or round(graph.distinct(node)),
        )
        for node in sorted(common)
    ]
    return local_orders(windows, interval / SECOND)
