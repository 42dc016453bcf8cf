"""Shared joins give queries with changes and views the results of separate joins.

Queries may be added and dropped at any time.
"""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, note
from hypothesis import strategies as st

import muntin
from muntin.runtime.running_pipeline import RunningPipeline
from muntin.testing.compare import assert_same_changes, assert_same_rows
from tests.property.story_rows import push_rows

SECOND = 1_000_000
COLUMNS = {"k": "bigint", "j": "bigint", "v": "bigint", "ts": "timestamp"}
TABLE = pa.table({"k": [0, 1, 1, 2], "name": ["zero", "one", "uno", "two"]})

JOINS = [
    "FROM A, B WHERE A.k = B.k{more} WINDOW {w} SECONDS",
    "FROM B, A WHERE B.k = A.k{more} WINDOW {w} SECONDS",
    "FROM A [RANGE {w} SECONDS], B [RANGE {u} SECONDS] WHERE B.k = A.k{more}",
    "FROM A, B, C WHERE A.k = B.k AND C.k = B.k{more} WINDOW {w} SECONDS",
    "FROM A, A AS B WHERE A.k = B.j{more} WINDOW {w} SECONDS",
    "FROM A, B, T WHERE A.k = B.k AND T.k = A.k{more} WINDOW {w} SECONDS",
    "FROM A [ROWS {w}], B [ROWS {u}] WHERE A.k = B.k{more}",
]
SELECTS = [
    "SELECT A.v AS x, B.v AS y {}",
    "SELECT DISTINCT A.j AS x {}",
    "SELECT A.j AS x, COUNT(*) AS n, MAX(B.v) AS m {} GROUP BY A.j",
    "SELECT COUNT(DISTINCT B.v) AS n, SUM(A.v) AS s {}",
    "SELECT A.j AS x {} EXCEPT SELECT B.k AS x {}",
    "SELECT S.x, COUNT(*) AS n FROM (SELECT DISTINCT A.j AS x, B.v AS y {}) AS S GROUP BY S.x",
]
SAME = [
    "SELECT DISTINCT A.j AS x FROM A, B WHERE A.k = B.k WINDOW 4 SECONDS EMIT CHANGES",
    (
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT A.j AS x FROM A, B WHERE A.k = B.k) AS S "
        "WINDOW 4 "
        "SECONDS EMIT CHANGES"
    ),
    (
        "SELECT B.x FROM (SELECT DISTINCT A.j AS x FROM A, B WHERE A.k = B.k) AS B, A WHERE A.k = "
        "B.x "
        "WINDOW 4 SECONDS EMIT CHANGES"
    ),
    "SELECT DISTINCT v FROM A WINDOW 3 SECONDS EMIT CHANGES",
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT A.v FROM A) AS S WINDOW 3 SECONDS EMIT CHANGES",
    "SELECT v FROM A EXCEPT SELECT v FROM A WHERE k > 0 WINDOW 3 SECONDS EMIT CHANGES",
    "SELECT DISTINCT v FROM A UNION ALL SELECT DISTINCT v FROM A WINDOW 3 SECONDS EMIT CHANGES",
]
"""Queries that have sub-plans in common."""
MORE = ["", "", " AND A.j > 0", " AND B.j = 1", " AND A.v + B.v > 10"]
ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=6
)


@st.composite
def selects(draw: st.DrawFn, joins: list[str]) -> str:
    """Draw a query with changes over one of some joins, or one that shares a part with others."""
    if not joins or draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from(SAME))
    join = draw(st.sampled_from(joins)).format(
        more=draw(st.sampled_from(MORE)), w=draw(st.integers(1, 6)), u=draw(st.integers(1, 6))
    )
    body, window, size = join.partition(" WINDOW ")
    select = draw(st.sampled_from(SELECTS))
    text = (
        select.replace("{}", body)
        if "GROUP BY" not in select or "AS S" in select
        else select.format(body)
    )
    every = draw(st.sampled_from(["", "", "", " EVERY 2 SECONDS"]))
    return f"{text}{window}{size}{every} EMIT CHANGES"


@st.composite
def stories(draw: st.DrawFn) -> list[tuple[str, object]]:
    """Draw events: rows of a stream, passing time, an added query, a dropped one (by number)."""
    joins = draw(
        st.sampled_from(
            [JOINS[:3], JOINS[:3], JOINS[:4], JOINS[4:5], JOINS[5:6], JOINS[6:], JOINS, []]
        )
    )
    added = st.tuples(st.just("add"), selects(joins))
    came = st.tuples(st.sampled_from("ABC"), ROWS)
    passed = st.tuples(st.just("advance"), st.integers(0, 4))
    events = st.one_of(
        came, came, came, passed, added, st.tuples(st.just("drop"), st.integers(0, 9))
    )
    return [
        *draw(st.lists(added, min_size=2, max_size=4)),
        *draw(st.lists(events, min_size=6, max_size=20)),
    ]


def made(sharing: str, pipeline: str) -> muntin.Engine:
    engine = muntin.Engine(sharing=sharing, pipeline=pipeline)
    for name in "ABC":
        engine.stream(name, COLUMNS, time="ts")
    engine.table("T", TABLE)
    return engine


@given(
    stories(),
    st.sampled_from(["auto", "auto", "hybrid", "negative", "probing"]),
    st.sampled_from(["auto", "negative"]),
)
def test_a_query_gets_the_same_shared_or_alone(
    story: list[tuple[str, object]], strategy: str, other: str
) -> None:
    """The query that runs alone may use another strategy."""
    engines = made("on", strategy), made("off", other)
    names: list[str] = []
    clock = 0
    for number, (what, detail) in enumerate(story):
        if what == "add":
            note(f"q{number}: {detail}")
            names.append(f"q{number}")
            for engine in engines:
                engine.query(str(detail), name=names[-1])
        elif what == "drop" and names:
            assert isinstance(detail, int)
            name = names.pop(detail % len(names))
            note(f"drop {name}")
            for engine in engines:
                engine.drop(name)
        elif what == "advance":
            assert isinstance(detail, int)
            clock += detail
            note(f"advance to {clock}")
            for engine in engines:
                engine.advance(clock * SECOND)
        elif isinstance(detail, list):
            clock = push_rows(engines, what, detail, number, clock)
        check(engines, names, answers=True)
    for engine in engines:
        engine.advance((clock + 60) * SECOND)
    check(engines, names, answers=True)


def check(engines: tuple[muntin.Engine, muntin.Engine], names: list[str], *, answers: bool) -> None:
    shared, alone = engines
    for name in names:
        note(name)
        assert_same_changes(alone.handle(name).poll(), shared.handle(name).poll())
        if answers:
            assert_same_rows(alone.handle(name).answer(), shared.handle(name).answer())


def test_joins_below_views_and_queries_with_changes_share() -> None:
    engine = made("on", "auto")
    body = "FROM A, B WHERE A.k = B.k"
    engine.query(f"SELECT A.v, B.v AS w {body} WINDOW 3 SECONDS EMIT CHANGES", name="plain")
    engine.query(f"SELECT COUNT(*) AS n {body} WINDOW 9 SECONDS", name="count")
    engine.query(
        "SELECT DISTINCT B.v FROM B, A WHERE A.k = B.k AND A.j > 1 WINDOW 5 SECONDS",
        name="distinct",
    )
    assert len(engine.dataflow.joins()) == 1
    pipeline = engine.dataflow.queries["count"]
    assert isinstance(pipeline, RunningPipeline)
    assert pipeline.leaves[0].shares_with() == ["plain", "count/1", "distinct/1"]
    assert "one join for plain, count/1, distinct/1" in engine.explain("distinct")
    for name in ("count", "plain", "distinct"):
        engine.drop(name)
    assert not engine.dataflow.joins()


def test_the_same_sub_plan_is_run_once() -> None:
    engine = made("on", "auto")
    for number, sql in enumerate(SAME[:3]):
        engine.query(sql, name=f"q{number}")
    running = [
        pipeline
        for pipeline in engine.dataflow.queries.values()
        if isinstance(pipeline, RunningPipeline)
    ]
    assert len({id(leaf) for pipeline in running for leaf in pipeline.leaves}) == 2, (
        "one join, and A alone"
    )
    assert [pipeline.shared() for pipeline in running] == [
        [True],
        [True, False, False],
        [True, False],
    ]
    assert "run once for all queries that have it" in engine.explain("q0")
    subplans = engine.dataflow.groups.active[0]._subplans
    engine.push("A", [(0, 1, 1, SECOND)])
    engine.advance(SECOND)
    engine.query(SAME[0], name="later")
    later = engine.dataflow.queries["later"]
    assert isinstance(later, RunningPipeline)
    assert later.shared() == [False], "rows have come that the others count and it does not"
    engine.drop("q0")
    engine.push("B", [(0, 2, 2, 2 * SECOND)])
    engine.advance(2 * SECOND)
    assert engine.handle("q1").answer().to_pylist() == [{"n": 1}]
    for name in ("q1", "q2", "later"):
        engine.drop(name)
    assert not engine.dataflow.joins()
    assert not subplans._users
    assert not subplans.steps._known


@given(stories())
def test_an_engine_in_the_background_gives_the_same(story: list[tuple[str, object]]) -> None:
    """Queries that emit inserts may share the join and are scheduled beside the others."""
    engines = made("on", "auto"), made("off", "auto")
    engines[0].start()
    names: list[str] = []
    clock = 0
    for engine in engines:
        engine.query(
            "SELECT A.v, B.v AS w FROM A, B WHERE A.k = B.k WINDOW 2 SECONDS", name="small"
        )
        engine.query(
            "SELECT A.v, B.v AS w FROM A, B WHERE A.k = B.k WINDOW 6 SECONDS", name="large"
        )
    for number, (what, detail) in enumerate(story):
        if what == "add":
            note(f"q{number}: {detail}")
            names.append(f"q{number}")
            for engine in engines:
                engine.query(str(detail), name=names[-1])
        elif isinstance(detail, list):
            clock = push_rows(engines, what, detail, number, clock)
    for engine in engines:
        engine.advance((clock + 3) * SECOND)
    engines[0].stop()
    check(engines, ["small", "large", *names], answers=True)
