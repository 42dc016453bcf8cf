"""The time of a micro-batch on Spark by its size, beside Spark's own floor and one core.

Two streams of 10,000 rows per second, keys uniform, window 60 s, so that each window holds 600,000
rows. The first files fill the windows; then every micro-batch gets one file of each stream. Times
are what Spark says of a micro-batch (``triggerExecution``), medians over the timed batches of the
second of two runs in the session; results go to parquet files.

The floor is a streaming query over the same files that passes the rows through one ``mapInArrow``,
which discards them, and an empty ``foreachBatch``. In process, one engine on one core takes the
same rows in the same pieces; reading the files is not part of its time.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import muntin
from benchmarks.report import Claim, Figure, Progress, Report
from benchmarks.spark_runs import PARTITIONS, START, bench_session, declare_stream, join_sql
from muntin.spark.api import SparkEngine
from muntin.testing.generators import uniform_stream

RATE = 10_000
WINDOW = 60
_FILLING = 6
"""Files that fill the windows before batches are timed."""
_WARM_UP = 2
_SCHEMA = "k BIGINT, v DOUBLE, ts TIMESTAMP_NTZ"


@dataclass(frozen=True)
class Size:
    """Rows of each stream per timed batch, and how many batches are timed."""

    rows: int
    timed: int

    @property
    def files(self) -> int:
        """The number of files of a stream."""
        return _FILLING + _WARM_UP + self.timed


SIZES = (Size(1_000, 20), Size(50_000, 12), Size(500_000, 6))
QUICK = (Size(1_000, 3),)


def write_streams(folder: Path, size: Size) -> None:
    """Write the files of both streams: those that fill the windows, then the timed ones."""
    filling = RATE * WINDOW // _FILLING
    lengths = [filling] * _FILLING + [size.rows] * (size.files - _FILLING)
    for seed, name in enumerate("AB", 1):
        rows = uniform_stream(sum(lengths), RATE, RATE * WINDOW, seed, start=START)
        (folder / name).mkdir(parents=True)
        begin = 0
        for number, length in enumerate(lengths):
            pq.write_table(rows.slice(begin, length), _file(folder, name, number))
            begin += length


def _file(folder: Path, name: str, number: int) -> Path:
    return folder / name / f"{number:05d}.parquet"


def _times(query: StreamingQuery, size: Size) -> list[int]:
    """Return the milliseconds of the timed batches."""
    found = [int(told.durationMs["triggerExecution"]) for told in query.recentProgress]
    assert len(found) >= size.files, f"{size.files} batches, not {len(found)}"
    return found[_FILLING + _WARM_UP : size.files]


def time_muntin(
    spark: SparkSession, data: Path, size: Size, partitions: int = PARTITIONS
) -> list[int]:
    """Return the times of Muntin's batches."""
    with tempfile.TemporaryDirectory(prefix="muntin-bench-", ignore_cleanup_errors=True) as output:
        engine = SparkEngine(spark, checkpoint=Path(output) / "state", partitions=partitions)
        for name in "AB":
            engine.execute(declare_stream(name, data, 1))
        sink = {"format": "parquet", "path": f"{output}/results"}
        engine.query(join_sql(WINDOW), name="joined", sink=sink)
        engine.process_available()
        assert engine.streaming is not None, "it ran"
        return _times(engine.streaming, size)


def _discard(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.slice(0, 0)


def _run(frame: DataFrame, _: int) -> None:
    frame.collect()


def time_floor(spark: SparkSession, data: Path, size: Size) -> list[int]:
    """Return the times of a query that reads the same rows and discards them."""
    reader = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1)
    both = reader.parquet(str(data / "A")).unionAll(reader.parquet(str(data / "B")))
    with tempfile.TemporaryDirectory(prefix="muntin-bench-", ignore_cleanup_errors=True) as output:
        writer = both.mapInArrow(_discard, _SCHEMA).writeStream.foreachBatch(_run)
        query = writer.option("checkpointLocation", output).trigger(availableNow=True).start()
        query.awaitTermination()
        return _times(query, size)


def time_in_process(data: Path, size: Size) -> list[int]:
    """Return the times of the engine in process for the same rows in the same pieces."""
    engine = muntin.Engine()
    for name in "AB":
        engine.stream(name, {"k": "bigint", "v": "double", "ts": "timestamp"}, time="ts")
    query = engine.query(join_sql(WINDOW), name="joined")
    found = []
    for number in range(size.files):
        rows = {name: pq.read_table(_file(data, name, number)) for name in "AB"}
        began = time.perf_counter()
        for name, table in rows.items():
            engine.push(name, table)
        query.poll()
        found.append(round((time.perf_counter() - began) * 1_000))
    return found[_FILLING + _WARM_UP :]


def _row(size: Size, system: str, times: Sequence[int]) -> dict[str, Figure]:
    return {
        "rows per stream and batch": size.rows,
        "system": system,
        "milliseconds": round(median(times)),
        "least": min(times),
        "most": max(times),
        "batches timed": len(times),
        "rows per second": round(2 * size.rows / median(times) * 1_000) if median(times) else 0,
    }


def compare(progress: Progress, spark: SparkSession, size: Size) -> list[dict[str, Figure]]:
    """Return the times of one size; of each system on Spark, the second run counts."""
    data = Path(tempfile.mkdtemp(prefix="muntin-bench-"))
    try:
        write_streams(data, size)
        found: dict[str, list[int]] = {}
        for attempt in ("first", "second"):
            for name, run in (("Muntin", time_muntin), ("Spark's floor", time_floor)):
                progress(f"{name}, {size.rows:,} rows per stream and batch, {attempt} run")
                found[name] = run(spark, data, size)
        found["Muntin in process, one core"] = time_in_process(data, size)
    finally:
        shutil.rmtree(data, ignore_errors=True)
    return [_row(size, name, times) for name, times in found.items()]


def bench_spark_batches(progress: Progress, *, quick: bool = False) -> Report:
    """Time batches of three sizes."""
    spark = bench_session()
    rows = [row for size in (QUICK if quick else SIZES) for row in compare(progress, spark, size)]
    times = {
        (row["rows per stream and batch"], row["system"]): float(row["milliseconds"])
        for row in rows
    }
    small = SIZES[0].rows
    claims = [
        Claim(
            "time of a batch of 1,000 rows per stream relative to Spark's floor",
            round(times[small, "Muntin"] / times[small, "Spark's floor"], 2),
            1.5,
            "at most",
        )
    ]
    large = SIZES[-1].rows
    if not quick:
        ratio = times[large, "Muntin in process, one core"] / times[large, "Muntin"]
        claims.append(
            Claim(
                "throughput with 500,000 rows per stream relative to one core in process",
                round(ratio, 2),
                0.4,
                "at least",
            )
        )
    return Report(
        "spark-batches",
        "How long does a micro-batch take on Spark, by its size?",
        rows,
        claims,
    )
