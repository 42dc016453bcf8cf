"""Check the formats, options and paths of declarations before anything runs.

Each function yields every mistake it finds; engines raise the first, ``muntin check`` reports them
all. Nothing here needs Spark. Options of formats that are defined by other packages are not
checked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from muntin.engine.kafka_checks import (
    kafka_sink_mistakes,
    kafka_stream_mistakes,
    misplaced_options,
)
from muntin.engine.result_file_checks import column_mistakes, folder_mistakes
from muntin.errors import InputError, MuntinError, SettingError
from muntin.model.allowed_paths import AllowedPaths, folder_identity, local_path
from muntin.model.catalog import Options, Stream, Table
from muntin.model.formats import (
    CONFINED,
    EXTERNAL,
    FILE_FORMATS,
    OWN_FILES,
    PATHS,
    REQUIRED,
    SINKS,
    SPARK_OPTIONS,
    STREAMS,
    TABLES,
    UNREAD_STREAM,
    did_you_mean,
    is_foreign,
)
from muntin.model.kafka import KAFKA, PREFIX, SinkOptionNames
from muntin.model.kafka import SINK_OPTIONS as KAFKA_SINK_OPTIONS
from muntin.plan.query import Query

_READERS = ("arrow", "spark")
_FLAGS = ("true", "false")
_PATTERN = frozenset("*?[{")


def _lower(options: Options) -> dict[str, str]:
    return {name.lower(): value for name, value in options}


# -- streams ---------------------------------------------------------------------------------------


def stream_mistakes(
    stream: Stream, allowed: AllowedPaths | None, *, connected: bool
) -> Iterator[InputError]:
    """Yield the mistakes of a stream; a ``connected`` one will be read from its source.

    A stream whose rows are pushed may name a source that does not exist: the same script then
    runs on Spark as well.
    """
    what, options = f"stream {stream.name}", _lower(stream.options)
    kind = options.get("format")
    if kind is None:
        yield from _unread_mistakes(stream)
        return
    if kind.lower() == KAFKA:
        yield from _confinement_mistakes(what, kind, stream.options, allowed)
        yield from kafka_stream_mistakes(stream)
        return
    foreign = is_foreign(kind)
    if not foreign and kind.lower() not in STREAMS:
        yield _unknown_format(
            what, kind, [*STREAMS, KAFKA, *EXTERNAL], "pass a streaming DataFrame to engine.stream"
        )
        return
    if not foreign:
        yield from _option_mistakes(what, kind, stream.options, STREAMS[kind.lower()])
        yield from _missing_options(what, kind, options)
        if options.get("reader", "arrow") not in _READERS:
            yield InputError(
                f"the reader of {what} cannot be {options['reader']!r}",
                hint="It is arrow or spark",
                option="reader",
            )
    yield from _confinement_mistakes(what, kind, stream.options, allowed)
    if connected and kind.lower() in FILE_FORMATS and "path" in options:
        yield from _absent(what, options["path"])


def _unread_mistakes(stream: Stream) -> Iterator[InputError]:
    """Yield a mistake for each option that only a stream with a format has."""
    for name, _ in stream.options:
        if name.lower() not in UNREAD_STREAM:
            hint = did_you_mean(name, [*UNREAD_STREAM, "path"])
            if hint and name.lower() != "path":
                yield InputError(
                    f"stream {stream.name} has no option {name!r}", hint=hint, option=name
                )
                continue
            yield InputError(
                f"stream {stream.name} has the option {name!r} but no format",
                hint="Add format = '...', or leave the option out",
                option=name,
            )


def without_source(stream: Stream) -> InputError:
    """Return the error for a stream that Spark cannot read because it names no source."""
    return InputError(
        f"stream {stream.name} has no source",
        hint="Declare it WITH (format = 'parquet', path = '...'), "
        "or pass a streaming DataFrame to engine.stream",
    )


def _absent(what: str, path: str) -> Iterator[InputError]:
    local = local_path(path)
    if local is None or _PATTERN & set(local):
        return
    # os.path.exists, unlike Path.exists, is False for a name that is too long.
    if not os.path.exists(local):  # noqa: PTH110
        yield InputError(
            f"{what} reads {path!r}, where there is nothing",
            hint="Check the path; make the folder first",
            option="path",
        )


# -- tables ----------------------------------------------------------------------------------------


def table_mistakes(table: Table, allowed: AllowedPaths | None) -> Iterator[InputError]:
    """Yield the mistakes of a stored table, without looking at its files."""
    what, options = f"table {table.name}", _lower(table.options)
    if "path" not in options:
        for name, _ in table.options:
            known = _known_options(TABLES)
            hint = did_you_mean(name, known) if name.lower() not in known else ""
            fact = (
                f"{what} has no option {name!r}"
                if hint
                else f"{what} has the option {name!r} but no path"
            )
            yield InputError(
                fact, hint=hint or "Add path = '...', or leave the option out", option=name
            )
        return
    kind = options.get("format", Path(options["path"]).suffix.lstrip(".")).lower()
    if kind not in TABLES:
        hint = did_you_mean(kind, TABLES) or f"Formats are {', '.join(TABLES)}"
        option = "format" if "format" in options else "path"
        yield InputError(
            f"{what} has format {kind!r}, which cannot be read", hint=hint, option=option
        )
        return
    yield from _option_mistakes(what, kind, table.options, TABLES[kind])
    if options.get("header", "true").lower() not in _FLAGS:
        yield InputError(
            f"the header of {what} cannot be {options['header']!r}",
            hint="It is true or false",
            option="header",
        )
    yield from _confinement_mistakes(what, kind, table.options, allowed, patterns=False)


# -- sinks -----------------------------------------------------------------------------------------


SINK_OPTIONS = SinkOptionNames(("sink", "format", "path", *KAFKA_SINK_OPTIONS))
"""The options in the WITH of a query that belong to its sink; all others are settings."""


@dataclass(frozen=True)
class SinkOptions:
    """The options of a query that describe its sink; ``kind`` is None if there is none."""

    kind: str | None
    path: str | None

    @classmethod
    def of(cls, options: Options) -> SinkOptions:
        """Return the sink options among the options of a query."""
        given = _lower(options)
        kind = given.get("sink", given.get("format"))
        return cls(None if kind is None else kind.lower(), given.get("path"))

    @property
    def folder(self) -> str | None:
        """Return the folder of result files, normalized; None for other sinks."""
        if self.path is None or self.kind not in FILE_FORMATS:
            return None
        return folder_identity(self.path)


def sink_mistakes(
    query: Query, allowed: AllowedPaths | None, *, connected: bool
) -> Iterator[MuntinError]:
    """Yield the mistakes in the sink options of a query; a ``connected`` sink will be written."""
    given, sink = _lower(query.options), SinkOptions.of(query.options)
    what = f"the sink of query {query.name}"
    if "sink" in given and "format" in given:
        yield SettingError(
            f"{what} has both sink = {given['sink']!r} and format = {given['format']!r}",
            hint="Leave out one of them",
            option="format",
        )
        return
    named = "sink" if "sink" in given else "format"
    if sink.kind == KAFKA:
        yield from _confinement_mistakes(what, KAFKA, (), allowed, option=named)
        yield from kafka_sink_mistakes(query, given)
        return
    yield from misplaced_options(query, given)
    if sink.kind is None:
        if sink.path is not None:
            yield SettingError(
                f"{what} has a path but no format", hint="Add format = 'parquet'", option="path"
            )
        return
    if sink.kind in {"memory", "console"}:
        if sink.path is not None:
            yield SettingError(
                f"{what} is {sink.kind}, where path has no effect",
                hint="Leave path out, or write to files with sink = 'parquet'",
                option="path",
            )
        return
    mistake = sink_format_mistake(query.name, sink.kind, named)
    if mistake is not None:
        yield mistake
        return
    if sink.path is None and sink.kind in SPARK_OPTIONS:
        yield SettingError(
            f"the {sink.kind} sink of query {query.name} has no path", hint="Add path", option=named
        )
    path = tuple((name, value) for name, value in query.options if name.lower() == "path")
    yield from _confinement_mistakes(what, sink.kind, path, allowed, patterns=False, option=named)
    if connected and sink.folder is not None and local_path(sink.folder) is not None:
        yield from folder_mistakes(query.name, sink.folder)
        if sink.kind in OWN_FILES:
            yield from column_mistakes(sink.kind, query.output_schema)


def sink_format_mistake(query: str, kind: str, option: str = "") -> SettingError | None:
    """Return the mistake in the name of a sink's format, if there is one."""
    if is_foreign(kind) or kind in SINKS:
        return None
    what = f"the sink of query {query}"
    if kind in STREAMS:
        return SettingError(
            f"{what} has the format {kind!r}, which can be read but not written",
            hint=f"Formats are {_listed(SINKS)}",
            option=option,
        )
    hint = did_you_mean(kind, [*SINKS, *EXTERNAL, "memory"])
    rest = (
        f"Sinks are memory, console and the formats {_listed(SPARK_OPTIONS)}; "
        "for another, pass a function as sink"
    )
    return SettingError(f"{what} has the unknown format {kind!r}", hint=hint or rest, option=option)


def sink_option_mistakes(
    query: str, kind: str, options: Mapping[str, str], *, local: bool
) -> Iterator[SettingError]:
    """Yield a mistake for each option, given in Python, that a sink does not have or ignores."""
    for name in options:
        if kind == KAFKA and name.lower().startswith(PREFIX):
            continue
        if local and kind in OWN_FILES and name.lower() not in {"path", "mode"}:
            yield SettingError(
                f"the option {name!r} has no effect in the {kind} sink of query {query}",
                hint="Local files of results have no options; "
                "leave it out, or pass a function as sink",
                option=name,
            )
        elif kind in SINKS and name.lower() not in SINKS[kind]:
            hint = (
                did_you_mean(name, SINKS[kind].values())
                or f"It has {', '.join(SINKS[kind].values())}"
            )
            yield SettingError(
                f"the {kind} sink of query {query} has no option {name!r}", hint=hint, option=name
            )


# -- common parts -------------------------------------------------------------------------------


def _listed(formats: Mapping[str, object]) -> str:
    return ", ".join(sorted(formats))


def _known_options(formats: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    return {lower: name for options in formats.values() for lower, name in options.items()}


def _unknown_format(what: str, kind: str, known: list[str], otherwise: str) -> InputError:
    hint = (
        did_you_mean(kind, known)
        or f"Formats are {', '.join(sorted(known))}; for another, {otherwise}"
    )
    return InputError(f"{what} has the unknown format {kind!r}", hint=hint, option="format")


def _option_mistakes(
    what: str, kind: str, options: Options, known: Mapping[str, str]
) -> Iterator[InputError]:
    for name, _ in options:
        if name.lower() not in known:
            hint = (
                did_you_mean(name, known.values())
                or f"It has {', '.join(sorted(known.values(), key=str.lower))}"
            )
            yield InputError(
                f"{what} of format {kind!r} has no option {name!r}", hint=hint, option=name
            )


def _missing_options(what: str, kind: str, options: Mapping[str, str]) -> Iterator[InputError]:
    for name in REQUIRED.get(kind.lower(), ()):
        if name.lower() not in options:
            yield InputError(
                f"{what} of format {kind!r} has no {name}",
                hint=f"Add {name} = '...' to its WITH",
                option="format",
            )


def _confinement_mistakes(  # noqa: PLR0913 (two of them by name)
    what: str,
    kind: str,
    options: Options,
    allowed: AllowedPaths | None,
    *,
    patterns: bool = True,
    option: str = "format",
) -> Iterator[InputError]:
    """Yield a mistake for each option that reaches outside the allowed folders."""
    if allowed is None:
        return
    if kind.lower() not in CONFINED:
        yield InputError(
            f"{what} has the format {kind!r}, which can reach more than the allowed folders",
            hint=f"Use {_listed(dict.fromkeys(CONFINED))}, or do without allowed_paths",
            option=option,
        )
        return
    for name, value in options:
        if name.lower() in PATHS:
            try:
                allowed.resolved(value, patterns=patterns)
            except InputError as error:
                yield InputError(f"{what}: {error.fact}", hint=error.hint, option=name)


def confined(options: Options, allowed: AllowedPaths | None, *, patterns: bool) -> Options:
    """Return the options with every path resolved; raise if one is not allowed."""
    if allowed is None:
        return options
    return tuple(
        (name, allowed.resolved(value, patterns=patterns) if name.lower() in PATHS else value)
        for name, value in options
    )
