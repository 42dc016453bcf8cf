"""Rows with their own ends: results and answers are those of the oracle, under every strategy."""

from __future__ import annotations

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import muntin
from muntin.plan.query import Emit
from muntin.sql.script import read_query
from muntin.testing.case import Case, Event
from muntin.testing.compare import assert_same_changes, assert_same_rows
from muntin.testing.golden import StreamDeclaration

SECOND = 1_000_000
STREAMS = (
    StreamDeclaration(
        "A", (("k", "INTEGER"), ("u", "TIMESTAMP"), ("ts", "TIMESTAMP")), "ts", SECOND
    ),
    StreamDeclaration("B", (("k", "INTEGER"), ("ts", "TIMESTAMP")), "ts", 0),
)
QUERIES = (
    "SELECT k, u FROM A [UNTIL u] EMIT CHANGES",
    "SELECT k, COUNT(*) AS n, MAX(u) AS m FROM A [UNTIL u] GROUP BY k",
    "SELECT x.u, y.ts FROM A x [UNTIL u], B y [RANGE 3 SECONDS] WHERE x.k = y.k",
    "SELECT x.u, y.ts FROM A x [UNTIL u], B y [UNBOUNDED] WHERE x.k = y.k EMIT CHANGES",
    "SELECT x.u, y.u AS v FROM A x [UNTIL u], A y [UNTIL u] WHERE x.k = y.k EMIT CHANGES",
    "SELECT COUNT(*) AS n FROM A x [UNTIL u], TUMBLE(B, 4 SECONDS) AS y WHERE x.k <= y.k",
    "SELECT x.k, y.window_end FROM A x [UNTIL u], TUMBLE(B, 4 SECONDS) AS y WHERE x.k = y.k",
    (
        "SELECT x.ts, y.window_end FROM TUMBLE(A, 3 SECONDS) AS x, TUMBLE(B, 4 SECONDS) AS y "
        "WHERE x.k = y.k EMIT CHANGES"
    ),
    (
        "SELECT x.k, x.window_end FROM HOP(A, 2 SECONDS, 4 SECONDS) x, TUMBLE(B, 2 SECONDS) y "
        "WHERE x.window_end = y.window_end"
    ),
    "SELECT k FROM A [UNTIL u] EXCEPT SELECT k FROM HOP(B, 2 SECONDS, 6 SECONDS)",
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw rows of two streams, and a query over them."""
    second = st.integers(0, 11)
    rows = draw(st.lists(st.tuples(second, st.integers(1, 2), second, st.integers(0, 9))))
    arrived = []
    for time, key, until, kind in rows:
        end = None if kind == 0 else until * SECOND + kind
        values, delay = ((key, end), kind % 2) if kind % 3 else ((key,), 0)
        event = Event("A" if kind % 3 else "B", time * SECOND, values)
        arrived.append((time + delay, event))
    events = tuple(event for _, event in sorted(arrived, key=lambda one: one[0]))
    cuts = draw(st.lists(st.integers(0, len(events)), max_size=3, unique=True))
    every = draw(st.sampled_from(["", "", " EVERY 3 SECONDS"]))
    query = draw(st.sampled_from(QUERIES))
    return Case(STREAMS, (), f"{query}{every}", events, tuple(sorted(cuts)))


@pytest.mark.parametrize("strategy", ["probing", "negative"])
@given(case=cases(), beyond=st.integers(0, 8))
def test_results_and_answers_equal_the_oracle(strategy: str, case: Case, beyond: int) -> None:
    note(f"{case.query}\n{case.events}\n{case.cuts}")
    engine = muntin.Engine(pipeline=strategy)
    for statement in case.declarations:
        engine.execute(statement)
    q = engine.query(case.query, name="q")
    end = case.end + beyond * SECOND
    for stream, rows in case.batches():
        engine.push(stream, rows)
    engine.advance(end)
    query = read_query(case.query, "q", case.catalog())
    oracle = case.oracle(query, end)
    expected = oracle.inserts(end) if query.emit is Emit.INSERTS else oracle.changes(end)
    assert_same_changes(expected, q.poll())
    assert_same_rows(oracle.answer(end), q.answer())
