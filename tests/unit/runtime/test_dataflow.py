"""A dataflow yields results while it works, and keeps response times for its driver."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa

from muntin.model.catalog import Stream
from muntin.operators.join.schedule import TurnPace
from muntin.runtime import running_join
from muntin.runtime.dataflow import Dataflow, Frontier
from muntin.runtime.holdings import take_measures
from muntin.testing.dataflows import batches_of, dataflow_of

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
SECOND = 1_000_000
Outputs = list[tuple[str, pa.Table]]


def dataflow_with(*queries: str) -> Dataflow:
    streams = [Stream(name, SCHEMA, "ts") for name in "AB"]
    return dataflow_of(streams, {f"q{number}": sql for number, sql in enumerate(queries)})


def fed(
    dataflow: Dataflow, count: int, pace: TurnPace | None = None, arrival: float = 0.0
) -> Outputs:
    rows = pa.table(
        [pa.array(range(count)), pa.array(range(count)).cast(pa.timestamp("us"))], schema=SCHEMA
    )
    batches = batches_of(dataflow, {"A": rows, "B": rows}, arrival)
    return list(dataflow.step(batches, Frontier(final=(count - 1, 1)), pace))


def test_results_arrive_in_pieces_during_the_work(monkeypatch: Any) -> None:
    monkeypatch.setattr(running_join, "_PACED_SLICE", 10)
    dataflow, twin = (
        dataflow_with(
            "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND",
            "SELECT k FROM A WINDOW 1 SECOND EMIT CHANGES",
        )
        for _ in range(2)
    )
    rows = pa.table(
        [pa.array(range(50)), pa.array(range(50)).cast(pa.timestamp("us"))], schema=SCHEMA
    )
    batches = batches_of(dataflow, {"A": rows, "B": rows})
    came: Outputs = []
    reads: list[Any] = []
    for output in dataflow.step(batches, Frontier(final=(49, 1)), TurnPace()):
        came.append(output)
        reads.append(dataflow.queries["q0"].stats()["rows_in"])
    came += dataflow.step(frontier=Frontier(advanced=10_000_000), pace=TurnPace())
    pieces = [table for query, table in came if query == "q0"]
    assert len(pieces) >= 5
    assert reads[0] < reads[4] <= 100, "it was not done yet"
    at_once = fed(twin, 50)
    at_once += twin.step(frontier=Frontier(advanced=10_000_000))
    together = [table for query, table in at_once if query == "q0"]
    assert pa.concat_tables(pieces).equals(pa.concat_tables(together))
    changes = pa.concat_tables([table for query, table in came if query == "q1"])
    assert changes.equals(pa.concat_tables([table for query, table in at_once if query == "q1"]))
    assert sorted(changes.column("_op").to_pylist()) == ["+"] * 50 + ["-"] * 50


def test_response_times_begin_with_the_given_arrival_and_are_taken_once() -> None:
    dataflow = dataflow_with("SELECT k FROM A WINDOW 1 SECOND", "SELECT k FROM B WINDOW 1 SECOND")
    fed(dataflow, 5, arrival=time.monotonic() - 100)
    taken = take_measures(dataflow)
    assert {name: times.count for name, (times, _) in taken.items()} == {"q0": 5, "q1": 5}
    assert all(100 < times.stats()["mean"] < 200 for times, _ in taken.values())
    assert [times.count for times, _ in take_measures(dataflow).values()] == [0, 0]


def test_a_replay_changes_the_state_and_its_results_do_not_count() -> None:
    dataflow = dataflow_with("SELECT k, COUNT(*) AS n FROM A GROUP BY k WINDOW 10 SECONDS")
    times = pa.array([0, 3 * SECOND]).cast(pa.timestamp("us"))
    rows = pa.table([pa.array([1, 1]), times], schema=SCHEMA)
    batches = batches_of(dataflow, {"A": rows})
    first = sum(len(table) for _, table in dataflow.step(batches, Frontier(final=(3 * SECOND, 0))))
    dataflow.replay({}, Frontier(advanced=5 * SECOND))
    query = dataflow.queries["q0"]
    assert query.answer().to_pylist() == [{"k": 1, "n": 2}]
    later = [table for _, table in dataflow.step(frontier=Frontier(advanced=20 * SECOND))]
    assert pa.concat_tables(later).column("_op").to_pylist() == ["-", "+", "-"]
    assert query.stats()["rows_out"] == first + 3
