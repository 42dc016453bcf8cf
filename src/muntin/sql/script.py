"""The way in: whole scripts, and single queries."""

from __future__ import annotations

from collections.abc import Iterator

from muntin.model.catalog import Catalog
from muntin.plan.query import Query
from muntin.plan.statement import Statement
from muntin.sql.lexer import split_statements, tokenize, word
from muntin.sql.pipelines import bind_standing
from muntin.sql.statements import read_statement


def read_script(text: str, catalog: Catalog) -> Iterator[Statement]:
    """The statements of a script, each bound when it is asked for.

    The caller adds what a statement declares to the catalogue before asking for the next one, so later
    statements can use it. Nothing is changed here.

    Parameters
    ----------
    text : str
        Statements that end with semicolons; the last one may go without.
    catalog : Catalog
        The streams and tables there are.

    Raises
    ------
    SqlError
        When a statement cannot be understood or does not fit the catalogue.

    Examples
    --------
    >>> [statement.value for statement in read_script("SET a = 1; SET b = on;", Catalog())]
    ['1', 'on']
    """
    for tokens in split_statements(tokenize(text)):
        yield read_statement(tokens, catalog)


def read_query(text: str, name: str, catalog: Catalog) -> Query:
    """One query, given as ``SELECT ...`` with the clauses of the dialect.

    Parameters
    ----------
    text : str
        The query; a semicolon may end it.
    name : str
        The name it is to have.
    catalog : Catalog
        The streams and tables there are.

    Raises
    ------
    SqlError
        When the query cannot be understood or does not fit the catalogue.

    Examples
    --------
    >>> from muntin.sql.streams import make_stream
    >>> from muntin.sql.types import build_schema
    >>> catalog = Catalog()
    >>> _ = catalog.add(make_stream("A", build_schema({"k": "int", "ts": "timestamp"})))
    >>> query = read_query("SELECT k + 1 AS next FROM A WINDOW 1 MINUTE", "q", catalog)
    >>> query.select[0].expression.sql
    '"0.k" + 1'
    """
    everything = tokenize(text, name)
    statements = list(split_statements(everything))
    if not statements:
        raise everything.error(everything.start, "the query is empty", "Write SELECT ... FROM ... WINDOW ...")
    if len(statements) > 1:
        raise everything.error(statements[1][0], "there is more than one statement", "Pass one SELECT; scripts go to execute()")
    if word(statements[0][0]) in {"CREATE", "DROP", "SET"}:
        first = statements[0][0]
        raise everything.error(first, f"{word(first)} is not part of a query", "Pass the SELECT alone; statements go to execute()")
    return bind_standing(statements[0], name, catalog)
