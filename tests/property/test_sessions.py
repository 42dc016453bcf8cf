"""Sessions: results and answers are those of the oracle, on partitions and after restarts too."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import muntin
from muntin.plan.query import Emit
from muntin.sql.script import read_query
from muntin.testing.case import Case, Event
from muntin.testing.compare import assert_same_changes, assert_same_rows
from muntin.testing.golden import StreamDeclaration
from tests.property.case_runs import describe
from tests.property.test_pipelines_on_partitions import EVENTS, on_partitions

SECOND = 1_000_000
COLUMNS = (("k", "INTEGER"), ("v", "INTEGER"), ("ts", "TIMESTAMP"))
STREAMS = tuple(StreamDeclaration(name, COLUMNS, "ts", SECOND) for name in "AB")
BOUNDS = "CAST(epoch(window_start) AS INT) AS s, CAST(epoch(window_end) AS INT) AS e"
QUERIES = (
    f"SELECT k, v, {BOUNDS} FROM SESSION(A, 2 SECONDS, k)",
    "SELECT k, v, window_end FROM SESSION(A, 1 SECONDS) EMIT INSERTS",
    "SELECT k, window_end, COUNT(*) AS n, MAX(v) AS m FROM SESSION(A, 2 SECONDS, k) GROUP BY ALL",
    (
        "SELECT k, window_start, SUM(v) AS s FROM SESSION(A, 1 SECONDS, k)"
        " GROUP BY k, window_start, window_end HAVING epoch(window_end) % 2 = 0"
    ),
    "SELECT v, window_end, COUNT(*) AS n FROM SESSION(A, 2 SECONDS, k) GROUP BY v, window_end",
    "SELECT window_end, COUNT(*) AS n FROM SESSION(A, 500 ms) GROUP BY window_end",
    (
        "SELECT k, window_end, COUNT(*) AS n FROM SESSION(A, 2 SECONDS, k) WHERE v > 1"
        " GROUP BY k, window_end"
    ),
    "SELECT k, window_start, COUNT(*) FROM SESSION(A, 2 SECONDS, k) WHERE v > 1 GROUP BY ALL",
    "SELECT COUNT(*) AS n, COUNT(DISTINCT k) AS d FROM SESSION(A, 3 SECONDS, k, v)",
    (
        "SELECT n, COUNT(*) AS c FROM (SELECT COUNT(*) AS n FROM SESSION(A, 2 s, k) GROUP BY k) g"
        " GROUP BY n"
    ),
    (
        "SELECT x.k, x.v, y.v AS w FROM SESSION(A, 1 SECONDS, k) x, B y [RANGE 2 SECONDS]"
        " WHERE x.k = y.k"
    ),
    (
        "SELECT x.v, y.v AS w, x.window_end FROM SESSION(A, 1 SECONDS, k) x"
        " LEFT JOIN SESSION(B, 2 SECONDS, k) y ON x.k = y.k AND x.window_start <= y.window_end"
    ),
    (
        "SELECT k, v FROM SESSION(A, 2 SECONDS, k)"
        " QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) = 1"
    ),
    (
        "SELECT DISTINCT k, window_end FROM SESSION(A, 1 SECONDS, k)"
        " EXCEPT SELECT k, window_end FROM SESSION(B, 1 SECONDS, k)"
    ),
)
FINAL = (
    "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM SESSION(A, 2 SECONDS, k) GROUP BY k, window_end",
    "SELECT v, COUNT(*) AS n FROM SESSION(A, 1 SECONDS, k) WHERE v > 0 GROUP BY v, window_end",
    "SELECT k, v FROM SESSION(A, 500 ms)",
    (
        "SELECT n, COUNT(*) AS c FROM (SELECT k, window_end, COUNT(*) AS n FROM SESSION(A, 2 s, k)"
        " GROUP BY ALL) AS g GROUP BY n, window_end"
    ),
    (
        "SELECT x.k, x.v, y.v AS w FROM SESSION(A, 1 SECONDS, k) x JOIN SESSION(B, 1 SECONDS, k) y"
        " ON x.k = y.k AND x.window_end = y.window_end"
    ),
)


@st.composite
def cases(draw: st.DrawFn, query: str) -> Case:
    """Draw rows of two streams, late by up to the slack."""
    rows = draw(
        st.lists(
            st.tuples(
                st.sampled_from("AAB"),
                st.integers(0, 9 * 4),
                st.integers(1, 2) | st.none(),
                st.integers(0, 3),
                st.sampled_from([0, 0, SECOND]),
            ),
            max_size=18,
        )
    )
    events = [
        (quarters * SECOND // 4 + delay, Event(stream, quarters * SECOND // 4, (key, value)))
        for stream, quarters, key, value, delay in rows
    ]
    arrived = tuple(event for _, event in sorted(events, key=lambda one: one[0]))
    cuts = draw(st.lists(st.integers(0, len(arrived)), max_size=3, unique=True))
    return Case(STREAMS, (), query, arrived, tuple(sorted(cuts)))


def engine_of(case: Case, strategy: str) -> tuple[muntin.Engine, muntin.StandingQuery]:
    engine = muntin.Engine(pipeline=strategy)
    for statement in case.declarations:
        engine.execute(statement)
    return engine, engine.query(case.query, name="q")


@pytest.mark.parametrize("query", QUERIES)
@settings(max_examples=max(8, settings().max_examples // 6), deadline=None)
@given(data=st.data(), beyond=st.integers(0, 6))
def test_results_and_answers_equal_the_oracle(query: str, data: st.DataObject, beyond: int) -> None:
    explicit = "EMIT" in query
    every = "" if explicit else data.draw(st.sampled_from(["", "", " EVERY 3 SECONDS"]))
    case = data.draw(cases(query + every))
    strategy = data.draw(st.sampled_from(["auto", "probing", "negative"]))
    restored = data.draw(st.integers(0, 5))
    note(f"{describe(case)} {strategy} {restored}")
    engine, q = engine_of(case, strategy)
    bound = read_query(case.query, "q", case.catalog())
    until = case.end + beyond * SECOND
    oracle = case.oracle(bound, until)
    found = []
    for number, (stream, rows) in enumerate(case.batches()):
        engine.push(stream, rows)
        found.append(q.poll())
        if number == restored:
            with TemporaryDirectory() as folder:
                engine.checkpoint(Path(folder) / "c")
                engine = muntin.Engine.restore(Path(folder) / "c")
            q = engine.handle("q")
    engine.advance(until)
    found.append(q.poll())
    results = pa.concat_tables(found)
    expected = oracle.inserts(until) if bound.emit is Emit.INSERTS else oracle.changes(until)
    assert_same_changes(expected, results)
    assert_same_rows(oracle.answer(until), q.answer())


@pytest.mark.parametrize("query", FINAL)
@settings(max_examples=max(8, settings().max_examples // 6), deadline=None)
@given(data=st.data(), beyond=st.integers(0, 6))
def test_final_results_equal_the_oracle(query: str, data: st.DataObject, beyond: int) -> None:
    case = data.draw(cases(f"{query} EMIT FINAL"))
    note(describe(case))
    engine, q = engine_of(case, "auto")
    for stream, rows in case.batches():
        engine.push(stream, rows)
    until = case.end + beyond * SECOND
    engine.advance(until)
    oracle = case.oracle(read_query(case.query, "q", case.catalog()))
    assert_same_changes(oracle.changes(until), q.poll())
    assert_same_rows(oracle.answer(until), q.answer())


@pytest.mark.parametrize("query", [*QUERIES, *(f"{one} EMIT FINAL" for one in FINAL)])
@settings(max_examples=max(5, settings().max_examples // 12), deadline=None)
@given(
    data=st.data(), beyond=st.integers(0, 6), partitions=st.sampled_from([1, 2, 5]), events=EVENTS
)
def test_partitions_give_the_results_of_the_oracle(
    query: str, data: st.DataObject, beyond: int, partitions: int, events: dict[int, str]
) -> None:
    case = data.draw(cases(query))
    note(describe(case))
    until = case.end + beyond * SECOND
    bound = read_query(case.query, "q", case.catalog())
    oracle = case.oracle(bound)
    expected = oracle.inserts(until) if bound.emit is Emit.INSERTS else oracle.changes(until)
    assert_same_changes(expected, on_partitions(case, partitions, until, events))
