"""Queries that share a join get what each gets by itself, in the same order, also while queries come and go."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, note
from hypothesis import strategies as st

import muntin
from muntin.engine.running_query import RunningQuery
from muntin.testing.compare import assert_same_rows, assert_same_sequence

SCHEMA = pa.schema([("k", pa.int64()), ("j", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us"))])
COLUMNS = {"k": "bigint", "j": "bigint", "v": "bigint", "ts": "timestamp"}
TABLE = pa.table({"k": [0, 1, 1, 2], "name": ["zero", "one", "uno", "two"]})

FAMILIES = [
    [
        "SELECT A.v AS x, B.v AS y FROM A, B WHERE A.k = B.k{more} WINDOW {w} SECONDS",
        "SELECT B.v AS y, A.v + 1 AS x FROM B, A WHERE B.k = A.k{more} WINDOW {w} SECONDS",
        "SELECT A.v AS x FROM A [RANGE {w} SECONDS], B [RANGE {u} SECONDS] WHERE B.k = A.k{more}",
    ],
    [
        "SELECT A.v AS x, B.v AS y FROM A [ROWS {w}], B [ROWS {u}] WHERE A.k = B.k{more}",
        "SELECT A.v AS x, B.j AS y FROM B [ROWS {w}], A [ROWS {w}] WHERE A.k = B.k{more}",
    ],
    ["SELECT A.v AS x, B.v AS y FROM A [ROWS {w}], B [RANGE {u} SECONDS] WHERE A.j < B.j{more}"],
    [
        "SELECT A.v AS x, B.v AS y, C.v AS z FROM A, B, C WHERE A.k = B.k AND C.k = B.k{more} WINDOW {w} SECONDS",
        "SELECT A.v AS x, C.v AS z FROM C, B, A WHERE A.k = B.k AND A.k = C.k{more} WINDOW {w} SECONDS",
    ],
    ["SELECT A.v AS x, B.v AS y FROM A, A AS B WHERE A.k = B.j{more} WINDOW {w} SECONDS"],
    ["SELECT A.v AS x, B.v AS y FROM A [ROWS {w}], A AS B [ROWS {u}] WHERE A.k = B.k{more}"],
    ["SELECT A.v AS x, name, B.v AS y FROM A, B, T WHERE A.k = B.k AND T.k = A.k{more} WINDOW {w} SECONDS"],
]
"""Queries of a family can share."""

MORE = ["", "", " AND A.j > 0", " AND B.j = 1", " AND A.j > 0 AND B.v % 2 = 0", " AND A.v + B.v > 10"]

ROWS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=6)


@st.composite
def stories(draw: st.DrawFn) -> list[tuple[str, object]]:
    """What happens: rows of a stream, a query that is added, one that is dropped (by its number)."""
    joins = [join for family in draw(st.lists(st.sampled_from(FAMILIES), min_size=1, max_size=2)) for join in family]
    sizes = st.integers(1, 6)
    queries = st.builds(
        lambda join, more, w, u: join.format(more=more, w=w, u=u), st.sampled_from(joins), st.sampled_from(MORE), sizes, sizes
    )
    added = st.tuples(st.just("add"), queries)
    came = st.tuples(st.sampled_from("ABC"), ROWS)
    events = st.one_of(came, came, came, added, st.tuples(st.just("drop"), st.integers(0, 9)))
    return [*draw(st.lists(added, min_size=2, max_size=4)), *draw(st.lists(events, min_size=6, max_size=25))]


def made(sharing: str) -> muntin.Engine:
    engine = muntin.Engine(sharing=sharing)
    for name in "ABC":
        engine.stream(name, COLUMNS, time="ts")
    engine.table("T", TABLE)
    return engine


@given(stories())
def test_a_query_gets_the_same_shared_or_alone(story: list[tuple[str, object]]) -> None:
    shared, alone = made("on"), made("off")
    names: list[str] = []
    clock = 0
    for number, (what, detail) in enumerate(story):
        if what == "add":
            note(f"q{number}: {detail}")
            names.append(f"q{number}")
            for engine in (shared, alone):
                engine.query(str(detail), name=names[-1])
        elif what == "drop" and names:
            assert isinstance(detail, int)
            name = names.pop(detail % len(names))
            note(f"drop {name}")
            for engine in (shared, alone):
                engine.drop(name)
        elif isinstance(detail, list):
            values: list[tuple[int, int, int, int]] = []
            for k, j, step in detail:
                clock += step
                values.append((k, j, number * 10 + len(values), clock * 1_000_000))
            note(f"{what} {values}")
            for engine in (shared, alone):
                engine.push(what, values)
    for name in names:
        note(name)
        handles = [next(query for query in engine.queries() if query.name == name) for engine in (shared, alone)]
        assert_same_rows(handles[1].answer(), handles[0].answer())
        assert_same_sequence(handles[1].poll(), handles[0].poll())
    for engine in (shared, alone):
        engine.advance((clock + 60) * 1_000_000)
    for name in names:
        note(name)
        handles = [next(query for query in engine.queries() if query.name == name) for engine in (shared, alone)]
        assert_same_sequence(handles[1].poll(), handles[0].poll())


def test_queries_like_these_do_share() -> None:
    engine = made("on")
    for number, join in enumerate(FAMILIES[0]):
        engine.query(join.format(more=MORE[number + 1], w=number + 1, u=5), name=f"q{number}")
    assert all(isinstance(running, RunningQuery) and len(running.shares_with()) == 3 for running in engine._queries.values())
    assert len(engine._joins.running) == 1
