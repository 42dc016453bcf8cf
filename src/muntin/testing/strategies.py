"""Hypothesis strategies for cases.

Small streams full of ties and NULLs, and random queries over them.

Domains are small on purpose: few keys, few instants, short windows, so that rows meet, tie and
expire all the time. Needs the package ``hypothesis``; nothing else of Muntin imports this module.

>>> from hypothesis import given
>>> @given(cases())
... def test_my_engine(case): ...
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from muntin.model.clock import SECOND
from muntin.testing.case import Case, Event, StoredTable, Value
from muntin.testing.golden import StreamDeclaration

_NUMBERS = ("INTEGER", "BIGINT", "DOUBLE")
_ALIASES = "abcd"


@dataclass(frozen=True)
class Shape:
    """What cases may look like.

    Parameters
    ----------
    sources : int
        The most entries of FROM, 1 to 4.
    events : int
        The most rows, over all streams.
    instants : int
        How many different seconds there are.
    emits : tuple[str, ...]
        The EMIT clauses to draw from; the empty one leaves it out.
    every : bool
        Whether queries may have EVERY.
    tables : bool
        Whether stored tables take part.
    slack : bool
        Whether rows may come out of order, within the slack.
    least : int
        The fewest entries of FROM.
    partitions : bool
        Whether windows may be partitioned.
    landmarks : bool
        Whether there are windows that rows never leave.
    """

    sources: int = 4
    events: int = 24
    instants: int = 12
    emits: tuple[str, ...] = ("", "EMIT INSERTS", "EMIT CHANGES")
    every: bool = True
    tables: bool = True
    slack: bool = True
    least: int = 1
    partitions: bool = True
    landmarks: bool = True


@dataclass(frozen=True)
class _Entry:
    """An entry of FROM: its alias, its relation, and the relation's columns by kind."""

    alias: str
    relation: str
    stored: bool
    numbers: tuple[str, ...]
    texts: tuple[str, ...]

    def number(self, draw: st.DrawFn) -> str:
        return f"{self.alias}.{draw(st.sampled_from(self.numbers))}"


@st.composite
def cases(draw: st.DrawFn, shape: Shape | None = None) -> Case:
    """Draw cases.

    Parameters
    ----------
    draw : DrawFn
        Given by Hypothesis.
    shape : Shape, optional
        Bounds of what is drawn.
    """
    shape = shape or Shape()
    streams = tuple(draw(_streams(name, shape)) for name in "ABC"[: draw(st.integers(1, 3))])
    tables = (draw(_tables()),) if shape.tables and draw(st.integers(0, 3)) == 3 else ()
    query = draw(queries(streams, tables, shape))
    events = draw(arrivals(streams, shape))
    cuts = draw(st.lists(st.integers(0, len(events)), max_size=4)) if events else []
    return Case(streams, tables, query, events, tuple(sorted(set(cuts))))


@st.composite
def arrivals(
    draw: st.DrawFn, streams: tuple[StreamDeclaration, ...], shape: Shape
) -> tuple[Event, ...]:
    """Return rows of the streams in an order of arrival in which none is late.

    Each row is delayed by at most its stream's slack; sorted by time plus delay, a row comes at
    most the slack behind its stream.
    """
    rows = []
    for _ in range(
        draw(st.one_of(st.integers(0, shape.events), st.integers(shape.events // 2, shape.events)))
    ):
        stream = draw(st.sampled_from(streams))
        time = draw(st.integers(0, shape.instants - 1)) * SECOND
        delay = draw(st.integers(0, stream.slack // SECOND)) * SECOND if stream.slack else 0
        values = tuple(draw(_values(declared)) for _, declared in stream.columns[:-1])
        rows.append((time + delay, Event(stream.name, time, values)))
    return tuple(event for _, event in sorted(rows, key=lambda row: row[0]))


@st.composite
def queries(
    draw: st.DrawFn,
    streams: tuple[StreamDeclaration, ...],
    tables: tuple[StoredTable, ...],
    shape: Shape,
) -> str:
    """Select-project-join queries over the streams and tables, at least one of them a stream."""
    count = draw(
        st.sampled_from(
            [count for count in (1, 2, 2, 2, 3, 3, 4) if shape.least <= count <= shape.sources]
        )
    )
    entries = []
    for place, alias in enumerate(_ALIASES[:count]):
        relations: tuple[StreamDeclaration | StoredTable, ...] = (
            streams if place == 0 else (*streams, *tables)
        )
        entries.append(_entry(alias, draw(st.sampled_from(relations))))
    if len(entries) > 1 and draw(st.booleans()):
        entries.reverse()
    joins = [draw(_link(entries[:place], entries[place])) for place in range(1, count)]
    residuals = [draw(_residual(entries)) for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2])))]
    default, windows = draw(_windows(entries, shape))
    names = [f"{entry.relation} {entry.alias}{windows[entry.alias]}" for entry in entries]
    if count > 1 and all(joins) and draw(st.integers(0, 3)) == 3:
        source = names[0] + "".join(
            f" JOIN {name} ON {' AND '.join(link)}"
            for name, link in zip(names[1:], joins, strict=True)
        )
        conditions = residuals
    else:
        source = ", ".join(names)
        conditions = [condition for link in joins for condition in link] + residuals
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    intervals = (
        ["", "", "", " EVERY 1 SECOND", " EVERY 2 SECONDS", " EVERY 5 SECONDS"]
        if shape.every
        else [""]
    )
    every = draw(st.sampled_from(intervals))
    emit = draw(st.sampled_from(shape.emits))
    clauses = f"{where}{default}{every}{f' {emit}' if emit else ''}"
    return f"SELECT {draw(_select(entries))} FROM {source}{clauses}"


@st.composite
def _streams(draw: st.DrawFn, name: str, shape: Shape) -> StreamDeclaration:
    slack = draw(st.sampled_from([0, 0, 1, 3])) * SECOND if shape.slack else 0
    return StreamDeclaration(name, (*draw(_columns()), ("ts", "TIMESTAMP")), "ts", slack)


@st.composite
def _tables(draw: st.DrawFn) -> StoredTable:
    columns = draw(_columns())
    rows = draw(st.lists(st.tuples(*(_values(declared) for _, declared in columns)), max_size=4))
    return StoredTable("T", columns, tuple(rows))


@st.composite
def _columns(draw: st.DrawFn) -> tuple[tuple[str, str], ...]:
    """Return a key, and perhaps per second key, a text and a number."""
    columns = [("k", draw(st.sampled_from(_NUMBERS)))]
    columns += [("j", draw(st.sampled_from(_NUMBERS)))] if draw(st.booleans()) else []
    columns += [("s", "VARCHAR")] if draw(st.booleans()) else []
    columns += [("v", draw(st.sampled_from(_NUMBERS)))] if draw(st.booleans()) else []
    return tuple(columns)


def _values(declared: str) -> st.SearchStrategy[Value]:
    if declared == "VARCHAR":
        return st.sampled_from(["x", "x", "", "ß", None])
    if declared == "DOUBLE":
        return st.sampled_from([1.0, 1.0, 2.0, 2.0, 0.5, None])
    return st.sampled_from([1, 1, 2, 2, 3, None])


def _entry(alias: str, relation: StreamDeclaration | StoredTable) -> _Entry:
    numbers = tuple(name for name, declared in relation.columns if declared in _NUMBERS)
    texts = tuple(name for name, declared in relation.columns if declared == "VARCHAR")
    return _Entry(alias, relation.name, isinstance(relation, StoredTable), numbers, texts)


@st.composite
def _link(draw: st.DrawFn, earlier: list[_Entry], entry: _Entry) -> list[str]:
    """Draw the conditions that join an entry with those before it."""
    other = draw(st.sampled_from(earlier))
    kind = draw(
        st.sampled_from(
            [
                "common",
                "common",
                "common",
                "common",
                "any",
                "any",
                "text",
                "partial_match",
                "expression",
                "theta",
                "none",
            ]
        )
    )
    if kind == "common":
        return [f"{earlier[0].alias}.k = {entry.alias}.k"]
    if kind == "text" and other.texts and entry.texts:
        return [f"{other.alias}.s = {entry.alias}.s"]
    if kind == "partial_match":
        return [
            f"{other.number(draw)} = {entry.number(draw)}",
            f"{entry.alias}.k = {draw(st.sampled_from(earlier)).number(draw)}",
        ]
    if kind == "expression":
        return [f"{other.number(draw)} + 1 = {entry.number(draw)}"]
    if kind == "theta":
        left = other.number(draw)
        operator = draw(st.sampled_from(["<", "<=", ">", ">=", "<>"]))
        return [f"{left} {operator} {entry.number(draw)}"]
    if kind == "none" and len(earlier) == 1:
        return []
    return [f"{other.number(draw)} = {entry.number(draw)}"]


@st.composite
def _residual(draw: st.DrawFn, entries: list[_Entry]) -> str:
    """Return a further condition of any form, over one or two entries."""
    left, right = draw(st.sampled_from(entries)), draw(st.sampled_from(entries))
    value = draw(st.integers(1, 3))
    forms = [
        f"{left.number(draw)} > {value}",
        f"{left.number(draw)} IS NOT NULL",
        f"({left.number(draw)} > {right.number(draw)} OR {left.number(draw)} = {value})",
        f"{left.number(draw)} + {right.number(draw)} <> {value}",
        f"NOT ({left.number(draw)} = {right.number(draw)} AND {right.number(draw)} < {value})",
    ]
    return draw(st.sampled_from(forms))


@st.composite
def _windows(draw: st.DrawFn, entries: list[_Entry], shape: Shape) -> tuple[str, dict[str, str]]:
    """Return the WINDOW clause of the query, if any, and the windows of the entries."""
    default = draw(
        st.sampled_from(
            [
                "",
                f" WINDOW {draw(st.integers(1, 8))} SECONDS",
                f" WINDOW {draw(st.integers(1, 4))} ROWS",
            ]
        )
    )
    windows = {}
    for entry in entries:
        own = [
            f" [RANGE {draw(st.integers(1, 8))} SECONDS]",
            f" [ROWS {draw(st.integers(1, 4))}]",
        ]
        if shape.landmarks:
            since = f" [SINCE '1970-01-01 00:00:0{draw(st.integers(0, 8))}']"
            own.append(draw(st.sampled_from([" [UNBOUNDED]", since])))
        if shape.partitions:
            column = draw(st.sampled_from(entry.numbers))
            own.append(f" [PARTITION BY {column} ROWS {draw(st.integers(1, 4))}]")
        windows[entry.alias] = (
            "" if entry.stored or (default and draw(st.booleans())) else draw(st.sampled_from(own))
        )
    return default, windows


@st.composite
def _select(draw: st.DrawFn, entries: list[_Entry]) -> str:
    """Draw select lists that distinguish rows, or barely do, so that some results are equal."""
    if draw(st.booleans()):
        times = [
            f"{entry.alias}.ts AS t{place}"
            for place, entry in enumerate(entries)
            if not entry.stored
        ]
        keys = [f"{entry.alias}.k AS k{place}" for place, entry in enumerate(entries)]
        return ", ".join(keys + times)
    entry = draw(st.sampled_from(entries))
    columns = [f"{entry.number(draw)} AS n"]
    columns += [f"{entry.alias}.s AS s"] if entry.texts else []
    columns += [f"{entry.number(draw)} * 2 + 1 AS e"] if draw(st.booleans()) else []
    return ", ".join(columns)
