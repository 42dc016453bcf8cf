"""A query that is dropped and registered again under its name gets nothing of the one before it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from unittest.mock import MagicMock

import pyarrow as pa
import pytest
from pyspark.sql import Row

from muntin.spark.batch_results import BatchResults
from muntin.spark.driver.registry import RegisteredQuery
from muntin.spark.partition.result_writer import WRITTEN
from muntin.spark.sinks import FileSink, MemorySink
from muntin.spark.storage import LocalStorage
from tests.unit.spark.driver.test_suspended_queries import HEALTHY, Collected, Run, program_of

OLD = replace(HEALTHY, incarnation="old")
NEW = replace(HEALTHY, incarnation="new")
ROWS = pa.table({"v": [1, 2]})


class Again(Run):
    """A run whose query is in force as ``OLD`` and registered as ``registration``."""

    registration = OLD

    def registered(self) -> dict[str, RegisteredQuery]:
        return {
            name: replace(one, deployed=self.registration)
            for name, one in super().registered().items()
        }


def test_its_sink_gets_results_once_it_is_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Again(tmp_path, program_of(OLD))
    run.writer.begin(run.program, 0)
    run.batch(0, monkeypatch)
    run.registration = NEW
    run.batch(1, monkeypatch)
    run.writer.resumed = {"new": "old"}  # a start has found it unchanged
    run.batch(2, monkeypatch)
    assert run.sinks["healthy"].counts == [20, 0, 20]


def test_files_that_executors_wrote_for_a_dropped_query_are_removed(tmp_path: Path) -> None:
    run = Again(tmp_path / "checkpoint", program_of(OLD))
    run.writer.begin(run.program, 0)
    sink = FileSink(tmp_path / "out", "parquet")
    run.sinks["healthy"] = cast("Collected", sink)
    planned = run.writer.plan(0, run.registered().values(), ())
    assert planned.targets == {"healthy": sink.target()}
    file = sink.target().write(ROWS, 0, part=0)
    row = Row(kind=WRITTEN, name="healthy", rows=2, blob=b"", file=file)
    other = FileSink(tmp_path / "other", "parquet")
    run.sinks["healthy"], run.registration = cast("Collected", other), NEW
    run.writer.write({(WRITTEN, "healthy"): [row]}, 0, run.registered(), run.program.streams)
    assert list(sink.folder.iterdir()) == list(other.folder.iterdir()) == []


def test_a_batch_that_runs_does_not_bring_back_results_of_a_dropped_query(tmp_path: Path) -> None:
    spark: Any = MagicMock()
    sink = MemorySink(spark, "q", LocalStorage(tmp_path), ROWS.schema)
    sink.write(BatchResults.of(ROWS), 0)
    sink.forget()
    again = MemorySink(spark, "q", LocalStorage(tmp_path), ROWS.schema)
    views = spark.read.parquet.return_value.createOrReplaceTempView.call_count
    sink.write(BatchResults.of(ROWS), 1)
    assert len(again.table()) == 0
    assert spark.read.parquet.return_value.createOrReplaceTempView.call_count == views
