"""A query over a shared join gives the results of a separate join.

The group's join, filtered by the windows and residuals of a member, equals the oracle's results for
the member's query alone.

The combinations of the shared join come from the oracle too; this module counts by hand whether a
row of a combination is inside a member's window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from muntin.model.catalog import Catalog
from muntin.model.window import RowsWindow, TimeWindow
from muntin.plan.expression import ColumnRef, Expression, OutputColumn, quote
from muntin.plan.query import Query
from muntin.planner.sharing_groups import Member, SharingGroup
from muntin.sql.script import read_query
from muntin.testing.case import Case, Event, StoredTable
from muntin.testing.compare import assert_same_sequence
from muntin.testing.connection import run_sql
from muntin.testing.golden import StreamDeclaration
from muntin.testing.sharing import share

SECOND = 1_000_000
STREAMS = tuple(
    StreamDeclaration(
        name, (("id", "BIGINT"), ("k", "BIGINT"), ("v", "BIGINT"), ("ts", "TIMESTAMP")), "ts", 0
    )
    for name in "AB"
)
TABLE = StoredTable(
    "T", (("id", "BIGINT"), ("k", "BIGINT"), ("v", "BIGINT")), ((0, 1, 1), (1, 2, 1), (2, 2, 3))
)
Link: TypeAlias = tuple[int, str, str, int, str]
"""Place, column, operator, place, column."""
OPERATORS = {"=": "=", "<": ">", "<>": "<>"}


@dataclass(frozen=True)
class Shape:
    """The common part of variants of a join: relations, window kinds, conditions between places."""

    relations: tuple[str, ...]
    kinds: tuple[str, ...]
    links: tuple[Link, ...]


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    count = draw(st.sampled_from([2, 2, 3]))
    relations = ("A", *(draw(st.sampled_from(["A", "B", "B", "T"])) for _ in range(count - 1)))
    kinds = tuple(
        "" if relation == "T" else draw(st.sampled_from(["RANGE", "RANGE", "ROWS"]))
        for relation in relations
    )
    return Shape(relations, kinds, draw(links_between(count)))


@st.composite
def links_between(draw: st.DrawFn, count: int) -> tuple[Link, ...]:
    column = st.sampled_from(["k", "k", "v"])
    return tuple(
        (
            draw(st.integers(0, place - 1)),
            draw(column),
            draw(st.sampled_from(list(OPERATORS))),
            place,
            draw(column),
        )
        for place in range(1, count)
        for _ in range(draw(st.sampled_from([1, 1, 2])))
    )


@st.composite
def variants(draw: st.DrawFn, shape: Shape) -> str:
    """Draw a variant of a join: source order, names, windows, selections and select list."""
    order = draw(st.permutations(range(len(shape.relations))))
    aliases = draw(st.permutations(["x", "y", "z"]))
    entries = [
        f"{shape.relations[place]} {aliases[place]}{_window(draw, shape.kinds[place])}"
        for place in order
    ]
    conditions = [_link(draw, link, aliases) for link in shape.links]
    for place in range(len(order)):
        selection = draw(
            st.sampled_from(
                [
                    "",
                    "",
                    "{}.v > 1",
                    "{}.k = 2",
                    "{}.v IS NULL OR {}.k < 3",
                    "{}.v > 1 AND {}.k <> {}.v",
                ]
            )
        )
        conditions += [selection.replace("{}", aliases[place])] if selection else []
    where = " AND ".join(f"({condition})" for condition in draw(st.permutations(conditions)))
    select = ", ".join(
        f"{aliases[place]}.{draw(st.sampled_from(['id', 'v']))} AS c{place}" for place in order
    )
    return f"SELECT {select} FROM {', '.join(entries)} WHERE {where}"


def _window(draw: st.DrawFn, kind: str) -> str:
    length = draw(st.integers(1, 6))
    return {"": "", "RANGE": f" [RANGE {length} SECONDS]", "ROWS": f" [ROWS {length}]"}[kind]


def _link(draw: st.DrawFn, link: Link, aliases: Sequence[str]) -> str:
    left, column, operator, right, other = link
    one, two = f"{aliases[left]}.{column}", f"{aliases[right]}.{other}"
    return (
        f"{one} {operator} {two}" if draw(st.booleans()) else f"{two} {OPERATORS[operator]} {one}"
    )


@st.composite
def events(draw: st.DrawFn) -> tuple[Event, ...]:
    value = st.sampled_from([1, 1, 2, 2, 3, None])
    drawn = draw(
        st.lists(
            st.tuples(st.sampled_from("AB"), st.integers(0, 9), value, value),
            min_size=4,
            max_size=16,
        )
    )
    ordered = sorted(drawn, key=lambda event: event[1])
    return tuple(
        Event(stream, time * SECOND, (number, k, v))
        for number, (stream, time, k, v) in enumerate(ordered)
    )


def ranks_of(case: Case) -> dict[int, int]:
    """Return the place of each row, by its id, in the total order."""
    order = sorted(
        range(len(case.events)),
        key=lambda number: (case.events[number].time, case.events[number].stream, number),
    )
    return {number: place for place, number in enumerate(order)}


def inside(ids: Sequence[int], member: Member, relations: Sequence[str], case: Case) -> bool:
    """Return whether rows, one per source, are inside the member's windows at the last arrival."""
    ranks = ranks_of(case)
    newest = max(
        (number for number, relation in zip(ids, relations, strict=True) if relation != "T"),
        key=ranks.__getitem__,
    )
    for number, relation, window in zip(ids, relations, member.windows, strict=True):
        if (
            isinstance(window, TimeWindow)
            and case.events[newest].time - case.events[number].time >= window.micros
        ):
            return False
        if isinstance(window, RowsWindow):
            later = [
                other
                for other, rank in ranks.items()
                if case.events[other].stream == relation and ranks[number] < rank <= ranks[newest]
            ]
            if len(later) >= window.rows:
                return False
    return True


def combinations_of(group: SharingGroup, case: Case) -> pa.Table:
    """Return all columns of the group's join, under flat names, in its order of results."""
    columns = [
        ColumnRef(place, column)
        for place, source in enumerate(group.sources)
        for column in source.schema.names
    ]
    assert {column.name for column in group.join.select} <= {column.flat for column in columns}
    select = [
        OutputColumn(
            column.flat,
            Expression(
                quote(column.flat),
                (column,),
                group.sources[column.source].schema.field(column.column).type,
            ),
        )
        for column in columns
    ]
    return case.oracle(
        replace(group.join, root=replace(group.join.join, select=tuple(select)))
    ).inserts()


def results_of(member: Member, group: SharingGroup, case: Case) -> pa.Table:
    """Return the part of the group's join that belongs to a member, with its select list."""
    found = combinations_of(group, case)
    relations = [source.relation for source in group.sources]
    ids = list(
        zip(
            *(found.column(f"{place}.id").to_pylist() for place in range(len(relations))),
            strict=True,
        )
    )
    found = found.append_column("number", pa.array(range(len(found)), pa.int64()))
    found = found.filter(
        pa.array([inside(row, member, relations, case) for row in ids], pa.bool_())
    )
    where = " AND ".join(f"({residual.sql})" for residual in member.residuals) or "true"
    select = ", ".join(
        f"{column.expression.sql} AS c{number}" for number, column in enumerate(member.select)
    )
    rows = run_sql(
        f'SELECT "_op", "_ts", {select}, number FROM found WHERE {where} ORDER BY number',
        {"found": found},
    )
    numbers = rows.column("number").to_pylist()
    if not member.keeps_order:
        keys = [own_order(ids[number], member, case) for number in numbers]
        rows = rows.take(pa.array(sorted(range(len(rows)), key=keys.__getitem__), pa.int64()))
    schema = member.query.output_schema
    columns = [
        column.cast(field.type) for column, field in zip(rows.columns[:-1], schema, strict=True)
    ]
    return pa.table(columns, schema=schema)


def own_order(ids: Sequence[int], member: Member, case: Case) -> tuple[int, ...]:
    """Return the sort key: newest row, its source, then the member's sources, newest rows first."""
    ranks, sources = ranks_of(case), member.query.sources
    own = [
        ids[place] if source.stored else ranks[ids[place]]
        for place, source in zip(member.places, sources, strict=True)
    ]
    newest = max(rank for rank, source in zip(own, sources, strict=True) if not source.stored)
    last = max(
        place for place, rank in enumerate(own) if rank == newest and not sources[place].stored
    )
    return newest, last, *(-rank for rank in own)


def bind(texts: Sequence[str], catalog: Catalog) -> list[Query]:
    return [read_query(text, f"q{number}", catalog) for number, text in enumerate(texts)]


@given(st.data(), shapes(), events())
def test_every_member_gets_the_same_from_the_shared_join_as_alone(
    data: st.DataObject, shape: Shape, rows: tuple[Event, ...]
) -> None:
    texts = [data.draw(variants(shape)) for _ in range(data.draw(st.integers(2, 4)))]
    case = Case(STREAMS, (TABLE,), "", rows)
    groups = share(bind(texts, case.catalog()))
    assert len(groups) == 1
    for member in groups[0].members:
        assert_same_sequence(
            case.oracle(member.query).inserts(), results_of(member, groups[0], case)
        )


@given(st.data(), shapes(), events())
def test_joins_on_other_conditions_are_kept_apart_unless_equivalent(
    data: st.DataObject, shape: Shape, rows: tuple[Event, ...]
) -> None:
    """Draw few columns and sources, so that conditions are often equal under other names."""
    other = replace(shape, links=data.draw(links_between(len(shape.relations))))
    case = Case(STREAMS, (TABLE,), "", rows)
    for group in share(
        bind([data.draw(variants(each)) for each in (shape, other)], case.catalog())
    ):
        for member in group.members:
            assert_same_sequence(
                case.oracle(member.query).inserts(), results_of(member, group, case)
            )
