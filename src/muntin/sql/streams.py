"""What makes a stream or a table a sound one, whether it is declared in SQL or in Python."""

from __future__ import annotations

import pyarrow as pa

from muntin.errors import InputError, Place, SqlError
from muntin.model.arguments import check_name
from muntin.model.catalog import ARRIVAL, Options, Stream, Table, find_column
from muntin.model.clock import AFTER_ALL, parse_interval
from muntin.sql.types import UNSUPPORTED_HINT, check_columns, unsupported_type


def make_stream(  # noqa: PLR0913 (the parts of a declaration, in SQL and in Python)
    name: str,
    schema: pa.Schema,
    time: str | None = None,
    slack: int = 0,
    options: Options = (),
    place: Place | None = None,
) -> Stream:
    """Return a stream that was checked.

    ``time`` is not needed if only one column is a timestamp; ``"arrival"``, unless a column has
    that name, adds a column with the time of arrival. ``slack`` is in microseconds. Errors have a
    place if the stream is declared at one, in a script.

    >>> schema = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("ms"))])
    >>> make_stream("A", schema).schema.field("ts").type
    TimestampType(timestamp[us])
    """
    try:
        check_name(name, "the name of a stream")
        check_columns(schema.names)
        _check_types(schema)
        arrival = _is_arrival(schema, time)
        if arrival:
            _check_arrival(name, schema, slack)
            schema = schema.append(pa.field(ARRIVAL, pa.timestamp("us")))
        column = _time_column(name, schema, ARRIVAL if arrival else time)
        _check_slack(name, slack)
    except InputError as error:
        if place is None:
            raise
        raise SqlError(error.fact, place=place, hint=error.hint) from error
    schema = plain_schema(schema)
    index = schema.get_field_index(column)
    field = schema.field(index)
    schema = schema.set(index, field.with_type(pa.timestamp("us", tz=field.type.tz)))
    return Stream(name, schema, column, slack, options, arrival=arrival)


def make_table(
    name: str, schema: pa.Schema, options: Options = (), place: Place | None = None
) -> Table:
    """Return a stored table that was checked; errors are those of :func:`make_stream`."""
    try:
        check_name(name, "the name of a table")
        check_columns(schema.names)
        _check_types(schema)
    except InputError as error:
        if place is None:
            raise
        raise SqlError(error.fact, place=place, hint=error.hint) from error
    return Table(name, plain_schema(schema), options)


def read_slack(stream: str, slack: object) -> int:
    """Return the slack in microseconds, from an interval or a number of them."""
    if isinstance(slack, str):
        return parse_interval(slack)
    if isinstance(slack, bool) or not isinstance(slack, int) or slack >= AFTER_ALL:
        raise InputError(
            f"the slack of stream {stream} cannot be {slack!r}",
            hint="Give an interval such as '2 seconds', or microseconds",
        )
    return slack


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with encodings of a value taken off.

    Dictionaries and views become what they stand for.
    """
    return pa.schema([field.with_type(_plain_type(field.type)) for field in schema])


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    return {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(kind, kind)


def _check_types(schema: pa.Schema) -> None:
    for field in schema:
        if (name := unsupported_type(field.type)) is not None:
            fact = f"the column {field.name} has type {name}, which is not supported"
            raise InputError(fact, hint=UNSUPPORTED_HINT)


def _check_slack(name: str, slack: int) -> None:
    if slack < 0:
        raise InputError(
            f"the slack of stream {name} is negative",
            hint="Give the longest delay to wait for, such as '2 seconds'",
        )


def _is_arrival(schema: pa.Schema, time: object) -> bool:
    """Return whether rows are stamped when they arrive; a column of that name has precedence."""
    return (
        isinstance(time, str)
        and time.casefold() == "arrival"
        and find_column(schema, "arrival") is None
    )


def _check_arrival(name: str, schema: pa.Schema, slack: int) -> None:
    if (taken := find_column(schema, ARRIVAL)) is not None:
        raise InputError(
            f"stream {name} has a column {taken}, and rows with time = 'arrival' get one",
            hint=f"Rename it, or take the time from it with time = '{taken}'",
        )
    if slack:
        raise InputError(
            f"stream {name} has a slack, but rows with time = 'arrival' are never late",
            hint="Leave the slack out",
        )


def _time_column(name: str, schema: pa.Schema, time: str | None) -> str:
    timestamps = [field.name for field in schema if pa.types.is_timestamp(field.type)]
    columns = ", ".join(schema.names)
    if time is None:
        if len(timestamps) == 1:
            return str(timestamps[0])
        if not timestamps:
            raise InputError(
                f"stream {name} has no time column",
                hint="Every stream needs a column of type TIMESTAMP",
            )
        hint = f"Choose one with time = '{timestamps[0]}'"
        raise InputError(
            f"stream {name} has several columns that could be its time: {', '.join(timestamps)}",
            hint=hint,
        )
    check_name(time, f"the time column of stream {name}")
    column = find_column(schema, time)
    if column is None:
        raise InputError(
            f"stream {name} has no column {time!r} to take the time from", hint=f"It has {columns}"
        )
    if column not in timestamps:
        found = schema.field(column).type
        raise InputError(
            f"the time column {column} of stream {name} has type {found}",
            hint="Declare it as TIMESTAMP",
        )
    return column
