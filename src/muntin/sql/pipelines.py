"""Bind a standing query: a window join alone, or a plan tree above window joins."""

from __future__ import annotations

from dataclasses import replace

from muntin.model.catalog import Catalog, View
from muntin.model.window import TimeWindow
from muntin.plan.asof_join import AsofJoin
from muntin.plan.node import Node
from muntin.plan.nodes import Join, Project, Scan, SetOperation, SetOperator
from muntin.plan.query import Emit, Query
from muntin.plan.semi_join import SemiJoin
from muntin.plan.top_n import TopN
from muntin.sql.clauses import Clauses, cut_clauses
from muntin.sql.cursor import plain_options
from muntin.sql.emit_final import with_window_end
from muntin.sql.levels import too_deep
from muntin.sql.lexer import Tokens
from muntin.sql.named_selects import own_clauses, with_views
from muntin.sql.plain_selects import is_joins, is_plain
from muntin.sql.refusals import refuse
from muntin.sql.selects import Selects
from muntin.sql.sources import bind_freshness
from muntin.sql.window_calls import calls
from muntin.sql.windows import Extent


def bind_standing(tokens: Tokens, name: str, catalog: Catalog) -> Query:
    """Return the query that tokens stand for."""
    refuse(tokens)
    select, clauses = cut_clauses(tokens)
    plain = is_plain(select, catalog)
    above = clauses.emit in {Emit.SNAPSHOT, Emit.FINAL}
    sessions = calls("SESSION", select)
    several = sessions or calls("HOP", select)
    alone = plain and not above and not several
    if clauses.emit is Emit.SNAPSHOT and clauses.every is None:
        raise tokens.error(
            tokens.start,
            "EMIT SNAPSHOT needs EVERY",
            "Say how often the whole answer is wanted: EVERY 10 SECONDS",
        )
    emits = clauses.emit in {None, Emit.INSERTS} and not several
    inserts = emits and not plain and is_joins(select, catalog)
    selects = Selects(name, clauses, catalog, inserts=inserts)
    try:
        root = (
            selects.bind_join(select)
            if alone
            else selects.bind(select, sorts=clauses.emit is Emit.SNAPSHOT)
        )
    except RecursionError as error:
        raise too_deep(select) from error
    if clauses.emit is Emit.INSERTS and selects.nests and _is_outer(root):
        fact = "a sub-select in WHERE or the select list emits no inserts"
        hint = "End the query with EMIT CHANGES, or write SEMI, ANTI or LEFT JOIN"
        raise tokens.error(tokens.start, fact, hint)
    emits = clauses.emit is Emit.INSERTS or (clauses.emit is None and not selects.nests)
    if not alone and emits and _is_outer(root):
        fact = (
            "without EMIT CHANGES, an outer join has to be the last one, and all its entries "
            "stored tables or streams with [RANGE ...] windows"
        )
        raise tokens.error(tokens.start, fact, "End the query with EMIT CHANGES")
    if inserts and clauses.every is not None:
        fact = "EVERY is not supported for outer joins that emit inserts"
        raise tokens.error(tokens.start, fact, "Leave EVERY out, or use EMIT CHANGES")
    query = Query(
        name=name,
        text=with_views(tokens.original, selects.names.reads.values()),
        root=root,
        emit=clauses.emit
        or (Emit.INSERTS if (plain or inserts) and not sessions else Emit.CHANGES),
        every=clauses.every,
        options=plain_options(clauses.options),
        place=tokens.place(tokens.start),
        views=tuple(selects.names.reads),
    )
    if query.emit is Emit.FINAL:
        query = with_window_end(query, catalog, tokens)
    return _fresh(_sorted(query), clauses, tokens)


def bind_view(tokens: Tokens, name: str, catalog: Catalog) -> View:
    """Return the view that tokens define, after binding it under a window if it has none."""
    refuse(tokens)
    any_window = Clauses(window=Extent(TimeWindow(1), tokens[0])) if len(tokens) else Clauses()
    select, clauses = own_clauses(tokens, any_window)
    selects = Selects(name, clauses, catalog)
    try:
        root = selects.bind(select)
    except RecursionError as error:
        raise too_deep(select) from error
    relations = (node.relation for node in root.walk() if isinstance(node, Scan))
    text = with_views(tokens.original, selects.names.reads.values())
    return View(name, text, tuple(dict.fromkeys(relations)), tuple(selects.names.reads))


def _sorted(query: Query) -> Query:
    """Return a query whose snapshots are in order, if it says which."""
    if query.emit is not Emit.SNAPSHOT or not isinstance(query.root, TopN):
        return query
    every = tuple(range(len(query.root.input.schema)))
    hidden = len(every) - len(query.root.columns)
    root = replace(query.root, columns=every)
    return replace(query, root=root, sort=root.order, hidden=hidden)


def _is_outer(root: Node) -> bool:
    """Return whether a tree is nothing but joins, of which some keep rows by their matches."""
    nodes = list(root.dataflow())
    plain = all(
        isinstance(node, (Join, Project, Scan, SemiJoin, AsofJoin))
        or (isinstance(node, SetOperation) and node.operator is SetOperator.UNION_ALL)
        for node in nodes
    )
    return plain and any(
        isinstance(node, SemiJoin)
        or (isinstance(node, AsofJoin) and node.outer and not node.inserts)
        for node in nodes
    )


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
