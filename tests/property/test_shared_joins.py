"""Queries that share a join get the results of separate joins, also while queries change."""

from __future__ import annotations

from functools import partial
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given, note
from hypothesis import strategies as st

import muntin
from muntin.model.catalog import Stream
from muntin.operators.join import scan_rates
from muntin.operators.join.schedule import TurnPace
from muntin.runtime.dataflow import Frontier
from muntin.runtime.running_query import RunningQuery
from muntin.testing.compare import assert_same_rows, assert_same_sequence
from muntin.testing.dataflows import batches_of, dataflow_of
from tests.property.story_rows import push_rows

SCHEMA = pa.schema(
    [("k", pa.int64()), ("j", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us"))]
)
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
        (
            "SELECT A.v AS x, B.v AS y, C.v AS z FROM A, B, C WHERE A.k = B.k AND C.k = B.k{more} "
            "WINDOW {w} SECONDS"
        ),
        (
            "SELECT A.v AS x, C.v AS z FROM C, B, A WHERE A.k = B.k AND A.k = C.k{more} WINDOW {w} "
            "SECONDS"
        ),
    ],
    [
        (
            "SELECT A.v AS x, B.v AS y, C.v AS z FROM A [RANGE {w} SECONDS], B [RANGE {u} SECONDS],"
            " C [RANGE {w} SECONDS] WHERE A.k = B.k AND B.j <= C.j{more}"
        ),
        (
            "SELECT A.v AS x, C.v AS z FROM B [RANGE {w} SECONDS], A [RANGE {u} SECONDS],"
            " C [RANGE {u} SECONDS] WHERE A.k = B.k AND B.j <= C.j{more}"
        ),
    ],
    [
        (
            "SELECT A.v AS x, B.v AS y, C.v AS z FROM A [ROWS {w}], B [ROWS {u}], C [ROWS {w}] "
            "WHERE A.k = B.k AND B.j = C.j{more}"
        )
    ],
    [
        (
            "SELECT A.v AS x, B.v AS y, C.v AS z, D.v AS u FROM A, B, C, A AS D "
            "WHERE A.k = B.k AND B.j = C.j AND C.k = D.k{more} WINDOW {w} SECONDS"
        )
    ],
    ["SELECT A.v AS x, B.v AS y FROM A, A AS B WHERE A.k = B.j{more} WINDOW {w} SECONDS"],
    ["SELECT A.v AS x, B.v AS y FROM A [ROWS {w}], A AS B [ROWS {u}] WHERE A.k = B.k{more}"],
    [
        (
            "SELECT A.v AS x, name, B.v AS y FROM A, B, T WHERE A.k = B.k AND T.k = A.k{more} "
            "WINDOW "
            "{w} SECONDS"
        )
    ],
]
"""Queries of a family can share."""

MORE = [
    "",
    "",
    " AND A.j > 0",
    " AND B.j = 1",
    " AND A.j > 0 AND B.v % 2 = 0",
    " AND A.v + B.v > 10",
]

WEIGHTS = ["", "", " WITH (weight = 3)", " WITH (weight = '0.25')"]

ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=6
)


@st.composite
def stories(draw: st.DrawFn) -> list[tuple[str, object]]:
    """Draw events: rows of a stream, an added query, a dropped one (by number)."""
    joins = [
        join
        for family in draw(st.lists(st.sampled_from(FAMILIES), min_size=1, max_size=2))
        for join in family
    ]
    sizes = st.integers(1, 6)
    queries = st.builds(
        lambda join, more, w, u, weight: f"{join.format(more=more, w=w, u=u)}{weight}",
        st.sampled_from(joins),
        st.sampled_from(MORE),
        sizes,
        sizes,
        st.sampled_from(WEIGHTS),
    )
    added = st.tuples(st.just("add"), queries)
    came = st.tuples(st.sampled_from("ABC"), ROWS)
    events = st.one_of(came, came, came, added, st.tuples(st.just("drop"), st.integers(0, 9)))
    return [
        *draw(st.lists(added, min_size=2, max_size=4)),
        *draw(st.lists(events, min_size=6, max_size=25)),
    ]


def made(sharing: str, scheduler: str = "mqt") -> muntin.Engine:
    engine = muntin.Engine(sharing=sharing, scheduler=scheduler)
    for name in "ABC":
        engine.stream(name, COLUMNS, time="ts")
    engine.table("T", TABLE)
    return engine


@given(stories(), st.sampled_from(["lwo", "swf", "mqt"]))
def test_a_query_gets_the_same_shared_or_alone(
    story: list[tuple[str, object]], scheduler: str
) -> None:
    shared, alone = made("on", scheduler), made("off")
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
            clock = push_rows((shared, alone), what, detail, number, clock)
    for name in names:
        note(name)
        handles = [
            next(query for query in engine.queries() if query.name == name)
            for engine in (shared, alone)
        ]
        assert_same_rows(handles[1].answer(), handles[0].answer())
        assert_same_sequence(handles[1].poll(), handles[0].poll())
    for engine in (shared, alone):
        engine.advance((clock + 60) * 1_000_000)
    for name in names:
        note(name)
        handles = [
            next(query for query in engine.queries() if query.name == name)
            for engine in (shared, alone)
        ]
        assert_same_sequence(handles[1].poll(), handles[0].poll())


Told = dict[str, list[pa.Table]]


def keep(got: Told, name: str, batch: pa.RecordBatch) -> None:
    got.setdefault(name, []).append(pa.Table.from_batches([batch]))


RATES_FROM_THE_FIRST_ROW = patch.object(scan_rates, "_LEAST_ROWS", 1)


@RATES_FROM_THE_FIRST_ROW
def live(story: list[tuple[str, object]], scheduler: str) -> tuple[Told, Told]:
    """Return the results of each query live, through subscribers, and alone, by polling."""
    shared, alone = made("on", scheduler), made("off")
    got: Told = {}
    expected: Told = {}
    names: list[str] = []
    clock = 0
    shared.start()
    for number, (what, detail) in enumerate(story):
        if what == "add":
            name = f"q{number}"
            names.append(name)
            note(f"{name}: {detail}")
            alone.query(str(detail), name=name)
            shared.query(str(detail), name=name).subscribe(partial(keep, got, name))
        elif what == "drop" and names:
            assert isinstance(detail, int)
            name = names.pop(detail % len(names))
            note(f"drop {name}")
            expected[name] = [alone.handle(name).poll()]
            assert shared.settle(60)
            for engine in (shared, alone):
                engine.drop(name)
        elif isinstance(detail, list):
            clock = push_rows((shared, alone), what, detail, number, clock)
    for engine in (shared, alone):
        engine.advance((clock + 60) * 1_000_000)
    shared.stop()
    expected.update({name: [alone.handle(name).poll()] for name in names})
    return got, expected


@given(stories(), st.sampled_from(["lwo", "swf", "mqt"]))
def test_a_running_engine_gives_every_query_the_results_it_gets_alone(
    story: list[tuple[str, object]], scheduler: str
) -> None:
    got, expected = live(story, scheduler)
    for name, tables in expected.items():
        note(name)
        wanted = pa.concat_tables(tables)
        assert_same_sequence(
            wanted, pa.concat_tables([wanted.schema.empty_table(), *got.get(name, [])])
        )


@given(stories(), st.sampled_from(["swf", "mqt"]), st.integers(1, 50))
def test_paced_results_are_those_of_each_query_alone(
    story: list[tuple[str, object]], scheduler: str, results: int
) -> None:
    """Release results as Spark partitions do for subscribers, in pieces of any size."""
    with RATES_FROM_THE_FIRST_ROW:
        check_paced(story, scheduler, results)


def check_paced(story: list[tuple[str, object]], scheduler: str, results: int) -> None:
    alone = made("off")
    got: Told = {}
    names = [f"q{number}" for number, (what, _) in enumerate(story) if what == "add"]
    queries = dict(zip(names, (str(sql) for what, sql in story if what == "add"), strict=True))
    streams = [Stream(name, SCHEMA, "ts") for name in alone.dataflow.streams]
    shared = dataflow_of(streams, queries, tables={"T": TABLE}, sharing="on", scheduler=scheduler)
    for name, sql in queries.items():
        alone.query(sql, name=name)
    rows: dict[str, list[tuple[int, int, int, int]]] = {}
    clock = 0
    for what, detail in story:
        if isinstance(detail, list):
            for k, j, step in detail:
                clock += step
                rows.setdefault(what, []).append((k, j, len(rows.get(what, [])), clock * 1_000_000))
    for stream, values in rows.items():
        table = pa.table(
            [
                pa.array(column, pa.int64()).cast(field.type)
                for column, field in zip(zip(*values, strict=True), SCHEMA, strict=True)
            ],
            schema=SCHEMA,
        )
        batches = batches_of(shared, {stream: table})
        assert not list(shared.step(batches, Frontier(final=(-(2**62), -1))))
        alone.push(stream, table)
    pace = TurnPace(1, 1, results)
    for name, piece in shared.step(frontier=Frontier(advanced=clock * 1_000_000), pace=pace):
        got.setdefault(name, []).append(piece)
    alone.advance(clock * 1_000_000)
    for name in names:
        wanted = alone.handle(name).poll()
        assert_same_sequence(
            wanted, pa.concat_tables([wanted.schema.empty_table(), *got.get(name, [])])
        )


def test_queries_like_these_do_share() -> None:
    engine = made("on")
    for number, join in enumerate(FAMILIES[0]):
        engine.query(join.format(more=MORE[number + 1], w=number + 1, u=5), name=f"q{number}")
    assert all(
        isinstance(running, RunningQuery) and len(running.shares_with()) == 3
        for running in engine.dataflow.queries.values()
    )
    assert len(engine.dataflow.joins()) == 1
