"""What queries read by name: views, and the answers of other queries.

A view is a select under a name. If it ends with a WINDOW, its streams have that window for all who
read it; otherwise they have that of the query that reads it. A query that is read is its select
with its windows: a reader gets the rows of its answer at every instant.
"""

from __future__ import annotations

from muntin.model.catalog import View
from muntin.model.clock import format_interval
from muntin.plan.query import Emit, Query
from muntin.sql.clauses import Clauses, cut_clauses
from muntin.sql.lexer import tokenize
from muntin.sql.shape import FromEntry


def readable(query: Query) -> View:
    """Return a standing query as others can read it."""
    select, clauses = cut_clauses(tokenize(query.text, query.name))
    return View(
        query.name,
        f"{select.original} {clauses.window_text}".strip(),
        tuple(dict.fromkeys(source.relation for source in query.sources)),
        query.views,
        "query",
        query.every,
        _barrier(query),
    )


def _barrier(query: Query) -> tuple[str, str] | None:
    """Return why a query cannot be read, and what to do; None if it can be."""
    view = "or make its select a view and read that"
    if query.emit is not Emit.CHANGES:
        fact = f"query {query.name} emits {query.emit.value}, and only answers can be read"
        return fact, f"Give it EMIT CHANGES, {view}"
    if query.freshness or query.leaf_freshness:
        fact = f"query {query.name} has a FRESHNESS, which its readers would not have"
        return fact, f"Leave it out, {view}"
    return None


def refuse_barrier(view: View, entry: FromEntry, clauses: Clauses) -> None:
    """Raise if a view cannot be read under the clauses of a query."""
    if view.barrier is not None:
        raise entry.tokens.error(entry.tokens[0], *view.barrier)
    if view.every is not None and (clauses.every is None or clauses.every % view.every):
        interval = format_interval(view.every)
        raise entry.tokens.error(
            entry.tokens[0],
            f"the answer of query {view.name} changes every {interval} only",
            f"Give this query EVERY {interval} or a multiple, or make its select a view and "
            "read that",
        )
