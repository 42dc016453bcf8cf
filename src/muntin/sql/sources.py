"""FROM: each entry found in the catalog and given its window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import Token

from muntin.errors import SqlError
from muntin.model.catalog import Catalog, Stream, Table
from muntin.model.window import (
    PartitionedWindow,
    RowsWindow,
    TimeWindow,
    Unbounded,
    Window,
    has_own_ends,
)
from muntin.plan.nodes import Scan
from muntin.sql.clauses import Clauses
from muntin.sql.cursor import Cursor
from muntin.sql.lexer import Tokens, is_symbol, is_text
from muntin.sql.scope import describe, guess_name, list_names
from muntin.sql.shape import FromEntry
from muntin.sql.window_calls import until_column
from muntin.sql.windows import Extent, read_bracket

MOST_SOURCES = 16
"""How many entries FROM may have; join orders are searched exhaustively up to there."""


def bind_freshness(
    clauses: Clauses, sources: Sequence[Scan], tokens: Tokens
) -> tuple[tuple[int, Window], ...]:
    """Return the largest age of each stream's rows, by its place in FROM.

    An alias that several selects use is that of all of them.
    """
    bound: dict[int, Window] = {}
    for alias, extent in clauses.freshness:
        if alias is None:
            return tuple(
                (place, _freshness(source, extent, tokens))
                for place, source in enumerate(sources)
                if not source.stored
            )
        places = [
            place
            for place, source in enumerate(sources)
            if source.alias.casefold() == alias.text.casefold()
        ]
        if not places:
            raise tokens.error(
                alias,
                f"there is no {alias.text!r} in FROM",
                f"FROM has {', '.join(source.alias for source in sources)}",
            )
        stored = next((sources[place] for place in places if sources[place].stored), None)
        if stored is not None:
            raise tokens.error(
                alias,
                f"{describe(stored)} has no freshness",
                "Name streams only; stored tables do not grow old",
            )
        if places[0] in bound:
            raise tokens.error(
                alias, f"the freshness of {alias.text} is given twice", "Give it once"
            )
        bound |= {place: _freshness(sources[place], extent, tokens) for place in places}
    return tuple(sorted(bound.items()))


def bind_entry(entry: FromEntry, clauses: Clauses, catalog: Catalog) -> Scan:
    """Return the source that an entry names, with its window."""
    name, alias = _read_names(entry.tokens)
    relation = catalog.find(name.text)
    if relation is None:
        raise _unknown_relation(name, entry.tokens, catalog)
    shown = relation.name if alias is None else alias.text
    if isinstance(relation, Table):
        if entry.window is not None:
            raise entry.window.error(
                entry.window[0],
                f"table {relation.name} cannot have a window",
                "Remove the brackets; all its rows count",
            )
        return Scan(
            shown,
            relation.name,
            stored=True,
            window=Unbounded(bool(relation.key)),
            schema=relation.schema,
        )
    return Scan(
        shown,
        relation.name,
        stored=False,
        window=_window(entry, relation, clauses, name),
        schema=relation.schema,
    )


def read_alias(entry: FromEntry) -> str:
    """Return the name under which expressions know an entry."""
    name, alias = _read_names(entry.tokens)
    return (alias or name).text


def _read_names(tokens: Tokens) -> tuple[Token, Token | None]:
    cursor = Cursor(tokens)
    first, second = cursor.look(), cursor.look(1)
    if first is not None and is_text(first):
        raise tokens.error(
            first,
            "FROM cannot read files",
            "Declare the file with CREATE TABLE or CREATE STREAM and name that",
        )
    if first is not None and is_symbol(first, "("):
        raise tokens.error(
            first,
            "parentheses in FROM are not supported",
            "Write the joins one after the other, without parentheses",
        )
    name = cursor.name("the name of a stream or table")
    if second is not None and is_symbol(second, "("):
        raise tokens.error(
            name,
            f"FROM cannot call the function {name.text}",
            "Name declared streams and tables only",
        )
    if second is not None and is_symbol(second, "."):
        raise tokens.error(
            name, f"{name.text} is a schema, and Muntin has none", "Name the stream or table alone"
        )
    alias = cursor.name("an alias") if cursor.match("AS") or cursor.look() is not None else None
    cursor.end("An entry of FROM is a name with an alias and a window: stream AS alias [ROWS 100]")
    return name, alias


def _unknown_relation(name: Token, tokens: Tokens, catalog: Catalog) -> SqlError:
    known = [stream.name for stream in catalog.streams()]
    known += [table.name for table in catalog.tables()]
    known += [view.name for view in catalog.views()]
    listed = (
        f"There are {list_names(known)}"
        if known
        else "Declare it with CREATE STREAM or CREATE TABLE"
    )
    return tokens.error(
        name, f"there is no stream or table {name.text!r}", guess_name(name.text, known) + listed
    )


def _window(entry: FromEntry, stream: Stream, clauses: Clauses, name: Token) -> Window:
    if entry.window is None:
        if clauses.window is None:
            hint = (
                f"Write {name.text} [RANGE 1 MINUTE] or {name.text} [ROWS 100], "
                "or end the query with WINDOW 1 MINUTE"
            )
            raise entry.tokens.error(name, f"stream {stream.name} has no window", hint)
        return clauses.window.window
    window, columns = read_bracket(entry.window)
    if isinstance(window, TimeWindow) and window.until is not None:
        return replace(window, until=until_column(stream, columns[0], entry.window))
    if not isinstance(window, PartitionedWindow):
        return window
    found: list[str] = []
    for token in columns:
        column = stream.column(token.text)
        if column is None:
            hint = f"It has {', '.join(stream.schema.names)}"
            raise entry.window.error(
                token, f"stream {stream.name} has no column {token.text!r}", hint
            )
        if column in found:
            raise entry.window.error(
                token, f"the window is partitioned by {column} twice", "Name each column once"
            )
        found.append(column)
    return PartitionedWindow(tuple(found), window.rows)


def check_condition(entry: FromEntry) -> None:
    """Refuse a condition without JOIN, and a JOIN without condition."""
    conditional = entry.on is not None or entry.using is not None
    if "NATURAL" in entry.join.split():
        if conditional:
            fact = f"{entry.join} of {entry.tokens[0].text} has a condition beside common columns"
            hint = "Leave NATURAL out, or check the condition in WHERE"
            raise entry.tokens.error(entry.tokens[0], fact, hint)
        return
    if entry.join in {"", ",", "CROSS JOIN"} and conditional:
        condition = entry.on or entry.using
        assert condition is not None, "one of them is there"
        fact = f"a condition needs a JOIN before {entry.tokens[0].text}"
        raise entry.tokens.error(condition.start, fact, "Write JOIN ... ON, or use WHERE")
    if entry.join not in {"", ",", "CROSS JOIN"} and not conditional:
        hint = "Add ON condition or USING (columns), or write CROSS JOIN"
        raise entry.tokens.error(
            entry.tokens[0], f"the JOIN of {entry.tokens[0].text} has no condition", hint
        )


def _freshness(source: Scan, extent: Extent, tokens: Tokens) -> Window:
    given, window = extent.window, source.window
    if has_own_ends(window) or (isinstance(window, TimeWindow) and window.session):
        fact = f"the rows of {describe(source)} have their own ends: {window}"
        raise tokens.error(extent.token, fact, "Leave its FRESHNESS out")
    landmark = [
        each for each in (given, window) if isinstance(each, TimeWindow) and each.is_landmark
    ]
    if landmark:
        fact = f"the rows of {describe(source)} have no largest age: {landmark[0]}"
        raise tokens.error(
            extent.token, fact, "Leave its FRESHNESS out, or give its window an interval"
        )
    if isinstance(given, TimeWindow) != isinstance(window, TimeWindow):
        kind = "an interval" if isinstance(window, TimeWindow) else "a number of rows"
        fact = f"the window of {describe(source)} is {window}, so its freshness must be {kind}"
        raise tokens.error(extent.token, fact, "Change one of them")
    smaller = (
        isinstance(given, TimeWindow)
        and isinstance(window, TimeWindow)
        and given.micros < window.micros
    )
    smaller |= (
        isinstance(given, RowsWindow)
        and isinstance(window, (RowsWindow, PartitionedWindow))
        and given.rows < window.rows
    )
    if smaller:
        fact = f"the freshness {given} of {describe(source)} is smaller than its window {window}"
        raise tokens.error(
            extent.token,
            fact,
            "Rows inside the window are never too old; make the freshness at least as large",
        )
    if isinstance(window, PartitionedWindow) and isinstance(given, RowsWindow):
        return PartitionedWindow(window.columns, given.rows)
    return given
