"""The way in: whole scripts, and single queries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from muntin.errors import MuntinError, Place, SqlError
from muntin.model.catalog import Catalog
from muntin.plan.query import Query
from muntin.plan.statement import Statement
from muntin.sql.lexer import Tokens, is_name, split_statements, tokenize, word
from muntin.sql.pipelines import bind_standing
from muntin.sql.statements import read_statement


def read_script(text: str, catalog: Catalog) -> Iterator[Statement]:
    """Yield the statements of a script, each bound when it is asked for.

    The caller adds what a statement declares to the catalog before asking for the next one, so
    later statements can use it. Nothing is changed here.

    >>> [statement.value for statement in read_script("SET a = 1; SET b = on;", Catalog())]
    ['1', 'on']
    """
    for tokens in split_statements(tokenize(text)):
        yield read_statement(tokens, catalog)


_MOST_DAMAGED = 100
"""After this number of places that cannot be tokenized, the text is not a script."""


@dataclass
class Mistakes:
    """The errors of a script, and the names whose declarations failed.

    What a later statement says about such a name is not a separate mistake, so it is not reported.
    """

    errors: list[SqlError] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)

    def add(self, error: MuntinError, place: Place) -> None:
        """Note an error; ``place`` is where it stands unless it knows better."""
        located = (
            error
            if isinstance(error, SqlError)
            else SqlError(error.fact, place=place, hint=error.hint)
        )
        self.errors.append(located)

    def in_order(self) -> list[SqlError]:
        """Return the errors by line and column, each once."""
        unique = {str(error): error for error in self.errors}
        return sorted(unique.values(), key=lambda error: (error.place.line, error.place.column))


def read_all(text: str, catalog: Catalog, mistakes: Mistakes) -> Iterator[Statement]:
    """Return the sound statements of a script, as :func:`read_script` does.

    Note what is wrong with the others.

    After a statement that cannot be read, reading continues after the next semicolon.
    """
    tokens, damaged = _tokenize_all(text, mistakes)
    for part in split_statements(tokens):
        if any(part.start <= offset <= part.stop for offset in damaged):
            mistakes.broken |= _declared_names(part)
            continue
        try:
            statement = read_statement(part, catalog)
        except MuntinError as error:
            if not any(
                token.text.casefold() in mistakes.broken for token in part if is_name(token)
            ):
                mistakes.add(error, part.place(part.start))
            mistakes.broken |= _declared_names(part)
            continue
        yield statement


def _tokenize_all(text: str, mistakes: Mistakes) -> tuple[Tokens, list[int]]:
    """Return the tokens of a script and the offsets at which it could not be cut into words.

    The rest of a damaged statement is blanked, so that all else keeps its place.
    """
    damaged: list[int] = []
    while True:
        try:
            return tokenize(text), damaged
        except SqlError as error:
            mistakes.errors.append(error)
            starts = [0, *(newline.end() for newline in re.finditer("\n", text))]
            offset = starts[error.place.line - 1] + error.place.column - 1
            end = text.find(";", offset + 1)
            end = len(text) if end < 0 else end
            blank = re.sub("[^\n]", " ", text[offset : max(end, offset + 1)])
            if text[offset : offset + len(blank)] == blank or len(damaged) >= _MOST_DAMAGED:
                return Tokens(text, (), len(text)), damaged
            damaged.append(offset)
            text = text[:offset] + blank + text[offset + len(blank) :]


def _declared_names(tokens: Tokens) -> set[str]:
    """Return the names that a broken statement may have been meant to declare.

    The words CREATE and STREAM may be misspelled, and a semicolon may be missing before another
    CREATE.
    """
    begins = [0, *(index for index, token in enumerate(tokens) if word(token) == "CREATE")]
    offsets = [4 if word(tokens[at + 1]) == "OR" else 2 for at in begins if at + 1 < len(tokens)]
    names = [at + offset for at, offset in zip(begins, offsets, strict=False)]
    thirds = [tokens[index] for index in names if index < len(tokens)]
    return {token.text.casefold() for token in thirds if is_name(token)}


def read_query(text: str, name: str, catalog: Catalog) -> Query:
    """Return one query, given as ``SELECT ...`` with the clauses of the dialect.

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
        raise everything.error(
            everything.start, "the query is empty", "Write SELECT ... FROM ... WINDOW ..."
        )
    if len(statements) > 1:
        raise everything.error(
            statements[1][0],
            "there is more than one statement",
            "Pass one SELECT; scripts go to execute()",
        )
    if word(statements[0][0]) in {"CREATE", "DROP", "SET"}:
        first = statements[0][0]
        raise everything.error(
            first,
            f"{word(first)} is not part of a query",
            "Pass the SELECT alone; statements go to execute()",
        )
    return bind_standing(statements[0], name, catalog)
