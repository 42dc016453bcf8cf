"""Bind a standing query: a window join alone, or a plan tree above window joins."""

from __future__ import annotations

from dataclasses import replace

from muntin.model.catalog import Catalog
from muntin.plan.nodes import Join, Scan
from muntin.plan.query import Emit, Query
from muntin.sql.clauses import Clauses, cut_clauses
from muntin.sql.cursor import plain_options
from muntin.sql.lexer import Tokens
from muntin.sql.refusals import refuse
from muntin.sql.selects import Selects, is_plain, too_deep
from muntin.sql.sources import bind_freshness


def bind_standing(tokens: Tokens, name: str, catalog: Catalog) -> Query:
    """Return the query that tokens stand for."""
    refuse(tokens)
    select, clauses = cut_clauses(tokens)
    alone = is_plain(select) and clauses.emit is not Emit.SNAPSHOT
    if clauses.emit is Emit.SNAPSHOT and clauses.every is None:
        raise tokens.error(
            tokens.start,
            "EMIT SNAPSHOT needs EVERY",
            "Say how often the whole answer is wanted: EVERY 10 SECONDS",
        )
    selects = Selects(name, clauses, catalog)
    try:
        root = selects.bind_join(select) if alone else selects.bind(select)
    except RecursionError as error:
        raise too_deep(select) from error
    query = Query(
        name=name,
        text=tokens.original,
        root=root,
        emit=clauses.emit or (Emit.INSERTS if alone else Emit.CHANGES),
        every=clauses.every,
        options=plain_options(clauses.options),
        place=tokens.place(tokens.start),
    )
    return _fresh(query, clauses, tokens)


def _fresh(query: Query, clauses: Clauses, tokens: Tokens) -> Query:
    """Return a query with its FRESHNESS, which is that of its window joins."""
    fresh = dict(bind_freshness(clauses, query.sources, tokens))
    if query.is_join:
        return replace(query, freshness=tuple(sorted(fresh.items())))
    count, found = 0, []
    for node in query.root.walk():  # the scans of a join come before it
        count += isinstance(node, Scan)
        if isinstance(node, Join) and node.is_leaf:
            first = count - len(node.scans)
            own = ((at - first, fresh[at]) for at in range(first, count) if at in fresh)
            found.append((node.name, tuple(own)))
    return replace(query, leaf_freshness=tuple(found)) if fresh else query
