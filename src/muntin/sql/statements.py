"""One statement: CREATE STREAM, TABLE, VIEW or QUERY, DROP or SET."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from muntin.errors import Place
from muntin.model.catalog import Catalog
from muntin.model.clock import parse_interval
from muntin.plan.statement import (
    CreateQuery,
    CreateStream,
    CreateTable,
    CreateView,
    DropStatement,
    Set,
    Statement,
)
from muntin.sql.clauses import cut_clauses
from muntin.sql.cursor import (
    Cursor,
    Option,
    option_name,
    plain_options,
    read_options,
    read_value,
)
from muntin.sql.lexer import Tokens, closing, split_commas, word
from muntin.sql.pipelines import bind_standing, bind_view
from muntin.sql.streams import make_stream, make_table
from muntin.sql.types import add_column, arrow_type

_HINT = "Statements are CREATE STREAM, TABLE, VIEW and QUERY, DROP and SET"
_KINDS = ("STREAM", "TABLE", "VIEW", "QUERY")
_FUNCTION = "Declare it in Python: engine.function(name, callable, {'x': 'DOUBLE'}, 'DOUBLE')"
_COLUMNS = "Columns are written (name TYPE, ...)"


def read_statement(tokens: Tokens, catalog: Catalog) -> Statement:
    """Return the statement that the tokens between two semicolons stand for."""
    cursor = Cursor(tokens)
    if cursor.match("CREATE"):
        return _read_create(cursor, catalog)
    if cursor.match("DROP"):
        return _read_drop(cursor)
    if cursor.match("SET"):
        return _read_set(cursor)
    if word(tokens[0]) in {"SELECT", "WITH", "FROM"}:
        raise tokens.error(
            tokens[0],
            "a script has no place for a bare SELECT",
            "Give it a name: CREATE QUERY name AS SELECT ...",
        )
    raise tokens.error(tokens[0], f"{tokens.source(tokens[0])!r} does not begin a statement", _HINT)


def _read_create(cursor: Cursor, catalog: Catalog) -> Statement:
    replaces = cursor.match("OR", "REPLACE")
    kind = next((kind for kind in _KINDS if cursor.match(kind)), None)
    if replaces and kind != "QUERY":
        hint = f"Drop the {kind.lower()} first" if kind else "Write CREATE OR REPLACE QUERY name AS"
        raise cursor.tokens.error(cursor.tokens.start, "only queries can be replaced", hint)
    if kind is None and cursor.match("FUNCTION"):
        raise cursor.tokens.error(
            cursor.tokens.start, "functions are not written in SQL", _FUNCTION
        )
    if kind is None:
        raise cursor.unexpected("STREAM, TABLE, VIEW or QUERY", _HINT)
    name = cursor.name(f"a name for the {kind.lower()}").text
    tokens = cursor.tokens
    place = tokens.place(tokens.start)
    if kind in {"QUERY", "VIEW"}:
        cursor.expect("AS", f"Write CREATE {kind} name AS SELECT ...")
        body = Tokens(tokens.text, tokens.items[cursor.index :], tokens.stop, name)
        if kind == "VIEW":
            return CreateView(bind_view(body, name, catalog), place)
        query = bind_standing(body, name, catalog)
        return CreateQuery(query, place, _places(body, cut_clauses(body)[1].options), replaces)
    schema = _read_columns(cursor)
    given = read_options(cursor) if cursor.match("WITH") else []
    cursor.end("After the columns only WITH (...) can follow")
    if kind == "TABLE":
        return CreateTable(
            make_table(name, schema, plain_options(given), place), place, _places(tokens, given)
        )
    time: str | None = None
    slack, options = 0, []
    where = place
    for option, value, _, token in given:
        if option.casefold() == "time":
            time, where = value, tokens.place(token.start)
        elif option.casefold() == "slack":
            with tokens.blame(token):
                slack = parse_interval(value)
            if slack < 0:
                raise tokens.error(
                    token,
                    "the slack cannot be negative",
                    "Give the longest delay to wait for, such as '2 seconds'",
                )
        else:
            options.append((option, value))
    return CreateStream(
        make_stream(name, schema, time, slack, tuple(options), where), place, _places(tokens, given)
    )


def _places(tokens: Tokens, options: Sequence[Option]) -> dict[str, Place]:
    """Return the places of options, by names in lower case."""
    return {option.name.lower(): tokens.place(option.named.start) for option in options}


def _read_columns(cursor: Cursor) -> pa.Schema:
    tokens = cursor.tokens
    opening = cursor.index
    cursor.expect("(", _COLUMNS)
    end = closing(tokens, opening)
    if end is None:
        raise tokens.error(tokens[opening], "the list of columns is not closed", _COLUMNS)
    fields: list[pa.Field] = []
    seen: dict[str, str] = {}
    for part in split_commas(tokens.part(opening + 1, end)):
        column = Cursor(part)
        name = column.name("the name of a column")
        kind = part.part(1)
        if not len(kind):
            raise column.unexpected(f"the type of column {name.text}", _COLUMNS)
        with tokens.blame(kind[0]):
            field = pa.field(name.text, arrow_type(kind.original))
        with tokens.blame(name):
            add_column(field.name, seen)
        fields.append(field)
    cursor.index = end + 1
    return pa.schema(fields)


def _read_drop(cursor: Cursor) -> DropStatement:
    kind = next((kind for kind in (*_KINDS, "FUNCTION") if cursor.match(kind)), None)
    if kind is None:
        raise cursor.unexpected("STREAM, TABLE, VIEW, QUERY or FUNCTION", "Write DROP QUERY name")
    if_exists = cursor.match("IF", "EXISTS")
    name = cursor.name(f"the name of the {kind.lower()}").text
    cursor.end("Drop one thing at a time")
    return DropStatement(kind.lower(), name, if_exists, cursor.tokens.place(cursor.tokens.start))


def _read_set(cursor: Cursor) -> Set:
    hint = "Write SET name = value"
    name = option_name(cursor, "the name of a setting", hint)
    if not (cursor.match_symbol("=") or cursor.match("TO")):
        raise cursor.unexpected("=", hint)
    value, _ = read_value(cursor, bare=True)
    cursor.end(hint)
    return Set(name, value, cursor.tokens.place(cursor.tokens.start))
