"""How property tests run a case in process."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import assume, note

import muntin
from muntin.errors import SqlError
from muntin.plan.query import Query
from muntin.sql.script import read_query
from muntin.testing.case import Case


def declare(case: Case, engine: muntin.Engine) -> muntin.Engine:
    """Declare the streams and tables of a case; return the engine."""
    for statement in case.declarations:
        engine.execute(statement)
    for name, rows in case.stored().items():
        engine.table(name, rows)
    return engine


def start(case: Case, **settings: str) -> tuple[muntin.Engine, muntin.StandingQuery]:
    """Return an engine with the query of a case."""
    engine = declare(case, muntin.Engine(**settings))
    return engine, engine.query(case.query, name="q")


def poll_every_batch(case: Case, engine: muntin.Engine) -> tuple[pa.Table, muntin.StandingQuery]:
    """Run a case and return all results, polled after every batch, and the query."""
    q = declare(case, engine).query(case.query, name="q")
    collected = []
    for stream, rows in case.batches():
        engine.push(stream, rows)
        collected.append(q.poll())
    engine.advance(case.end)
    return pa.concat_tables([*collected, q.poll()]), q


def bind_pipeline(case: Case) -> Query:
    """Return the query of a case, which has operators above joins, or reject the case.

    Queries are refused for keys that a select list hides, and for incompatible types.
    """
    try:
        query = read_query(case.query, "q", case.catalog())
    except SqlError as error:
        note(f"{case.query}\n{error}")
        assume(False)
        raise
    assume(not query.is_join)
    return query


def describe(case: Case) -> str:
    """Return a case as text, for notes on failures."""
    parts = [*case.declarations, case.query, *case.tables, *case.events, case.cuts]
    return "\n".join(map(str, parts))
