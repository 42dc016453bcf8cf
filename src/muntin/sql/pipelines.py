"""Bind a standing query: a window join alone, or a plan tree above window joins."""

from __future__ import annotations

from muntin.model.catalog import Catalog
from muntin.plan.nodes import Join
from muntin.plan.query import Emit, Query
from muntin.sql.clauses import cut_clauses
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
    if clauses.freshness and not alone:
        token = clauses.freshness[0][0] or clauses.freshness[0][1].token
        hint = "Leave FRESHNESS out; it is kept for joins only so far"
        raise tokens.error(
            token, "FRESHNESS is not supported above DISTINCT, GROUP BY and set operators", hint
        )
    selects = Selects(name, clauses, catalog)
    try:
        root = selects.bind_join(select) if alone else selects.bind(select)
    except RecursionError as error:
        raise too_deep(select) from error
    return Query(
        name=name,
        text=tokens.original,
        root=root,
        emit=clauses.emit or (Emit.INSERTS if alone else Emit.CHANGES),
        every=clauses.every,
        freshness=bind_freshness(clauses, root.scans, tokens) if isinstance(root, Join) else (),
        options=plain_options(clauses.options),
        place=tokens.place(tokens.start),
    )
