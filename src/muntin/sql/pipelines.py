"""A standing query of any kind: a join alone, or a pipeline above joins."""

from __future__ import annotations

from muntin.model.catalog import Catalog
from muntin.plan.pipeline import Pipeline
from muntin.plan.query import ColumnRef, Emit, Expression, OutputColumn, Query, quote
from muntin.sql.binder import bind_query
from muntin.sql.clauses import cut_clauses
from muntin.sql.lexer import Tokens
from muntin.sql.refusals import refuse
from muntin.sql.selects import Selects, is_plain, too_deep


def bind_standing(tokens: Tokens, name: str, catalog: Catalog) -> Query:
    """The query that tokens stand for; a :class:`Pipeline` if it is more than select, project and join."""
    refuse(tokens)
    select, clauses = cut_clauses(tokens)
    if is_plain(select) and clauses.emit is not Emit.SNAPSHOT:
        return bind_query(tokens, name, catalog)
    if clauses.emit is Emit.SNAPSHOT and clauses.every is None:
        raise tokens.error(
            tokens.start,
            "EMIT SNAPSHOT needs EVERY",
            "Say how often the whole answer is wanted: EVERY 10 SECONDS",
        )
    if clauses.freshness:
        token = clauses.freshness[0][0] or clauses.freshness[0][1].token
        hint = "Leave FRESHNESS out; it is kept for joins only so far"
        raise tokens.error(
            token, "FRESHNESS is not supported above DISTINCT, GROUP BY and set operators", hint
        )
    selects = Selects(name, clauses, catalog)
    try:
        root = selects.bind(select)
    except RecursionError as error:
        raise too_deep(select) from error
    columns = []
    for column in root.schema:
        reference = ColumnRef(0, column.name)
        columns.append(
            OutputColumn(column.name, Expression(quote(reference.flat), (reference,), column.type))
        )
    return Pipeline(
        name=name,
        text=tokens.original,
        sources=(*(source for leaf in selects.leaves for source in leaf.sources), *selects.tables),
        predicates=(),
        select=tuple(columns),
        emit=clauses.emit or Emit.CHANGES,
        every=clauses.every,
        options=clauses.options,
        place=tokens.place(tokens.start),
        root=root,
    )
