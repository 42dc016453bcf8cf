"""The sharing groups of queries that are registered one after the other."""

from __future__ import annotations

from collections.abc import Iterable

from muntin.plan.query import Query
from muntin.planner.sharing_groups import SharingGroup, add_query


def share(queries: Iterable[Query]) -> tuple[SharingGroup, ...]:
    """Return the sharing groups of queries, in the order of the queries that found them."""
    groups: tuple[SharingGroup, ...] = ()
    for query in queries:
        groups = add_query(groups, query)
    return groups
