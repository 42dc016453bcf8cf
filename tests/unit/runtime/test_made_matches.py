"""Snapshots have the matches that a limited join has made, and only those are found again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

import muntin
from muntin.model.catalog import Stream
from muntin.operators.join import Matches
from muntin.operators.join.probe_limiter import Budgets
from muntin.runtime.dataflow import Dataflow, Frontier
from muntin.runtime.made_matches import MadeMatches
from muntin.runtime.overload import Overload
from muntin.testing.dataflows import batches_of, dataflow_of


def test_only_matches_of_the_set_pass() -> None:
    positions = np.array([[0, 1, 2], [5, 5, 6]])
    found = Matches(np.array([1, 2, 3]), None, positions, 0.0)
    made = MadeMatches(np.array([[1, 2, 9], [5, 6, 6]]))
    assert made.of(found).positions.tolist() == [[1, 2], [5, 6]]
    assert made.of(found).times.tolist() == [2, 3]
    assert len(MadeMatches(np.empty((2, 0), np.int64)).of(found)) == 0


SECOND = 1_000_000
SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
SQL = "SELECT A.k, COUNT(*) AS n FROM A, B WHERE A.k = B.k GROUP BY A.k WINDOW 3 SECONDS"


def limited() -> Dataflow:
    streams = [Stream(name, SCHEMA, "ts") for name in "AB"]
    queries = {"q": f"{SQL} EMIT CHANGES"}
    return dataflow_of(streams, queries, partition=True, overload="adapt", sharing="off")


def changes(dataflow: Dataflow, instant: int) -> list[tuple[object, ...]]:
    return [
        (row["_op"], row["k"], row["n"])
        for _, table in dataflow.step(frontier=Frontier(advanced=instant))
        for row in table.to_pylist()
    ]


def test_a_snapshot_restores_the_matches_that_were_made_and_no_others() -> None:
    before = limited()
    (quota,) = before.quotas().values()
    quota.limit(Budgets((None, 1.0)))
    rows = {
        name: pa.table([[1] * 3, pa.array(times).cast(pa.timestamp("us"))], schema=SCHEMA)
        for name, times in (("A", [0, 1, 2]), ("B", [3, 4, 5]))
    }
    for _ in before.step(batches_of(before, rows), Frontier(final=(-1, -1))):
        pass
    assert changes(before, SECOND) == [("+", 1, 3)], "one of three rows of B may probe"
    snapshot = before.snapshot()
    assert {name: made.tolist() for name, made in snapshot.queries["q"].made.items()} == {
        "q/1": [[2, 1, 0], [0, 0, 0]]
    }
    after = limited()
    after.restore(snapshot)
    gone = changes(before, 4 * SECOND)
    assert gone[-1] == ("-", 1, 1)
    assert changes(after, 4 * SECOND) == gone


def test_an_engine_that_is_restored_takes_back_what_its_limited_join_has_made(
    tmp_path: Path,
) -> None:
    engine = muntin.Engine(overload="adapt")
    for name in "AB":
        engine.execute(f"CREATE STREAM {name} (k BIGINT, ts TIMESTAMP) WITH (time = 'ts')")
    engine.query(f"{SQL} EMIT CHANGES", name="q")
    (join,) = engine.dataflow.joins()
    assert isinstance(join.overload, Overload)
    join.overload.limiter.set_budgets(Budgets((None, 1.0)))
    engine.push("A", [(1, 100_000 + time) for time in range(3)])
    engine.push("B", [(1, 100_003 + time) for time in range(3)])
    engine.advance(SECOND)
    assert engine.handle("q").poll().to_pylist()[-1]["n"] == 3, "one of three rows of B may probe"
    engine.checkpoint(tmp_path)
    restored = muntin.Engine.restore(tmp_path)
    for each in (engine, restored):
        each.advance(5 * SECOND)
    gone = engine.handle("q").poll().to_pylist()
    assert [(row["_op"], row["n"]) for row in gone[:1]] == [("-", 3)]
    assert restored.handle("q").poll().to_pylist() == gone
