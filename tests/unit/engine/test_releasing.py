"""Those who feed the engine can have results while it works, and response times to add up themselves."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa

import muntin
from muntin.runtime import running_join

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])


def fed(engine: muntin.Engine, count: int, **options: Any) -> None:
    rows = pa.table(
        [pa.array(range(count)), pa.array(range(count)).cast(pa.timestamp("us"))], schema=SCHEMA
    )
    engine.feed({"A": rows, "B": rows}, (count - 1, 1), **options)


def engine_of(*queries: str) -> muntin.Engine:
    engine = muntin.Engine()
    for name in "AB":
        engine.stream(name, SCHEMA)
    for number, sql in enumerate(queries):
        engine.query(sql, name=f"q{number}")
    return engine


def test_results_come_in_pieces_in_the_middle_of_the_work(monkeypatch: Any) -> None:
    monkeypatch.setattr(running_join, "_PACED_SLICE", 10)
    engine = engine_of(
        "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND",
        "SELECT k FROM A WINDOW 1 SECOND EMIT CHANGES",
    )
    came: list[tuple[str, pa.Table]] = []
    reads: list[Any] = []

    def take(query: str, table: pa.Table) -> None:
        came.append((query, table))
        reads.append(engine.handle("q0").stats()["rows_in"])

    fed(engine, 50, on_release=take)
    engine.advance(10_000_000, on_release=take)
    pieces = [table for query, table in came if query == "q0"]
    assert len(pieces) >= 5
    assert reads[0] < reads[4] <= 100, "it was not done yet"
    assert pa.concat_tables(pieces).equals(engine.handle("q0").poll()), "poll has them all the same"
    changes = pa.concat_tables([table for query, table in came if query == "q1"])
    assert changes.equals(engine.handle("q1").poll())
    assert sorted(changes.column("_op").to_pylist()) == ["+"] * 50 + ["-"] * 50


def test_response_times_begin_with_the_arrival_that_is_told_and_are_taken_once() -> None:
    engine = engine_of("SELECT k FROM A WINDOW 1 SECOND", "SELECT k FROM B WINDOW 1 SECOND")
    fed(engine, 5, arrival=time.monotonic() - 100)
    taken = engine.take_measures()
    assert {name: times.count for name, (times, _) in taken.items()} == {"q0": 5, "q1": 5}
    assert all(100 < times.stats()["mean"] < 200 for times, _ in taken.values())
    assert [times.count for times, _ in engine.take_measures().values()] == [0, 0]


def test_buffers_tell_what_waits_what_windows_hold_and_what_nobody_polled() -> None:
    engine = engine_of(
        "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 3 SECONDS", "SELECT k FROM B WINDOW 1 SECOND"
    )
    rows = [(number, number * 1_000_000) for number in range(10)]
    engine.push("A", rows)
    engine.push("B", rows[:5])
    first, second = (engine.handle(name).stats()["buffers"] for name in ("q0", "q1"))
    unscheduled = {"most_input": 0, "held": 0, "most_held": 0}
    assert first == {"input": 5, "join": 3 + 3, "output": 5, **unscheduled}, (
        "the last five of A are ahead of B"
    )
    assert second == {"input": 0, "join": 1, "output": 5, **unscheduled}
    engine.handle("q0").poll()
    assert engine.take_measures()["q0"][1]["output"] == 0
