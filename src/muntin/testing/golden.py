"""Golden scripts (``.cqt``): the input of an engine and its expected output, command by command.

::

    # about: expiry of a left row takes the pair away
    stream L (k int, v int)             -- then optionally: [time COLUMN] [slack SECONDS]
    stream R (k int, w int)             -- a column ts TIMESTAMP is appended when there is none
    stream S (k int) time arrival       -- its rows arrive at their times and are stamped
    table T (k int)                     -- followed by its rows
    7
    set expiry = 'lazy'
    query q: SELECT L.k, v, w FROM L, R -- continues in indented lines
      WHERE L.k = R.k WINDOW 10 SECONDS EMIT CHANGES
    feed L                              -- rows: time, then the values of the other columns
    1  7 100
    advance 5
    out q                               -- output since the last time: sign, time, values
    (empty)
    answer q                            -- the answer now, in any order
    (empty)
    state L=1 R=0                       -- rows held per stream
    late L                              -- all rows that came too late
    (empty)
    explain q                           -- followed by indented pieces of text that must appear
    drop q
    restart                             -- a new engine, resumed from a checkpoint
    advance 1
    error: the message contains this    -- one or more lines after a command that must fail
    sql CREATE STREAM X (k int)         -- any statement of the dialect

Times are seconds. :mod:`muntin.testing.cells` says how values are written. Lines that start with
``#`` are comments (there are no comments behind commands, other than here).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from muntin.errors import MuntinError
from muntin.model.catalog import Stream
from muntin.model.clock import format_interval
from muntin.plan.expression import quote
from muntin.sql.streams import make_stream
from muntin.testing.cells import (
    Cell,
    read_schema,
    read_seconds,
    split_cells,
    split_columns,
    write_columns,
)

EMPTY = "(empty)"
_ARRIVAL = "arrival"
"""The time of a stream whose rows are stamped when they arrive."""
_WORDS = "stream|table|set|query|sql|feed|advance|out|answer|state|late|explain|drop|restart|error"
_COMMAND = re.compile(rf"({_WORDS})(?=[\s:]|$):?\s*(.*)", re.DOTALL)
_NAME = r'("(?:[^"]|"")+"|[^\s("]+)'
_RELATION = re.compile(rf"{_NAME}\s*\((.*)\)\s*(?:time\s+{_NAME}\s*)?(?:slack\s+(\S+)\s*)?")
_QUERY = re.compile(rf"{_NAME}\s*:\s*(.*)", re.DOTALL)


class GoldenScriptError(MuntinError):
    """A golden script that cannot be read."""

    def __init__(self, line: int, fact: str) -> None:
        self.line = line
        super().__init__(f"line {line}: {fact}")


@dataclass(frozen=True)
class StreamDeclaration:
    """A stream as a script declares it; ``slack`` in microseconds.

    With ``time arrival``, the times of its rows are those at which they arrive.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    time: str = "ts"
    slack: int = 0

    @property
    def sql(self) -> str:
        """Return the statement that declares it."""
        time = self.time.replace("'", "''")
        slack = f", slack = '{format_interval(self.slack)}'" if self.slack else ""
        return (
            f"CREATE STREAM {quote(self.name)} ({write_columns(self.columns)}) WITH (time = "
            f"'{time}'{slack})"
        )

    @property
    def schema(self) -> pa.Schema:
        """Its columns as Arrow types."""
        return self.stream.schema

    @property
    def stream(self) -> Stream:
        """Return the stream as queries see it."""
        return make_stream(self.name, read_schema(self.columns), self.time, self.slack)


@dataclass(frozen=True)
class ScriptRow:
    """One line of values."""

    line: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class DeclareStream:
    """``stream``."""

    declaration: StreamDeclaration


@dataclass(frozen=True)
class DeclareTable:
    """``table``."""

    name: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[ScriptRow, ...]


@dataclass(frozen=True)
class Register:
    """``query``."""

    name: str
    sql: str


@dataclass(frozen=True)
class Execute:
    """``sql``."""

    sql: str


@dataclass(frozen=True)
class ScriptSetting:
    """``set``."""

    name: str
    value: str


@dataclass(frozen=True)
class ScriptFeed:
    """``feed``."""

    stream: str
    rows: tuple[ScriptRow, ...]


@dataclass(frozen=True)
class Advance:
    """``advance``; ``at`` in microseconds."""

    at: int


@dataclass(frozen=True)
class Out:
    """``out``; each row starts with sign and time."""

    query: str
    rows: tuple[ScriptRow, ...]


@dataclass(frozen=True)
class ScriptAnswer:
    """``answer``."""

    query: str
    rows: tuple[ScriptRow, ...]


@dataclass(frozen=True)
class ScriptState:
    """``state``."""

    rows: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Late:
    """``late``."""

    stream: str
    rows: tuple[ScriptRow, ...]


@dataclass(frozen=True)
class Explain:
    """``explain``."""

    query: str
    pieces: tuple[str, ...]


@dataclass(frozen=True)
class ScriptDrop:
    """``drop``."""

    query: str


@dataclass(frozen=True)
class Restart:
    """``restart``."""


Action: TypeAlias = (
    DeclareStream
    | DeclareTable
    | Register
    | Execute
    | ScriptSetting
    | ScriptFeed
    | Advance
    | Out
    | ScriptAnswer
    | ScriptState
    | Late
    | Explain
    | ScriptDrop
    | Restart
)


@dataclass(frozen=True)
class ScriptStep:
    """One command: its action, the lines of it and its body, and the errors it must give."""

    action: Action
    line: int
    last_line: int
    errors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Script:
    """A golden script that was read."""

    path: str
    about: str
    steps: tuple[ScriptStep, ...]
    lines: tuple[str, ...]


def read_script(text: str, path: str = "script") -> Script:
    r"""Return the steps of a golden script; ``path`` is where failures say it stands.

    Raises
    ------
    ScriptError
        When a line cannot be understood.

    Examples
    --------
    >>> read_script("# about: nothing\nadvance 5").steps[0].action
    Advance(at=5000000)
    """
    lines = text.splitlines()
    steps: list[ScriptStep] = []
    for number, word, rest, body in _commands(lines):
        last_line = body[-1][0] if body else number
        try:
            if word == "error" and steps:
                steps[-1] = replace(steps[-1], errors=(*steps[-1].errors, rest.strip()))
            else:
                steps.append(ScriptStep(_action(word, rest, body), number, last_line))
        except ValueError as error:
            raise GoldenScriptError(number, str(error)) from error
    about = next(
        (line.removeprefix("# about:").strip() for line in lines if line.startswith("# about:")), ""
    )
    return Script(path, about, tuple(steps), tuple(lines))


def _commands(lines: list[str]) -> Iterator[tuple[int, str, str, list[tuple[int, str]]]]:
    """Line number, word, rest of the line and body of every command."""
    current: tuple[int, str, str, list[tuple[int, str]]] | None = None
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _COMMAND.match(line)
        if match:
            if current:
                yield current
            current = (number, match.group(1), match.group(2), [])
        elif current is None:
            raise GoldenScriptError(
                number,
                f"{line.split()[0]!r} is no command; there are {', '.join(_WORDS.split('|'))}",
            )
        else:
            current[3].append((number, line))
    if current:
        yield current


def _action(word: str, rest: str, body: list[tuple[int, str]]) -> Action:
    whole = "\n".join([rest, *(line for _, line in body)])
    match word:
        case "stream":
            return DeclareStream(_stream(rest))
        case "table":
            name, columns, *_ = _relation(rest)
            return DeclareTable(name, columns, _rows(body))
        case "query":
            match = _QUERY.fullmatch(whole)
            if match is None:
                raise ValueError("write query NAME: SELECT ...")
            return Register(_unquoted(match.group(1)), match.group(2))
        case "sql":
            return Execute(whole)
        case "set":
            name, equals, value = rest.partition("=")
            if not equals:
                raise ValueError("write set NAME = VALUE")
            return ScriptSetting(name.strip(), value.strip())
        case "feed":
            return ScriptFeed(_unquoted(rest), _rows(body))
        case "advance":
            return Advance(read_seconds(rest.strip()))
        case "out":
            return Out(_unquoted(rest), _rows(body))
        case "answer":
            return ScriptAnswer(_unquoted(rest), _expected(body))
        case "late":
            return Late(_unquoted(rest), _expected(body))
        case "state":
            pairs = [pair.rpartition("=") for pair in rest.split()]
            return ScriptState(tuple((name, int(count)) for name, _, count in pairs))
        case "explain":
            return Explain(_unquoted(rest), tuple(line.strip() for _, line in body))
        case "drop":
            return ScriptDrop(_unquoted(rest))
        case "restart":
            return Restart()
        case _:
            assert word == "error", "every word of the grammar has its case"
            raise ValueError("error: stands before any command")


def _stream(rest: str) -> StreamDeclaration:
    name, columns, time, slack = _relation(rest)
    time = time or "ts"
    named = any(column.casefold() == time.casefold() for column, _ in columns)
    if not named and time != _ARRIVAL:
        columns = (*columns, (time, "TIMESTAMP"))
    return StreamDeclaration(name, columns, time, slack)


def _relation(rest: str) -> tuple[str, tuple[tuple[str, str], ...], str | None, int]:
    match = _RELATION.fullmatch(rest)
    if match is None:
        raise ValueError("write NAME (column type, ...)")
    name, columns, time, slack = match.groups()
    return (
        _unquoted(name),
        tuple(split_columns(columns)),
        _unquoted(time) if time else None,
        read_seconds(slack) if slack else 0,
    )


def _expected(body: list[tuple[int, str]]) -> tuple[ScriptRow, ...]:
    if not body:
        raise ValueError(f"nothing is written below it; write the rows, or {EMPTY}")
    return _rows(body)


def _rows(body: list[tuple[int, str]]) -> tuple[ScriptRow, ...]:
    rows = []
    for number, line in body:
        try:
            cells = split_cells(line)
        except ValueError as error:
            raise GoldenScriptError(number, str(error)) from error
        if cells and cells != [EMPTY]:
            rows.append(ScriptRow(number, tuple(cells)))
    return tuple(rows)


def _unquoted(name: str) -> str:
    name = name.strip()
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
