"""A failing query affects no other query: bad rows are NULL, and only it is suspended."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest

import muntin
from muntin.expressions import duck as ducks
from muntin.runtime.holdings import rows_held

SECOND = 1_000_000
COLUMNS = {"k": "bigint", "g": "bigint", "s": "varchar", "ts": "timestamp"}
MARK = 777_001
"""A number that only occurs in expressions that are made to fail."""

Break = Callable[[BaseException], None]


def suspended(engine: muntin.Engine) -> set[str]:
    return {query.name for query in engine.queries() if query.stats()["suspended"] is not None}


@pytest.fixture
def engine() -> muntin.Engine:
    engine = muntin.Engine()
    for name in "ABC":
        engine.stream(name, COLUMNS, time="ts")
    return engine


@pytest.fixture
def break_marked(monkeypatch: pytest.MonkeyPatch) -> Break:
    """Make DuckDB refuse every expression that contains MARK from now on, for any rows."""
    run = ducks._run

    def start(error: BaseException) -> None:
        def broken(connection: duckdb.DuckDBPyConnection, sql: str, tables: Any) -> Any:
            if str(MARK) in sql:
                raise error
            return run(connection, sql, tables)

        monkeypatch.setattr(ducks, "_run", broken)

    return start


def refused() -> duckdb.Error:
    return duckdb.BinderException("Binder Error: nothing works")


def rows(*values: tuple[int, int, str]) -> list[tuple[int, int, str, int]]:
    return [(*value, second * SECOND) for second, value in enumerate(values, 1)]


def push(engine: muntin.Engine, second: int, streams: str = "ABC", k: int = 1) -> None:
    for name in streams:
        engine.push(name, [(k, 2, "3", second * SECOND)])
    engine.advance(second * SECOND)


def values(query: Any) -> list[tuple[object, ...]]:
    return [tuple(row.values())[2:] for row in query.poll().to_pylist()]


# -- rows that cannot be evaluated -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT CAST(s AS INT) AS a, CAST(s AS INT) + 1 AS b FROM A WINDOW 1 MINUTE",
            [(5, 6), (None, None), (7, 8)],
        ),
        (
            "SELECT k FROM A WHERE CAST(s AS INT) > 1 AND CAST(s AS INT) < 100 WINDOW 1 MINUTE",
            [(1,), (3,)],
        ),
        (
            "SELECT k % g AS a, k % g + 1 AS b FROM A WINDOW 1 MINUTE",
            [(0, 1), (None, None), (1, 2)],
        ),
        (
            (
                "SELECT sum(CAST(s AS INT)) AS a, count(CAST(s AS INT) + 1) AS b FROM A "
                "WINDOW 1 MINUTE"
            ),
            [(12, 2)],
        ),
        (
            (
                "SELECT s, sum(k) AS t FROM A GROUP BY s "
                "HAVING CAST(s AS INT) > 5 AND CAST(s AS INT) < 9 WINDOW 1 MINUTE"
            ),
            [("7", 3)],
        ),
        (
            (
                "SELECT a + 1 AS b, a + 1 + k AS c FROM (SELECT CAST(s AS INT) AS a, k "
                "FROM A) t WINDOW 1 MINUTE"
            ),
            [(6, 7), (None, None), (8, 11)],
        ),
    ],
)
def test_bad_rows_are_null_and_counted(
    engine: muntin.Engine, sql: str, expected: list[tuple[object, ...]]
) -> None:
    healthy = engine.query("SELECT k FROM A WINDOW 1 MINUTE")
    query = engine.query(sql)
    engine.push("A", rows((1, 1, "5"), (2, 0, "x"), (3, 2, "7")))
    engine.advance(4 * SECOND)
    found = query.answer()
    assert [tuple(row.values()) for row in found.to_pylist()] == expected
    assert values(healthy) == [(1,), (2,), (3,)]
    counted = [query.stats(), *query.stats().get("leaves", [])]  # type: ignore[misc]
    assert sum(count["expression_failures"] for count in counted) >= 1
    assert query.stats()["suspended"] is None


def test_join_keys_of_mixed_types(engine: muntin.Engine) -> None:
    query = engine.query(
        "SELECT x.k AS a, z.k AS b FROM A x, B y, C z WHERE x.k = y.s AND z.k = y.s WINDOW 1 MINUTE"
    )
    for name in "AC":
        engine.push(name, rows((1, 1, ""), (2, 1, ""), (3, 1, "")))
    engine.push("B", rows((0, 0, "1"), (0, 0, "x"), (0, 0, "3")))
    engine.advance(4 * SECOND)
    assert sorted(values(query)) == [(1, 1), (3, 3)]
    assert query.stats()["expression_failures"] == 9  # the bad row with each pair of the others


def test_a_fatal_error_of_duckdb_costs_no_results(
    engine: muntin.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an internal error DuckDB accepts no further query on the connection."""
    dead: list[duckdb.DuckDBPyConnection] = []
    run, calls = ducks._run, iter(range(1_000))

    def failing(connection: duckdb.DuckDBPyConnection, sql: str, tables: Any) -> Any:
        if any(connection is one for one in dead) or next(calls) in {1, 4, 5}:
            dead.append(connection)
            raise duckdb.FatalException("FATAL Error: database has been invalidated")
        return run(connection, sql, tables)

    query = engine.query("SELECT k + g AS a FROM A WHERE s <> '' WINDOW 1 MINUTE")
    monkeypatch.setattr(ducks, "_run", failing)
    for second in range(1, 6):
        push(engine, second, "A", k=second)
    assert values(query) == [(3,), (4,), (5,), (6,), (7,)]
    assert query.stats()["expression_failures"] == 0
    assert len(dead) >= 2


# -- queries that cannot be evaluated --------------------------------------------------------------


def test_only_the_failing_query_is_suspended(
    engine: muntin.Engine, break_marked: Break, caplog: pytest.LogCaptureFixture
) -> None:
    before = engine.query("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 MINUTE", name="before")
    failing = engine.query(
        f"SELECT A.k + {MARK} AS v FROM A, B WHERE A.k = B.k WINDOW 10 SECONDS", name="failing"
    )
    after = engine.query(
        "SELECT A.k + 1 AS v FROM A, B WHERE A.k = B.k WINDOW 30 SECONDS", name="after"
    )
    counting = engine.query("SELECT count(*) AS n FROM A WINDOW 1 MINUTE", name="counting")
    push(engine, 1)
    break_marked(refused())
    with caplog.at_level(logging.WARNING, "muntin"):
        push(engine, 2, k=2)
        push(engine, 3, k=3)
    assert values(before) == [(1,), (2,), (3,)]
    assert values(after) == [(2,), (3,), (4,)]
    assert values(counting)[-1] == (3,)
    assert values(failing) == [(1 + MARK,)]
    with pytest.raises(
        muntin.QuerySuspendedError, match=r"query failing is suspended: .*nothing works.*Drop it"
    ):
        failing.poll()
    with pytest.raises(muntin.QuerySuspendedError):
        failing.answer()
    assert "nothing works" in str(failing.stats()["suspended"])
    assert failing.stats().keys() == after.stats().keys()
    assert "suspended: " in failing.explain()
    assert "suspended" not in after.explain()
    assert sum("suspended" in record.message for record in caplog.records) == 1
    assert suspended(engine) == {"failing"}


def test_a_suspended_query_can_be_dropped_and_registered_again(
    engine: muntin.Engine, break_marked: Break, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = engine.query(f"SELECT k + {MARK} AS v FROM A WINDOW 1 MINUTE", name="q")
    break_marked(refused())
    push(engine, 1, "A")
    monkeypatch.undo()
    with pytest.raises(muntin.CatalogError):
        engine.query("SELECT k FROM A WINDOW 1 MINUTE", name="q")
    engine.drop("q")
    query = engine.query(f"SELECT k + {MARK} AS v FROM A WINDOW 1 MINUTE", name="q")
    push(engine, 2, "A", k=5)
    assert values(query) == [(5 + MARK,)]


def test_queries_that_share_a_failing_join_fail_with_it(
    engine: muntin.Engine, break_marked: Break
) -> None:
    condition = f"A.k + {MARK} = B.k + {MARK}"
    sharing = [
        engine.query(
            f"SELECT A.k FROM A, B WHERE {condition} WINDOW {size} SECONDS", name=f"q{size}"
        )
        for size in (10, 20)
    ]
    healthy = engine.query("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 10 SECONDS")
    push(engine, 1)
    break_marked(refused())
    push(engine, 2, k=2)
    for query in sharing:
        assert values(query) == [(1,)]
        with pytest.raises(muntin.QuerySuspendedError, match="nothing works"):
            query.poll()
    assert values(healthy) == [(1,), (2,)]
    push(engine, 3, k=3)
    assert values(healthy) == [(3,)]


def test_a_failing_view_does_not_affect_those_that_share_its_steps(
    engine: muntin.Engine, break_marked: Break
) -> None:
    group = "SELECT k, count(*) AS n FROM A GROUP BY k"
    plain = engine.query(f"SELECT n FROM ({group}) t WINDOW 1 MINUTE", name="plain")
    failing = engine.query(
        f"SELECT n + {MARK} AS v FROM ({group}) t WINDOW 1 MINUTE", name="failing"
    )
    having = engine.query(
        f"{group} HAVING count(*) > 0 AND k + {MARK} > 0 WINDOW 1 MINUTE", name="having"
    )
    push(engine, 1, "A")
    break_marked(refused())
    push(engine, 2, "A")
    push(engine, 3, "A")
    assert plain.answer().to_pylist() == [{"n": 3}]
    for query in (failing, having):
        assert len(query.poll())
        with pytest.raises(muntin.QuerySuspendedError):
            query.poll()
    push(engine, 4, "A", k=9)
    assert sorted(row["n"] for row in plain.answer().to_pylist()) == [1, 3]


def test_views_above_a_failing_join_fail_with_it(
    engine: muntin.Engine, break_marked: Break
) -> None:
    failing = [
        engine.query(f"SELECT {what} AS v FROM A WHERE k + {MARK} > 0 WINDOW 1 MINUTE")
        for what in ("count(*)", "sum(k)")
    ]
    healthy = engine.query("SELECT count(*) AS v FROM A WINDOW 1 MINUTE")
    push(engine, 1, "A")
    break_marked(refused())
    push(engine, 2, "A")
    for query in failing:
        assert len(query.poll())
        with pytest.raises(muntin.QuerySuspendedError):
            query.poll()
    assert healthy.answer().to_pylist() == [{"v": 2}]


def test_a_step_that_fails_for_several_views_suspends_all_of_them(
    engine: muntin.Engine, break_marked: Break
) -> None:
    inner = f"SELECT k, sum(g + {MARK}) AS n FROM A GROUP BY k HAVING sum(g) + {MARK} > 0"
    failing = [
        engine.query(f"SELECT {what} AS v FROM ({inner}) t WINDOW 1 MINUTE")
        for what in ("n", "n + 1")
    ]
    push(engine, 1, "A")
    break_marked(refused())
    push(engine, 2, "A")
    for query in failing:
        query.poll()
        with pytest.raises(muntin.QuerySuspendedError):
            query.poll()


def test_any_exception_suspends_only_its_query(engine: muntin.Engine, break_marked: Break) -> None:
    failing = engine.query(f"SELECT k + {MARK} AS v FROM A WINDOW 1 MINUTE", name="failing")
    healthy = engine.query("SELECT k + 1 AS v FROM A WINDOW 1 MINUTE")
    break_marked(ZeroDivisionError("a mistake of ours"))
    push(engine, 1, "A")
    with pytest.raises(muntin.QuerySuspendedError, match="ZeroDivisionError: a mistake of ours"):
        failing.poll()
    assert values(healthy) == [(2,)]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_interrupts_are_not_swallowed(
    engine: muntin.Engine, break_marked: Break, error: type[BaseException]
) -> None:
    engine.query(f"SELECT k + {MARK} AS v FROM A WINDOW 1 MINUTE")
    break_marked(error())
    with pytest.raises(error):
        push(engine, 1, "A")
    assert suspended(engine) == set()


def test_a_suspended_query_holds_neither_rows_nor_time(
    engine: muntin.Engine, break_marked: Break
) -> None:
    failing = engine.query(
        f"SELECT A.k + {MARK} AS v FROM A, B WHERE A.k = B.k WINDOW 1 HOUR", name="failing"
    )
    healthy = engine.query("SELECT k FROM A WINDOW 1 SECOND")
    push(engine, 1, "AB")
    break_marked(refused())
    push(engine, 2, "AB")
    for second in range(3, 60):
        engine.push(
            "A", [(second, 0, "", second * SECOND)]
        )  # B is silent: only the suspended query reads it
    assert len(healthy.poll()) == 59
    assert rows_held(engine.dataflow) < 10
    assert len(failing.poll()) == 1
    queries = engine.stats()["queries"]
    assert queries.keys() == {"failing", healthy.name}  # type: ignore[attr-defined]


# -- an engine in the background -----------------------------------------------------------------


@pytest.fixture
def live(engine: muntin.Engine) -> Iterator[muntin.Engine]:
    engine.start()
    yield engine
    engine.stop()


def test_a_live_engine_suspends_only_the_failing_query(
    live: muntin.Engine, break_marked: Break
) -> None:
    small = live.query("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS", name="small")
    failing = live.query(
        f"SELECT A.k + {MARK} AS v FROM A, B WHERE A.k = B.k WINDOW 10 SECONDS", name="failing"
    )
    large = live.query(
        "SELECT A.k + 1 AS v FROM A, B WHERE A.k = B.k WINDOW 1 MINUTE", name="large"
    )
    counting = live.query(
        f"SELECT count(*) AS n FROM A WHERE k + {MARK} > 0 WINDOW 1 MINUTE", name="counting"
    )
    push(live, 1)
    assert live.settle(30)
    break_marked(refused())
    for second in range(2, 6):
        push(live, second, k=second)
        assert live.settle(30)
    assert values(small) == [(1,), (2,), (3,), (4,), (5,)]
    assert values(large) == [(2,), (3,), (4,), (5,), (6,)]
    assert values(failing) == [(1 + MARK,)]
    assert suspended(live) == {"failing", "counting"}
    counting.poll()
    for query in (failing, counting):
        with pytest.raises(muntin.QuerySuspendedError):
            query.poll()


def test_a_live_engine_continues_when_a_shared_join_fails(
    live: muntin.Engine, break_marked: Break
) -> None:
    condition = f"A.k + {MARK} = B.k + {MARK}"
    sharing = [
        live.query(f"SELECT A.k FROM A, B WHERE {condition} WINDOW {size} SECONDS")
        for size in (10, 20)
    ]
    healthy = live.query("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 10 SECONDS")
    push(live, 1)
    assert live.settle(30)
    break_marked(refused())
    for second in range(2, 5):
        push(live, second, k=second)
        assert live.settle(30)
    assert values(healthy) == [(1,), (2,), (3,), (4,)]
    assert suspended(live) == {query.name for query in sharing}
