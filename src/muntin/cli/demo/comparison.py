"""The same readings through Muntin and through Spark's own joins, one after the other.

Both read the same files in the same two batches, in the same session. The first batch warms up, and
the second one is timed, as Spark reports it: from when all queries are done with the first to when
all are done with the second. Spark's own queries run at the same time, as they would. What some of
them do of the second batch before others are done with the first does not count, in Spark's favor.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.streaming.query import StreamingQuery

from muntin.cli.demo.queries import CONDITION, muggy, name_of
from muntin.cli.demo.readings import declarations
from muntin.spark.api import SparkEngine
from muntin.spark.batch_results import BatchResults
from muntin.spark.sinks import Sink
from muntin.spark.temp_files import HeldFolder

_BATCHES = 2
_LOOK = 0.1
_PARTITIONS = 2
_STREAMS = ("Temperature", "Humidity")
_DDL = "LocationId INT, Value DOUBLE, ts TIMESTAMP_NTZ"
_IN_MEMORY = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
"""Spark's faster store for these joins; RocksDB takes longer."""


@dataclass(frozen=True)
class BatchTimes:
    """Seconds that a batch takes, by the number of queries; None if it took too long."""

    readings: int
    muntin: dict[int, float]
    spark: dict[int, float | None]

    def ratio(self, queries: int) -> float | None:
        """Return Spark's seconds per second of Muntin's."""
        theirs = self.spark[queries]
        return None if theirs is None else theirs / self.muntin[queries]


class _Ignored(Sink):
    """Takes results and does nothing."""

    def write(self, results: BatchResults, batch: int) -> None:
        """Do nothing."""


def compare(
    spark: SparkSession,
    written: Path,
    numbers: Sequence[Sequence[int]],
    patience: float,
    say: Callable[[str], None],
) -> BatchTimes:
    """Compare queries over windows of some seconds, a run for each list of windows.

    Spark's own joins get ``patience`` seconds in total.
    """
    with HeldFolder("demo") as folder:
        readings, files = _copy(written, folder / "data")
        muntin: dict[int, float] = {}
        theirs: dict[int, float | None] = {}
        end = time.monotonic() + patience
        for windows in numbers:
            count = f"{len(windows)} {'query' if len(windows) == 1 else 'queries'}"
            say(f"the same readings through Muntin: {count}")
            muntin[len(windows)] = _run_muntin(spark, folder / "data", files, windows)
            say(f"the same readings through Spark's own joins: {count}")
            theirs[len(windows)] = _run_spark(spark, folder, files, windows, end)
        return BatchTimes(readings, muntin, theirs)


def _copy(written: Path, folder: Path) -> tuple[int, int]:
    """Link the latest files; return the number of readings of a batch, and of its files."""
    readings = files = 0
    for name in _STREAMS:
        (folder / name).mkdir(parents=True)
        found = sorted(path for path in (written / name).iterdir() if path.name[0] != ".")
        files = len(found) // _BATCHES
        for path in found[-files * _BATCHES :]:
            os.link(path, folder / name / path.name)
        readings += sum(pq.read_metadata(path).num_rows for path in found[-files:])
    return readings, files


def _run_muntin(spark: SparkSession, data: Path, files: int, windows: Sequence[int]) -> float:
    engine = SparkEngine(spark, partitions=_PARTITIONS)
    engine.execute(declarations(data, files))
    for seconds in windows:
        engine.query(muggy(seconds), name=name_of(seconds), sink=_Ignored())
    engine.process_available()
    assert engine.streaming is not None, "it ran"
    return _last_batch([engine.streaming])


def _run_spark(
    spark: SparkSession, folder: Path, files: int, windows: Sequence[int], end: float
) -> float | None:
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", _IN_MEMORY)
    spark.conf.set("spark.sql.shuffle.partitions", str(_PARTITIONS))
    queries = [
        _joined(spark, folder / "data", files, seconds)
        .writeStream.format("noop")
        .option("checkpointLocation", str(folder / f"{len(windows)}-{seconds}"))
        .trigger(availableNow=True)
        .start()
        for seconds in windows
    ]
    try:
        while any(query.isActive for query in queries):
            if time.monotonic() > end:
                return None
            time.sleep(_LOOK)
    finally:
        for query in queries:
            query.stop()
    return _last_batch(queries)


def _joined(spark: SparkSession, data: Path, files: int, seconds: int) -> DataFrame:
    temperature, humidity = (
        spark.readStream.schema(_DDL)
        .option("maxFilesPerTrigger", files)
        .parquet(str(data / name))
        .selectExpr("LocationId", "Value", "CAST(ts AS TIMESTAMP) AS ts")
        .withWatermark("ts", "0 seconds")
        .alias(name[0])
        for name in _STREAMS
    )
    interval = f"INTERVAL {seconds} SECONDS"
    within = f"T.ts > H.ts - {interval} AND T.ts < H.ts + {interval}"
    return temperature.join(humidity, on=expr(f"{CONDITION} AND {within}")).selectExpr(
        "T.LocationId", "T.Value AS temperature", "H.Value AS humidity"
    )


def _last_batch(queries: Sequence[StreamingQuery]) -> float:
    """Return the seconds from the end of the first batch of all queries to that of the last."""
    ends: dict[int, float] = {}
    for query in queries:
        with_rows = [progress for progress in query.recentProgress if progress.numInputRows]
        for place, progress in enumerate(with_rows[-_BATCHES:]):
            begin = datetime.fromisoformat(progress.timestamp).timestamp()
            end = begin + progress.durationMs["triggerExecution"] / 1_000
            ends[place] = max(ends.get(place, 0.0), end)
    return ends[_BATCHES - 1] - ends[0]
