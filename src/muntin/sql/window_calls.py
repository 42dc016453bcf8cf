"""TUMBLE, HOP and SESSION in FROM: a stream with the bounds of the window of each row.

``TUMBLE(stream, size)`` is a scan whose rows end with their window. ``HOP(stream, slide, size)`` is
``size / slide`` of them: every row is in one window of each. ``SESSION(stream, gap, key, ...)`` is
an operator over the rows of the stream, since the end of a session depends on later rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import Token

from muntin.errors import SqlError
from muntin.model.catalog import Catalog, Stream, find_column
from muntin.model.window import TimeWindow
from muntin.plan.node import Node
from muntin.plan.nodes import Scan, SetOperation, SetOperator
from muntin.plan.sessions import WINDOW_END, WINDOW_START
from muntin.sql.cursor import Cursor
from muntin.sql.lexer import Tokens, closing, is_name, is_symbol, split_commas, word
from muntin.sql.windows import read_interval

MOST_WINDOWS = 64
"""How many windows of HOP a row may be in."""
FORMS = {
    "TUMBLE": "Write TUMBLE(stream, 10 SECONDS) AS name",
    "HOP": "Write HOP(stream, 2 SECONDS, 10 SECONDS) AS name: the slide, then the size",
    "SESSION": "Write SESSION(stream, 10 SECONDS, key) AS name: the gap, then columns",
}


def cut_call(tokens: Tokens) -> tuple[Tokens | None, Tokens]:
    """Return the call of a window function in an entry of FROM, and the name of the entry."""
    if len(tokens) < 2 or word(tokens[0]) not in FORMS or not is_symbol(tokens[1], "("):
        return None, tokens
    form = FORMS[word(tokens[0])]
    end = closing(tokens, 1)
    if end is None:
        raise tokens.error(tokens[1], "the parenthesis is not closed", form)
    alias = tokens.part(end + 1)
    if len(alias) and word(alias[0]) == "AS":
        alias = alias.part(1)
    if len(alias) > 1 or (len(alias) and not is_name(alias[0])):
        raise tokens.error(alias[-1], "a name and nothing else may stand here", form)
    if not len(alias):
        alias = tokens.part(2, 3)
    if end < 3:
        raise tokens.error(tokens[0], f"{word(tokens[0])} needs a stream", form)
    return tokens.part(0, end + 1), alias


def calls(function: str, tokens: Tokens) -> bool:
    """Return whether a select reads HOP or SESSION, which are not single window joins."""
    pairs = zip(tokens, tokens.part(1), strict=False)
    return any(word(name) == function and is_symbol(after, "(") for name, after in pairs)


def bind_call(call: Tokens, alias: str, catalog: Catalog) -> list[Scan]:
    """Return the scans that a call stands for together; their rows have the bounds of windows."""
    function = word(call[0])
    arguments = split_commas(call.part(2, len(call) - 1))
    if len(arguments) != (2 if function == "TUMBLE" else 3):
        raise call.error(call[0], f"{function} has other arguments", FORMS[function])
    stream = called_stream(arguments[0], function, catalog)
    *slides, size = (called_interval(argument, function) for argument in arguments[1:])
    for slide in slides:
        _check_hop(slide, size, call)
    schema = with_bounds(stream, call)
    return [
        Scan(alias, stream.name, stored=False, window=TimeWindow(size, phase=phase), schema=schema)
        for phase in range(0, size, slides[0] if slides else size)
    ]


def union_of(nodes: Sequence[Node]) -> Node:
    """Return the rows of all nodes, in few levels."""
    while len(nodes) > 1:
        pairs = zip(nodes[::2], nodes[1::2], strict=False)
        odd = nodes[-1:] if len(nodes) % 2 else ()
        nodes = [*(SetOperation(SetOperator.UNION_ALL, *pair) for pair in pairs), *odd]
    return nodes[0]


def called_stream(tokens: Tokens, function: str, catalog: Catalog) -> Stream:
    """Return the stream that a call is over."""
    cursor = Cursor(tokens)
    name = cursor.name("the name of a stream")
    cursor.end(FORMS[function])
    stream = catalog.find(name.text)
    if isinstance(stream, Stream):
        return stream
    if stream is not None or catalog.find_view(name.text) is not None:
        fact = f"{name.text} is no stream, and {function} is over streams alone"
        raise tokens.error(name, fact, f"Call {function} on the streams inside it")
    known = ", ".join(each.name for each in catalog.streams())
    raise tokens.error(name, f"there is no stream {name.text!r}", f"There are {known}")


def called_interval(tokens: Tokens, function: str) -> int:
    """Return the microseconds of an argument."""
    cursor = Cursor(tokens)
    micros, _ = read_interval(cursor, f"{function}")
    cursor.end(FORMS[function])
    return micros


def _check_hop(slide: int, size: int, call: Tokens) -> None:
    if size % slide:
        hint = "Choose a size that is a multiple of the slide"
        raise call.error(call[0], "the windows of HOP do not cover all times equally", hint)
    if size // slide > MOST_WINDOWS:
        fact = f"a row would be in {size // slide} windows of HOP, more than {MOST_WINDOWS}"
        raise call.error(call[0], fact, "Choose a longer slide")


def with_bounds(stream: Stream, call: Tokens) -> pa.Schema:
    """Return the columns of a stream and the bounds of windows."""
    schema = stream.schema
    for name in (WINDOW_START, WINDOW_END):
        if (taken := find_column(schema, name)) is not None:
            fact = f"stream {stream.name} has a column {taken}, the name of a bound of windows"
            raise call.error(call[0], fact, "Rename the column of the stream")
        schema = schema.append(pa.field(name, pa.timestamp("us")))
    return schema


def until_column(stream: Stream, token: Token, tokens: Tokens) -> str:
    """Return the column of a stream that UNTIL names."""
    column = stream.column(token.text)
    if column is None:
        hint = f"It has {', '.join(stream.schema.names)}"
        raise tokens.error(token, f"stream {stream.name} has no column {token.text!r}", hint)
    if not pa.types.is_timestamp(stream.schema.field(column).type):
        raise _not_an_instant(stream, column, token, tokens)
    return column


def _not_an_instant(stream: Stream, column: str, token: Token, tokens: Tokens) -> SqlError:
    kind = stream.schema.field(column).type
    fact = f"the column {column} of stream {stream.name} has type {kind}, and UNTIL needs instants"
    return tokens.error(token, fact, "Name a column of type TIMESTAMP")
