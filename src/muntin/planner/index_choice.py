"""Which windows get an index, and how many buckets [Golab03, sections 5.4 and 6.5].

Without a limit every window that an equality can look up has an index with two buckets a row,
unless the window is so small that scanning it is cheaper. Under a limit buckets go where they save
most: beginning without any index, buckets are added by the quarter to one window at a time, always
where the predicted saving for each byte is largest. So fast streams with large windows get more.
"""

from __future__ import annotations

from itertools import count
from math import ceil

from muntin.planner.join_graph import OWN_BUCKETS, JoinGraph
from muntin.planner.local_orders import best_orders, join_cost
from muntin.planner.unit_costs import UnitCosts

BUCKET_BYTES = 4
_GROWTH = 1.25
_LOOK_AGAIN = 8
"""Rounds after which orders are chosen again: the best ones rarely change as buckets grow."""
_SMALL = 8.0
"""Windows of more rows are never cheaper to scan than to look up."""
_PAIR = 2
_CLEARLY = 0.8
"""An index is left out only if that is predicted to cost at most this share."""


def without_needless(graph: JoinGraph, costs: UnitCosts) -> JoinGraph:
    """Return the graph without indexes of windows that are cheaper to scan.

    Two windows with one equality keep theirs: they have a kernel of their own, and their
    measurements give no reason to scan, not even at one row per window.
    """
    if graph.count == _PAIR and len(graph.classes) == 1 and not graph.comparisons:
        return graph
    small = [
        source
        for source in range(graph.count)
        if graph.buckets[source] == 0 and graph.rows(source) <= _SMALL
    ]
    if not small:
        return graph
    current = best_orders(graph, costs)
    for source in small:
        scanned = graph.having(
            [1 if place == source else buckets for place, buckets in enumerate(graph.buckets)]
        )
        cost = join_cost(scanned, current.orders, costs)
        if cost.time < _CLEARLY * current.time:
            graph, current = scanned, cost
    return graph


def within_memory(graph: JoinGraph, costs: UnitCosts, limit: int) -> JoinGraph:
    """Return the graph with as many buckets as fit into ``limit`` bytes, where they save most.

    None where it may have none.
    """
    may = [source for source in range(graph.count) if graph.buckets[source] != 1]
    wanted = {source: max(2, round(OWN_BUCKETS * graph.rows(source))) for source in may}
    if sum(wanted.values()) * BUCKET_BYTES <= limit:
        return graph
    buckets = [1] * graph.count
    current = best_orders(graph.having(buckets), costs)
    for turn in count(1):
        room = limit // BUCKET_BYTES - sum(buckets[source] for source in may if buckets[source] > 1)
        options = []
        for source in may:
            more = min(max(2, ceil(_GROWTH * buckets[source])), wanted[source])
            added = more - (buckets[source] if buckets[source] > 1 else 0)
            if more > buckets[source] and added <= room:
                tried = [
                    more if place == source else number for place, number in enumerate(buckets)
                ]
                cost = join_cost(graph.having(tried), current.orders, costs)
                options.append(((current.time - cost.time) / added, -source, tried, cost))
        if not options or max(options)[0] <= 0:
            break
        _, _, buckets, current = max(options)
        if turn % _LOOK_AGAIN == 0:
            current = best_orders(graph.having(buckets), costs)
    return graph.having(buckets)
