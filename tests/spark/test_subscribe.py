"""Subscribers on Spark.

Results arrive before their batch is complete, and again under the same marks when it is retried.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from muntin.errors import CatalogError, RunError
from muntin.spark import Mark, Once, SparkEngine
from muntin.spark.sinks import Sink
from muntin.spark.storage import LocalStorage
from muntin.testing.compare import difference
from muntin.testing.processes import kill, state_servers, workers
from tests.spark.support import CHANGES, JOIN, SCHEMA, SECOND, Folders, rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-1")]

Piece = tuple[Mark, pa.RecordBatch]
FAR = "SELECT A.k FROM A, B WHERE A.v > B.v + 1000000 WINDOW 1 MINUTE"
"""Takes a while, and finds nothing."""


class Taker:
    """A subscriber that records all results, and the new ones separately."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.new: list[pa.RecordBatch] = []
        self.called = threading.Event()
        self._once = Once()

    def __call__(self, batch: pa.RecordBatch, mark: Mark) -> None:
        self.pieces.append((mark, batch))
        self.new.append(self._once.new(batch, mark))
        self.called.set()

    def results(self) -> pa.Table:
        return pa.Table.from_batches(self.new)

    def by_place(self) -> dict[tuple[int, int, int], list[str]]:
        """Return the results received for every place."""
        found: dict[tuple[int, int, int], list[str]] = {}
        for mark, batch in self.pieces:
            for number, row in enumerate(batch.to_pylist()):
                found.setdefault((mark.batch, mark.partition, mark.sequence + number), []).append(
                    str(row)
                )
        return found

    def check_without_gaps(self) -> None:
        """Fail unless the places of each batch and partition are complete, from 0 on."""
        places = sorted(self.by_place())
        counts = Counter((batch, partition) for batch, partition, _ in places)
        assert places == [
            (*where, number) for where in sorted(counts) for number in range(counts[where])
        ]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "in")


@pytest.fixture
def engine(spark: SparkSession, folders: Folders, tmp_path: Path) -> Iterator[SparkEngine]:
    engine = SparkEngine(spark, checkpoint=tmp_path / "state", partitions=2)
    engine.execute(folders.declarations())
    yield engine
    engine.stop()


def fill(folders: Folders, steps: int) -> None:
    for step in range(steps):
        for stream in "AB":
            folders.write(stream, rows([step * 3, step * 3 + 1, step * 3 + 2], start=step * 3))


def wait_for(true: Callable[[], object]) -> None:
    until = time.monotonic() + 60
    while not true():
        assert time.monotonic() < until
        time.sleep(0.01)


class Waiting(Sink):
    """A sink that accepts a batch after a subscriber was called with its results."""

    def __init__(self, called: threading.Event) -> None:
        self._called = called
        self.in_time = False

    def write(self, results: Any, batch: int) -> None:
        del batch
        if len(results):
            self.in_time = self._called.wait(30)


def test_results_arrive_before_the_sink_receives_its_batch(
    engine: SparkEngine, folders: Folders
) -> None:
    fill(folders, 1)
    taker = Taker()
    sink = Waiting(taker.called)
    engine.query(JOIN, name="pairs", sink=sink).subscribe(taker)
    began = time.time()
    engine.process_available()
    assert sink.in_time
    assert all(began < mark.arrived < time.time() for mark, _ in taker.pieces)


def test_subscribers_get_the_same_results_as_sinks(engine: SparkEngine, folders: Folders) -> None:
    fill(folders, 4)
    queries = {"pairs": JOIN, "changes": CHANGES}
    takers = {name: Taker() for name in queries}
    for name, sql in queries.items():
        engine.query(sql, name=name).subscribe(takers[name])
    engine.process_available(until=30 * SECOND)
    folders.check(queries, {name: engine.results(name) for name in queries}, 30 * SECOND)
    for name, taker in takers.items():
        assert not difference(engine.results(name), taker.results()), name
        taker.check_without_gaps()
        assert all(len(found) == 1 for found in taker.by_place().values()), (
            "nothing was tried again"
        )
        assert {mark.batch for mark, _ in taker.pieces} > {0, 1}
        assert taker.pieces[0][1].schema == engine.results(name).schema


ABOVE_JOINS = {
    "grouped": "SELECT A.k, COUNT(*) AS n FROM A, B WHERE A.k = B.k GROUP BY A.k WINDOW 5 SECONDS",
    "distinct": "SELECT DISTINCT A.v FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS",
    "global": "SELECT COUNT(*) AS n, MAX(A.v) AS most FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS",
    "either": "SELECT k FROM A UNION SELECT k FROM B WINDOW 5 SECONDS",
    "snapshot": "SELECT k, COUNT(*) AS n FROM A GROUP BY k WINDOW 5 SECONDS EVERY 2 SECONDS "
    "EMIT SNAPSHOT",
    "inserts": "SELECT DISTINCT v FROM A WINDOW 3 SECONDS EMIT INSERTS",
}
"""Queries whose results may need all partitions."""


def test_subscribers_of_every_kind_of_query_get_the_results_of_its_sink(
    engine: SparkEngine, folders: Folders
) -> None:
    fill(folders, 4)
    takers = {name: Taker() for name in ABOVE_JOINS}
    for name, sql in ABOVE_JOINS.items():
        engine.query(sql, name=name).subscribe(takers[name])
    engine.process_available(until=30 * SECOND)
    folders.check(ABOVE_JOINS, {name: engine.results(name) for name in ABOVE_JOINS}, 30 * SECOND)
    for name, taker in takers.items():
        results = engine.results(name)
        assert len(results), name
        assert not difference(results, taker.results()), name
        taker.check_without_gaps()


@pytest.mark.parametrize("name", ["grouped", "global"])
def test_results_above_joins_arrive_before_the_sink_receives_its_batch(
    engine: SparkEngine, folders: Folders, name: str
) -> None:
    fill(folders, 1)
    taker = Taker()
    sink = Waiting(taker.called)
    engine.query(ABOVE_JOINS[name], name=name, sink=sink).subscribe(taker)
    engine.process_available(until=30 * SECOND)
    assert sink.in_time


def many(seed: int, begin: int, end: int) -> pa.Table:
    """Return rows of some seconds, many of which join."""
    generator = np.random.default_rng(seed)
    times = np.sort(generator.integers(begin * SECOND, end * SECOND, 12_000))
    columns = [generator.integers(0, 3_000, len(times)), np.arange(len(times)), times]
    return pa.table(
        [pa.array(column).cast(field.type) for column, field in zip(columns, SCHEMA, strict=True)],
        schema=SCHEMA,
    )


@pytest.mark.parametrize("victims", [state_servers, workers], ids=["state-servers", "workers"])
def test_a_retried_batch_arrives_again_under_the_same_marks(
    engine: SparkEngine, folders: Folders, victims: Callable[[int], list[int]]
) -> None:
    """The first results of the second batch end the processes that compute it."""
    for step in range(3):
        for seed, stream in enumerate("AB"):
            folders.write(stream, many(2 * step + seed, step * 4, step * 4 + 4))
    taker = Taker()
    killed: list[int] = []

    def take(batch: pa.RecordBatch, mark: Mark) -> None:
        taker(batch, mark)
        if mark.batch == 1 and not killed:
            killed.extend(victims(os.getpid()))
            for pid in killed:
                kill(pid)

    engine.query(JOIN, name="pairs").subscribe(take)
    engine.query(FAR, name="far")
    engine.process_available()
    assert killed
    folders.check({"pairs": JOIN}, {"pairs": engine.results("pairs")})
    again = [place for place, found in taker.by_place().items() if len(found) > 1]
    assert {batch for batch, _, _ in again} == {1}, "the second batch came again"
    assert all(len(set(found)) == 1 for found in taker.by_place().values()), (
        "with the same results in the same places"
    )
    taker.check_without_gaps()
    assert not difference(engine.results("pairs"), taker.results()), (
        "those that came before can be told"
    )


def test_blocking_and_failing_subscribers_are_isolated_and_reported(
    engine: SparkEngine, folders: Folders, caplog: pytest.LogCaptureFixture
) -> None:
    fill(folders, 4)
    go_on = threading.Event()
    taker = Taker()

    def block(batch: pa.RecordBatch, mark: Mark) -> None:
        del batch, mark
        assert go_on.wait(60)

    def fail(batch: pa.RecordBatch, mark: Mark) -> None:
        del batch
        raise OSError(f"no space left for {mark.batch}")

    query = engine.query(JOIN, name="pairs")
    query.subscribe(block, buffer=1)
    query.subscribe(fail)
    query.subscribe(taker)
    engine.start()
    with caplog.at_level(logging.WARNING, "muntin.spark"):
        engine.settle()
    wait_for(lambda: len(taker.results()) == len(query.results()))
    blocking, failing, working = query.stats()["subscribers"]
    assert query.progress is not None
    more = {"query", "results", "rows_out", "waiting_for"}  # the last of them grows with the clock
    reported = {
        key: value
        for key, value in query.progress["muntin"]["queries"]["pairs"].items()
        if key != "waiting_for"
    }
    assert reported == {key: value for key, value in query.stats().items() if key not in more}
    go_on.set()
    engine.stop()
    folders.check({"pairs": JOIN}, {"pairs": engine.results("pairs")})
    count = len(engine.results("pairs"))
    assert (working["rows"], working["failures"], working["rows_left_out"]) == (count, 0, 0)
    assert failing["rows"] == count
    assert failing["failures"] >= 4
    assert failing["last_failure"] == "OSError: no space left for 3"
    assert blocking["rows"] + blocking["rows_waiting"] + blocking["rows_left_out"] == count
    assert blocking["rows_left_out"] > 0
    said = [record.getMessage() for record in caplog.records]
    assert sum("is too slow: results are left out for it" in line for line in said) == 1
    assert [line for line in said if "failed" in line] == [
        f"a subscriber of query pairs failed in batch {n}; the run continues" for n in range(4)
    ]


def test_subscribers_are_added_and_cancelled_while_the_engine_runs(
    engine: SparkEngine, folders: Folders, tmp_path: Path
) -> None:
    storage = LocalStorage(tmp_path / "state" / "muntin")

    def named() -> bool:
        return any(name.startswith("subscribed") for name in storage.names())

    query = engine.query(JOIN, name="pairs")
    engine.start()
    fill(folders, 2)
    engine.settle()
    assert not named(), "without subscribers tasks hear of none"
    known = len(query.results())
    taker = Taker()
    subscription = query.subscribe(taker)
    assert named()
    other = Taker()
    engine.query("SELECT A.k FROM A WINDOW 1 SECOND", name="other").subscribe(other)
    for stream in "AB":
        folders.write(stream, rows([6, 7, 8], start=6))
    engine.settle()
    wait_for(lambda: len(taker.results()) == len(query.results()) - known)
    assert not difference(query.results().slice(known), taker.results())
    subscription.cancel()
    came = len(taker.pieces)
    wait_for(lambda: other.pieces)
    engine.drop("other")
    assert not named()
    heard = len(other.pieces)
    for stream in "AB":
        folders.write(stream, rows([9, 10, 11], start=9))
    engine.settle()
    engine.stop()
    assert (len(taker.pieces), len(other.pieces)) == (came, heard)
    folders.check({"pairs": JOIN}, {"pairs": engine.results("pairs")})
    with pytest.raises(CatalogError, match="there is no query 'other'"):
        engine._parts.reports.subscribe("other", other, 1)


def test_a_subscriber_may_stop_the_engine(engine: SparkEngine, folders: Folders) -> None:
    fill(folders, 2)

    def stop(batch: pa.RecordBatch, mark: Mark) -> None:
        del batch, mark
        engine.stop()

    engine.query(JOIN, name="pairs").subscribe(stop)
    engine.start()
    assert engine.await_termination(60)


class Broken(Sink):
    """A sink that accepts nothing before it is repaired."""

    whole = False

    def write(self, results: Any, batch: int) -> None:
        del results, batch
        if not self.whole:
            raise OSError("no space left")


def test_after_a_failure_and_a_restart_results_arrive_again_under_the_same_marks(
    engine: SparkEngine, folders: Folders
) -> None:
    fill(folders, 2)
    sink, taker = Broken(), Taker()
    engine.query(JOIN, name="pairs", sink=sink).subscribe(taker)
    with pytest.raises(RunError, match="the sink of query pairs failed in batch 0"):
        engine.process_available()
    assert {mark.batch for mark, _ in taker.pieces} == {0}, (
        "the sink has none of it, the subscriber all"
    )
    sink.whole = True
    engine.process_available()
    found = taker.by_place()
    assert all(len(same) == (2 if batch == 0 else 1) for (batch, _, _), same in found.items())
    assert all(len(set(same)) == 1 for same in found.values())
    assert not difference(folders.expected({"pairs": JOIN})["pairs"], taker.results())
