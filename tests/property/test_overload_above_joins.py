"""Operators above limited joins: exact over the matches that the limited joins make.

Without a limit they equal the oracle. With one, the changes up to any instant add up to the
operator applied to those matches that the limited join has made and whose rows are inside their
windows; every row that is taken back was there before; and no match is older than FRESHNESS.
"""

from __future__ import annotations

from collections import Counter

import duckdb
import pyarrow as pa
from hypothesis import assume, given
from hypothesis import strategies as st

import muntin
from muntin.errors import SqlError
from muntin.plan.query import Emit
from muntin.sql.script import read_query
from muntin.testing.case import Case
from muntin.testing.compare import assert_same_changes, assert_same_rows
from muntin.testing.pipeline_strategies import pipeline_cases
from muntin.testing.strategies import Shape
from tests.property.test_overload import limits, run

SECOND = 1_000_000
WINDOW = 3
JOIN = "FROM A, B, C WHERE A.k = B.k AND B.k = C.k"
MATCHES = "A.k AS k, A.v + B.v AS v, A.ts AS a, B.ts AS b, C.ts AS c"
ABOVE = {
    "group": "SELECT k, COUNT(*) AS n, SUM(v) AS s, MAX(v) AS m FROM {} GROUP BY k",
    "all": "SELECT COUNT(*) AS n, MIN(v) AS m FROM {}",
    "distinct": "SELECT DISTINCT k, v FROM {}",
    "having": "SELECT v, COUNT(DISTINCT k) AS n FROM {} GROUP BY v HAVING COUNT(*) > 1",
    "union": "SELECT k FROM {} WHERE v > 1 UNION SELECT v FROM {}",
    "except": "SELECT k FROM {} EXCEPT ALL SELECT v FROM {} WHERE v < 2",
}

Rows = list[tuple[str, int, int, int]]
"""The stream, time in microseconds, key and value of each row, by time."""


@st.composite
def rows_of_three_streams(draw: st.DrawFn) -> Rows:
    """Draw rows at distinct times, so that every row completes its own matches."""
    gaps = draw(st.lists(st.sampled_from([50_000, 200_000, 400_000, 2 * SECOND]), max_size=40))
    found, time = [], 0
    for gap in gaps:
        time += gap
        key, value = draw(st.integers(0, 1)), draw(st.integers(0, 3))
        found.append((draw(st.sampled_from("ABC")), time, key, value))
    return found


def engine_of(settings: dict[str, str], sql: str) -> tuple[muntin.Engine, muntin.StandingQuery]:
    engine = muntin.Engine(**settings)
    for name in "ABC":
        engine.execute(f"CREATE STREAM {name} (k INT, v INT, ts TIMESTAMP) WITH (time = 'ts')")
    return engine, engine.query(sql, name="q")


def alive(matches: pa.Table, now: int) -> pa.Table:
    """Return the matches whose rows are all inside their windows at an instant."""
    times = [matches.column(name).cast(pa.int64()).to_pylist() for name in "abc"]
    inside = [min(one) > now - WINDOW * SECOND for one in zip(*times, strict=True)]
    return matches.filter(pa.array(inside, pa.bool_())).select(["k", "v"])


@given(rows_of_three_streams(), limits(), st.sampled_from(sorted(ABOVE)), st.integers(3, 6))
def test_changes_add_up_to_the_operator_over_the_matches_of_the_limited_join(
    rows: Rows, settings: dict[str, str], above: str, fresh: int
) -> None:
    settings = {**settings, "overload": "adapt", "tree": "((A, B), C)"}
    clauses = f"WINDOW {WINDOW} SECONDS FRESHNESS {fresh} SECONDS"
    plain, matching = engine_of(settings, f"SELECT {MATCHES} {JOIN} {clauses}")
    found = f"(SELECT A.k AS k, A.v + B.v AS v {JOIN}) x"
    engine, query = engine_of(settings, f"{ABOVE[above].format(found, found)} {clauses}")
    made: list[pa.Table] = []
    answer: Counter[tuple[object, ...]] = Counter()
    for stream, time, key, value in rows:
        for one in (plain, engine):
            one.push(stream, [(key, value, time)])
            one.advance(time)
        made.append(matching.poll())
        for change in query.poll().to_pylist():
            row = tuple(change.values())[2:]
            if change["_op"] == "+":
                answer[row] += 1
            else:
                answer[row] -= 1
                assert answer[row] >= 0, "only what is there is taken back"
        matches = alive(pa.concat_tables(made), time)
        with duckdb.connect() as oracle:
            oracle.register("matches", matches)
            sql = ABOVE[above].format("matches", "matches")
            assert +answer == Counter(oracle.execute(sql).fetchall())
    for table in made:
        for match in table.to_pylist():
            assert all((match["_ts"] - match[name]).total_seconds() < fresh for name in "abc"), (
                "never stale"
            )
    stats = matching.stats()["overload"]
    assert isinstance(stats, dict)
    assert stats["stale_results"] == 0


@given(
    pipeline_cases(Shape(events=16)),
    st.sampled_from(["", "1000000"]),
    limits(),
)
def test_without_a_limit_all_operators_equal_the_oracle(
    case: Case, resources: str, settings: dict[str, str]
) -> None:
    try:
        query = read_query(case.query, "q", case.catalog())
    except SqlError:
        assume(False)
        raise
    results, q = run(case, {**settings, "overload": "adapt", "resources": resources})
    oracle = case.oracle(query)
    if query.emit is Emit.CHANGES:
        assert_same_changes(oracle.changes(case.end), results)
    assert_same_rows(oracle.answer(case.end), q.answer())
