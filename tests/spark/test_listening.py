"""Progress reports of a run.

Tests cover the log and the calls of a user's function, and check that the session is left clean.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from muntin.errors import RunError
from muntin.spark import SparkEngine
from muntin.spark.sinks import Sink
from tests.spark.support import JOIN, SECOND, Folders, rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-1")]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "muntin.spark")
    return caplog


def listeners(spark: SparkSession) -> int:
    return int(spark.streams._jsqm.listListeners().__len__())


def lines(log: pytest.LogCaptureFixture) -> list[str]:
    """Return the logged lines without the durations of batches."""
    return [
        re.sub(r" in [\d.]+ s:", ":", record.getMessage())
        for record in log.records
        if record.name == "muntin.spark"
    ]


def test_every_batch_is_reported_to_the_log_and_to_the_function(
    spark: SparkSession, tmp_path: Path, log: pytest.LogCaptureFixture
) -> None:
    folders = Folders(tmp_path / "in")
    for stream in "AB":
        folders.write(stream, rows([0, 1, 2]))
        folders.write(stream, rows([2.5, 1, 3], start=3))
    reported: list[dict[str, Any]] = []
    before = listeners(spark)
    engine = SparkEngine(
        spark, checkpoint=tmp_path / "state", partitions=2, on_progress=reported.append
    )
    engine.execute(folders.declarations())
    engine.query(JOIN, name="pairs")
    engine.process_available(until=9 * SECOND)
    started, *batches, ended, started_again, last, ended_again = lines(log)
    assert (
        started
        == f"started: queries pairs; 2 partitions; checkpoint {tmp_path / 'state'}, from batch 0"
    )
    assert [re.sub(r"results: pairs \d+", "results", line) for line in batches] == [
        "batch 0: A 3 rows, B 3 rows; results; watermark 1970-01-01 00:00:02; 6 rows held",
        (
            "batch 1: A 3 rows, 1 late, B 3 rows, 1 late; results; watermark 1970-01-01 "
            "00:00:03; 10 rows held"
        ),
    ]
    assert (ended, started_again) == ("ended after batch 1", started.replace("batch 0", "batch 2"))
    assert last == (
        "batch 2: A 0 rows, B 0 rows; results: pairs 2; watermark 1970-01-01 00:00:09; 0 rows held"
    )
    assert ended_again == "ended after batch 2"
    assert [progress["batchId"] for progress in reported] == [0, 1, 2]
    assert reported[-1] == engine.progress
    results = [progress["muntin"]["results"]["pairs"] for progress in reported]
    assert results == [2, 7, 9]
    assert len(engine.results("pairs")) == 9
    assert reported[1]["muntin"]["newest"] == "1970-01-01 00:00:03"
    assert listeners(spark) == before, "nothing is left in the session"


def test_a_function_that_raises_or_stops_does_no_harm(
    spark: SparkSession, tmp_path: Path, log: pytest.LogCaptureFixture
) -> None:
    folders = Folders(tmp_path / "in")
    for stream in "AB":
        for step in range(3):
            folders.write(stream, rows([step], start=step))

    def act(progress: dict[str, Any]) -> None:
        if progress["batchId"] == 0:
            raise ZeroDivisionError
        if progress["batchId"] == 2:
            engine.stop()

    engine = SparkEngine(spark, checkpoint=tmp_path / "state", partitions=2, on_progress=act)
    engine.execute(folders.declarations())
    engine.query(JOIN, name="pairs")
    before = listeners(spark)
    engine.start()
    assert listeners(spark) == before + 1
    assert engine.await_termination(120)
    folders.check({"pairs": JOIN}, {"pairs": engine.results("pairs")})
    engine.stop()
    said = lines(log)
    assert said.count("on_progress failed at batch 0; the run continues") == 1
    assert said[-1] == "ended after batch 2"
    assert listeners(spark) == before


class Broken(Sink):
    """A sink that accepts the first batch only."""

    def write(self, results: Any, batch: int) -> None:
        del results
        if batch:
            raise OSError("no space left")


def test_a_failure_is_logged_with_its_reason_and_the_next_start_is_reported(
    spark: SparkSession, tmp_path: Path, log: pytest.LogCaptureFixture
) -> None:
    folders = Folders(tmp_path / "in")
    for stream in "AB":
        for step in range(2):
            folders.write(stream, rows([step], start=step))
    before = listeners(spark)
    engine = SparkEngine(spark, checkpoint=tmp_path / "state", partitions=2)
    engine.execute(folders.declarations())
    engine.query(JOIN, name="pairs", sink=Broken())
    for _ in range(2):
        with pytest.raises(RunError):
            engine.process_available()
    said = [line for line in lines(log) if not line.startswith(("started", "batch"))]
    reason = "the sink of query pairs failed in batch 1: OSError: no space left"
    assert said == [f"failed after batch 0: {reason}", f"failed before its first batch: {reason}"]
    assert [record.levelname for record in log.records if "failed" in record.getMessage()] == [
        "ERROR",
        "ERROR",
    ]
    assert listeners(spark) == before
