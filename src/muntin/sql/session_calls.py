"""SESSION in FROM: an operator over the rows of a stream, which carry their times and places."""

from __future__ import annotations

import pyarrow as pa

from muntin.model.catalog import Catalog, Stream
from muntin.model.window import TimeWindow
from muntin.plan.expression import (
    POSITION,
    ColumnRef,
    OutputColumn,
    column_expression,
    select_all,
)
from muntin.plan.nodes import Scan
from muntin.plan.sessions import SessionWindows
from muntin.sql.cursor import Cursor
from muntin.sql.from_joins import MakeJoin
from muntin.sql.lexer import Tokens, split_commas
from muntin.sql.window_calls import FORMS, called_interval, called_stream, with_bounds

_FORM = FORMS["SESSION"]


def bind_session(call: Tokens, alias: str, catalog: Catalog, make_join: MakeJoin) -> SessionWindows:
    """Return the sessions that a call stands for."""
    arguments = split_commas(call.part(2, len(call) - 1))
    if len(arguments) < 2:
        raise call.error(call[0], "SESSION has other arguments", _FORM)
    stream = called_stream(arguments[0], "SESSION", catalog)
    gap = called_interval(arguments[1], "SESSION")
    keys = tuple(dict.fromkeys(_key(argument, stream) for argument in arguments[2:]))
    with_bounds(stream, call)
    window = TimeWindow(gap, session=True)
    scan = Scan(alias, stream.name, stored=False, window=window, schema=stream.schema)
    time = column_expression(ColumnRef(0, stream.time), stream.schema.field(stream.time).type)
    place = column_expression(ColumnRef(0, POSITION), pa.int64())
    hidden = OutputColumn("#time", time), OutputColumn("#place", place)
    rows = make_join((scan,), ((), ()), (*select_all(scan.schema), *hidden))
    return SessionWindows(rows, keys, gap)


def _key(tokens: Tokens, stream: Stream) -> int:
    cursor = Cursor(tokens)
    name = cursor.name("the name of a column")
    cursor.end(_FORM)
    column = stream.column(name.text)
    if column is None:
        fact = f"stream {stream.name} has no column {name.text!r}"
        raise tokens.error(name, fact, f"It has {', '.join(stream.schema.names)}")
    place: int = stream.schema.names.index(column)
    return place
