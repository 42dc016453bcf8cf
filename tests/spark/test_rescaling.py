"""A restart with another number of partitions continues as if nothing had happened."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from muntin.spark import SparkEngine
from muntin.spark.sinks import SinkError, read_batches
from tests.spark.support import CHANGES, JOIN, SECOND, Folders, random_rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-1")]

QUERIES = {
    "pairs": JOIN,
    "changes": CHANGES,
    "groups": "SELECT k, COUNT(*) AS n, MAX(v) AS most FROM A GROUP BY k WINDOW 4 SECONDS",
    "total": "SELECT COUNT(*) AS n, SUM(v) AS sum FROM A WINDOW 4 SECONDS",
    "different": "SELECT DISTINCT v % 3 AS m FROM B WINDOW 3 SECONDS",
    "latest": "SELECT k, v FROM A [PARTITION BY k ROWS 2] EMIT CHANGES",
}
FILES = 8


def test_results_are_exact_while_the_number_of_partitions_changes_at_every_start(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path)
    tables = {stream: random_rows(seed, FILES * 15, FILES * 2) for seed, stream in enumerate("AB")}
    found = {}
    for start, partitions in enumerate((2, 5, 3, 3)):
        for stream, table in tables.items():
            for file in (2 * start, 2 * start + 1):
                folders.write(stream, table.slice(file * 15, 15))
        engine = SparkEngine(spark, checkpoint=tmp_path / "checkpoint", partitions=partitions)
        engine.execute(folders.declarations())
        for name, sql in QUERIES.items():
            engine.query(sql, name=name)
        if start < 3:
            engine.process_available()
        else:
            engine.process_available(until=30 * SECOND)
        found = {name: engine.results(name) for name in QUERIES}
    folders.check(QUERIES, found, 30 * SECOND)


def test_an_interrupted_batch_runs_again_under_its_number_with_other_partitions(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Sinks had its results, so they must recognize it."""
    folders = Folders(tmp_path)
    tables = {stream: random_rows(seed, FILES * 15, FILES * 2) for seed, stream in enumerate("AB")}
    for stream, table in tables.items():
        for file in range(3):
            folders.write(stream, table.slice(file * 15, 15))
    seen: list[int] = []

    def fail_once(frame: DataFrame, batch: int) -> None:
        del frame
        seen.append(batch)
        if batch == 1 and seen.count(1) == 1:
            raise OSError("no space left")

    for partitions, until in ((2, None), (3, 30 * SECOND)):
        engine = SparkEngine(spark, checkpoint=tmp_path / "checkpoint", partitions=partitions)
        engine.execute(folders.declarations())
        for name, sql in QUERIES.items():
            path = str(tmp_path / "out" / name)
            engine.query(sql, name=name, sink={"format": "parquet", "path": path})
        engine.query(JOIN, name="failing", sink=fail_once)
        if until is None:
            with pytest.raises(SinkError, match="no space left"):
                engine.process_available()
        else:
            engine.process_available(until=until)
    assert seen.count(1) == 2
    assert seen == sorted(seen)
    expected = folders.expected(QUERIES, 30 * SECOND)
    found = {
        name: read_batches(tmp_path / "out" / name, table.schema)
        for name, table in expected.items()
    }
    folders.check(QUERIES, found, 30 * SECOND)
