"""The setting memory_limit: rows that do not fit are refused, and nothing else changes."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import pytest

import muntin
from muntin.errors import MemoryLimitError, SettingError
from muntin.runtime.holdings import bytes_held

SECOND = 1_000_000
COLUMNS = {"k": "bigint", "ts": "timestamp"}
ROW = 16
LIMIT = 100_000


def engine_of(*queries: str, **settings: object) -> muntin.Engine:
    engine = muntin.Engine(clock=None, **settings)
    for name in "AB":
        engine.stream(name, COLUMNS, time="ts")
    for number, sql in enumerate(queries):
        engine.query(sql, name=f"q{number}")
    return engine


def counts(engine: muntin.Engine) -> list[int]:
    stats: Any = engine.stats()
    names = ("rows_in", "rows_late", "rows_waiting", "rows_logged")
    return [stats["streams"]["A"][name] for name in names]


def rows(first: int, count: int) -> list[tuple[int, int]]:
    return [(number, number * SECOND) for number in range(first, first + count)]


def push_until_refused(engine: muntin.Engine, seconds: int) -> MemoryLimitError:
    """Push rows of new keys until a push is refused, each that many seconds after the one before.

    All rows of a push have one time.
    """
    for turn in range(1000):
        instant = (1 + turn * seconds) * SECOND
        try:
            engine.push("A", [(key + 1000 * turn, instant) for key in range(100)])
        except MemoryLimitError as error:
            return error
    raise AssertionError("no push was refused")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM A [UNBOUNDED]",
        "SELECT DISTINCT k FROM A [UNBOUNDED]",
        "SELECT a.k FROM A [UNBOUNDED] AS a, A [ROWS 1] AS b WHERE a.k = b.k",
        "SELECT LIST(k) AS ks FROM A [UNBOUNDED]",
        "SELECT COUNT(*) AS n, window_end FROM SESSION(A, 9 SECONDS) GROUP BY window_end",
    ],
)
def test_an_unbounded_window_is_stopped_at_the_limit(sql: str) -> None:
    engine = engine_of(sql, memory_limit="100 kB")
    refused = push_until_refused(engine, 1)
    assert "memory_limit is 100.0 kB" in refused.fact
    assert re.search(r"of which query q0 holds most, \d+\.\d kB", refused.fact)
    assert "drop it" in refused.hint
    assert bytes_held(engine.dataflow) < 2 * LIMIT, "stores grow in steps"


def test_a_session_that_never_ends_loses_nothing() -> None:
    sql = "SELECT COUNT(*) AS n, MAX(k) AS k FROM SESSION(A, 9 SECONDS)"
    engine = engine_of(sql, memory_limit="400 kB")
    push_until_refused(engine, 1)
    rows_in, _, _, logged = counts(engine)
    assert 100 <= rows_in == logged
    engine.execute("SET memory_limit = '10 MB'")
    engine.push("A", [(-1, 2000 * SECOND)])
    engine.advance(2000 * SECOND)
    assert engine.handle("q0").answer().to_pylist() == [{"n": 1, "k": -1}]
    first = engine.handle("q0").poll().to_pylist()
    assert max(row["n"] for row in first) == rows_in
    engine.dataflow.groups.trim(exactly=True)
    assert counts(engine)[3] == 1


def test_a_refused_push_changes_nothing() -> None:
    sql = "SELECT k, COUNT(*) AS n FROM A GROUP BY k WINDOW 1000 SECONDS"
    limited, free = engine_of(sql, memory_limit="60 kB"), engine_of(sql)
    taken = 100
    with suppress(MemoryLimitError):
        for taken in range(100):
            limited.push("A", rows(100 * taken, 100))
            free.push("A", rows(100 * taken, 100))
    for engine in (limited, free):
        engine.advance(50 * taken * SECOND)
    assert 0 < taken < 40, "a push was refused"
    assert counts(limited) == counts(free)
    assert limited.handle("q0").poll().equals(free.handle("q0").poll())
    assert limited.handle("q0").answer().equals(free.handle("q0").answer())


def test_there_is_room_again_when_rows_leave_their_windows() -> None:
    engine = engine_of("SELECT k FROM A WINDOW 10 SECONDS EMIT CHANGES", memory_limit="40 kB")
    push_until_refused(engine, 0)
    engine.advance(60 * SECOND)
    engine.push("A", [(1, 61 * SECOND)])
    engine.advance(61 * SECOND)
    assert engine.handle("q0").answer().to_pylist() == [{"k": 1}]
    engine.execute("SET memory_limit = '10 MB'")
    engine.push("A", [(number, 62 * SECOND) for number in range(2000)])
    engine.advance(63 * SECOND)
    assert len(engine.handle("q0").answer()) == 2001


def test_rows_that_wait_for_a_silent_stream_are_counted() -> None:
    engine = engine_of(
        "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND", memory_limit="200 kB"
    )
    refused = push_until_refused(engine, 1)
    assert "of which stream A holds most" in refused.fact
    assert "Its rows wait for other streams" in refused.hint
    engine.advance(10_000 * SECOND)
    engine.push("A", rows(10_001, 100))


def test_a_push_larger_than_the_limit_is_refused_on_an_empty_engine() -> None:
    engine = engine_of(memory_limit=f"{10 * ROW} b")
    engine.push("A", rows(1, 5))
    with pytest.raises(MemoryLimitError, match=r"a push of 320 bytes to stream A was refused"):
        engine.push("A", rows(6, 20))


def test_the_limit_is_restored_with_the_engine(tmp_path: object) -> None:
    engine = engine_of("SELECT k FROM A [UNBOUNDED] EMIT CHANGES", memory_limit="10 kB")
    engine.push("A", rows(1, 5))
    engine.checkpoint(str(tmp_path))
    again = muntin.Engine.restore(str(tmp_path), clock=None)
    with pytest.raises(MemoryLimitError):
        again.push("A", rows(6, 1000))


@pytest.mark.parametrize("value", ["much", "-1", "0", "1 TB"])
def test_impossible_limits_are_refused(value: str) -> None:
    with pytest.raises(SettingError):
        muntin.Engine(memory_limit=value)
