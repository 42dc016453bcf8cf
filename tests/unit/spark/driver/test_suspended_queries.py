"""On partitions, too, a failing query affects no other, and all partitions treat it alike."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import Row

from muntin.errors import EvaluationError
from muntin.expressions.evaluator import Evaluator
from muntin.model.catalog import Stream
from muntin.spark.batch_results import BatchResults
from muntin.spark.driver.batch_outputs import BatchOutputs
from muntin.spark.driver.checkpoint import CheckpointError
from muntin.spark.driver.output_writer import OutputWriter
from muntin.spark.driver.registry import RegisteredQuery
from muntin.spark.driver.suspended_queries import SuspendedQueries
from muntin.spark.exchange.deployment import DeployedQuery, Deployment, QueryChange
from muntin.spark.exchange.messages import Part, PartitionBatch, to_blob
from muntin.spark.exchange.packer import Packer
from muntin.spark.exchange.partition_metrics import STATS
from muntin.spark.partition.partition import RESULTS
from muntin.spark.partition.recovery import Applied, RecoverablePartition
from muntin.spark.partition.spool import Spool
from muntin.spark.storage import LocalStorage
from muntin.sql.script import read_query

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
SECOND = 1_000_000
MARK = 777_001
"""A number that only occurs in expressions that are made to fail."""
HEALTHY = DeployedQuery("healthy", "SELECT k FROM A WINDOW 1 MINUTE", {})
FAILING = DeployedQuery("failing", f"SELECT k + {MARK} AS v FROM A WINDOW 1 MINUTE", {})
COUNTING = DeployedQuery("counting", f"SELECT count(*) + {MARK} AS n FROM A WINDOW 1 MINUTE", {})


def program_of(*queries: DeployedQuery, changes: tuple[QueryChange, ...] = ()) -> Deployment:
    return Deployment((Stream("A", SCHEMA, "ts", 0),), {}, queries, changes, 2)


def partition_batch(
    deployment: Deployment, partition: int, batch: int, *keys: int
) -> PartitionBatch:
    times = pa.array([(batch + 1) * SECOND - key for key in keys]).cast(pa.timestamp("us"))
    rows = pa.table([pa.array(keys), times], schema=SCHEMA)
    parts = [part for owner, part in Packer(deployment, "A").pack(rows, 0) if owner == partition]
    return PartitionBatch(batch, deployment.epoch(batch), {"A": (batch + 1) * SECOND}, tuple(parts))


def results(applied: Applied) -> dict[str, int]:
    return {output.name: len(output.table) for output in applied.outputs if output.kind == RESULTS}


def break_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every expression that contains MARK fail from now on; binding still works."""
    raw = Evaluator.raw

    def broken(self: Evaluator, texts: Sequence[str], batch: pa.Table) -> list[pa.ChunkedArray]:
        if any(str(MARK) in text for text in texts):
            raise EvaluationError("nothing works")
        return raw(self, texts, batch)

    monkeypatch.setattr(Evaluator, "raw", broken)


def test_a_partition_continues_without_a_query_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = program_of(HEALTHY, FAILING)
    partition, stores = RecoverablePartition(deployment, 0), {}
    keys = range(20)
    for batch in range(4):
        if batch == 2:
            break_marked(monkeypatch)
        applied = partition.apply(own := partition_batch(deployment, 0, batch, *keys))
        stores[batch] = (applied.note, own)
        found = results(applied)
        assert found["healthy"]
        assert ("failing" in found) == (batch < 2)
        assert applied.stats.suspended.keys() == ({"failing"} if batch >= 2 else set())
    again = RecoverablePartition.rebuilt(deployment, 0, stores.values())
    applied = again.apply(partition_batch(deployment, 0, 4, *keys))
    assert results(applied).keys() == {"healthy"}
    assert "nothing works" in applied.stats.suspended["failing"]


def test_a_query_that_cannot_be_registered_does_not_stop_its_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its join reads the rows that are held when it starts."""
    sql = f"SELECT x.k FROM A x, A y WHERE x.k + {MARK} = y.k + {MARK} WINDOW 1 MINUTE"
    joined = DeployedQuery("joined", sql, {})
    changes = (QueryChange(1, added=joined, dataflow="0"), QueryChange(3, dropped="joined"))
    deployment = program_of(HEALTHY, changes=changes)
    partition = RecoverablePartition(deployment, 0)
    rows = to_blob(
        pa.table([pa.array([1, 2]), pa.array([SECOND] * 2).cast(pa.timestamp("us"))], schema=SCHEMA)
    )
    break_marked(monkeypatch)
    for batch in range(4):
        part = Part(0, "A", 0, rows)
        own = PartitionBatch(
            batch,
            deployment.epoch(batch),
            {"A": (batch + 1) * SECOND},
            (part,) if not batch else (),
        )
        applied = partition.apply(own)
        assert applied.stats.suspended.keys() == ({"joined"} if batch in {1, 2} else set())


# -- the driver
# ----------------------------------------------------------------------------------------


class Collected:
    """A sink that keeps its batches."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def target(self) -> None:
        """Return nothing: executors do not write to it."""

    def write(self, results: BatchResults, batch: int) -> None:
        assert batch == len(self.counts)
        self.counts.append(len(results))

    def sync(self) -> None:
        """Do nothing: nothing is kept on disk."""


class Run:
    """Two partitions and a writer, batch by batch.

    ``broken`` is the partition in which expressions fail.
    """

    def __init__(self, folder: Path, deployment: Deployment) -> None:
        self.program = deployment
        self.partitions = [RecoverablePartition(deployment, number) for number in range(2)]
        self.writer = OutputWriter(LocalStorage(folder), Spool(LocalStorage(folder / "spool")))
        self.sinks: dict[str, Collected] = {}

    def batch(
        self, batch: int, monkeypatch: pytest.MonkeyPatch, *, broken: int | None = None
    ) -> None:
        self.writer.plan(batch, self.registered().values(), ())
        found: BatchOutputs = {}
        for number, partition in enumerate(self.partitions):
            with monkeypatch.context() as patch:
                if number == broken:
                    break_marked(patch)
                applied = partition.apply(partition_batch(self.program, number, batch, *range(20)))
            for output in applied.outputs:
                row = Row(
                    kind=output.kind,
                    name=output.name,
                    rows=len(output.table),
                    blob=to_blob(output.table),
                    file="",
                )
                found.setdefault((output.kind, output.name), []).append(row)
            found.setdefault((STATS, ""), []).append(Row(blob=applied.stats.to_blob()))
        self.writer.write(found, batch, self.registered(), self.program.streams)

    def registered(self) -> dict[str, RegisteredQuery]:
        queries = [
            self.program.all_queries()[place]
            for place in self.program.active(len(self.program.changes))
        ]
        found = {}
        for registered in queries:
            query = read_query(registered.sql, registered.name, self.program.catalog())
            sink = self.sinks.setdefault(registered.name, Collected())
            found[registered.name] = RegisteredQuery(
                registered,
                query,
                None,  # type: ignore[arg-type]
                sink,  # type: ignore[arg-type]
            )
        return found


def test_a_query_that_fails_in_one_partition_stops_in_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = Run(tmp_path, program_of(HEALTHY, FAILING))
    run.writer.begin(run.program, 0)
    with caplog.at_level(logging.WARNING, "muntin"):
        run.batch(0, monkeypatch)
        run.batch(1, monkeypatch, broken=1)
        caplog.clear()  # what the partition itself has logged
        run.batch(2, monkeypatch, broken=1)
    assert run.sinks["healthy"].counts == [20, 20, 20]
    assert run.sinks["failing"].counts == [20, 0, 0]
    assert "nothing works" in run.writer.suspended["failing"]
    assert not caplog.records
    restarted = OutputWriter(LocalStorage(tmp_path), Spool(LocalStorage(tmp_path / "spool")))
    restarted.begin(run.program, 3)
    assert restarted.suspended == run.writer.suspended


def test_a_failing_global_stage_suspends_only_its_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path, program_of(HEALTHY, COUNTING))
    run.writer.begin(run.program, 0)
    run.batch(0, monkeypatch)
    assert run.program.placed()[1].distribution.last is not None
    before = list(run.sinks["counting"].counts)
    break_marked(monkeypatch)
    for batch in (1, 2):
        run.batch(batch, monkeypatch)
    assert run.sinks["healthy"].counts == [20, 20, 20]
    assert run.sinks["counting"].counts == [*before, 0, 0]
    assert run.writer.suspended.keys() == {"counting"}


def test_a_query_that_is_registered_again_runs(tmp_path: Path) -> None:
    """It has another place; the old one is no longer used."""
    suspended = SuspendedQueries(LocalStorage(tmp_path))
    suspended.add(1, "q", "no reason")
    suspended.keep({0, 2})
    again = SuspendedQueries(LocalStorage(tmp_path))
    again.load()
    assert again.reasons == {}


def test_a_damaged_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "suspended").write_text("[1")
    with pytest.raises(CheckpointError, match="suspended is damaged"):
        SuspendedQueries(LocalStorage(tmp_path)).load()


def test_rows_are_partitioned_although_their_key_cannot_be_evaluated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sql = f"SELECT x.k FROM A x, A y WHERE x.k + {MARK} = y.k + {MARK} WINDOW 1 MINUTE"
    deployment = program_of(DeployedQuery("joined", sql, {}))
    break_marked(monkeypatch)
    assert partition_batch(deployment, 0, 0, *range(5_000)).parts
    assert not partition_batch(deployment, 1, 0, *range(5_000)).parts
