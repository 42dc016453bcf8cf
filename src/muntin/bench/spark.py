"""Muntin on Spark against Spark's own stream-stream join: the same files, the same session, the same results.

Two streams of 10,000 rows a second, keys uniform, window 60 s, as parquet files of ten seconds each; both write their results as
parquet. Rows a second are the input of a micro-batch over the time Spark says it took (``triggerExecution``), of batches
with full windows only: as many batches at the start as it takes to fill them, and at least two, are left out for both alike. The
number of results and the sum of their keys must agree.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.streaming.query import StreamingQuery

from muntin.bench.report import Claim, Figure, Progress, Report
from muntin.spark.engine import SparkEngine
from muntin.spark.session import local_session
from muntin.testing.generators import uniform_stream

RATE = 10_000
WINDOW = 60
FILE_SECONDS = 10
BUCKETS = 2
_START = 3_600_000_000
"""Microseconds: Spark's own join takes a row of time zero for late, since that is its first watermark."""
_DDL = "k BIGINT, v DOUBLE, ts TIMESTAMP_NTZ"
_DEFAULT_STORE = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
_SQL = f"SELECT A.k, A.v AS av, B.v AS bv FROM A, B WHERE A.k = B.k WINDOW {WINDOW} SECONDS"


@dataclass(frozen=True)
class Run:
    """Rows and milliseconds of every batch, and what came out."""

    batches: list[tuple[int, int]]
    results: tuple[int, int]

    def rate(self, warm_up: int) -> float:
        """Rows a second of the batches after so many, the median of them."""
        return median(rows / milliseconds * 1_000 for rows, milliseconds in self.batches[warm_up:] if rows)


def write_files(folder: Path, files: int, keys: int) -> None:
    """The two streams as files, in the order of their times."""
    rows = files * FILE_SECONDS * RATE
    for seed, name in enumerate("AB", 1):
        stream = uniform_stream(rows, RATE, keys, seed, start=_START)
        if name == "B":
            # The very last row waits for the other stream to go on; without a partner it makes no difference.
            last = pa.concat_arrays([stream.column("k").combine_chunks().slice(0, rows - 1), pa.array([-1], pa.int64())])
            stream = stream.set_column(0, "k", last)
        (folder / name).mkdir(parents=True)
        for number in range(files):
            path = folder / name / f"{number:05d}.parquet"
            pq.write_table(stream.slice(number * FILE_SECONDS * RATE, FILE_SECONDS * RATE), path)
            os.utime(path, (number + 1_000, number + 1_000))


def run_muntin(spark: SparkSession, data: Path, output: Path, per_trigger: int) -> Run:
    """Our pipeline over all files."""
    engine = SparkEngine(spark, checkpoint=output / "checkpoint", buckets=BUCKETS)
    for name in "AB":
        engine.execute(
            f"CREATE STREAM {name} (k BIGINT, v DOUBLE, ts TIMESTAMP) WITH (format = 'parquet', path = '{data / name}', "
            f"time = 'ts', maxFilesPerTrigger = '{per_trigger}')"
        )
    engine.query(_SQL, name="joined", sink={"format": "parquet", "path": str(output / "results")})
    engine.process_available()
    streaming = engine.streaming
    assert streaming is not None, "it ran"
    return Run(_batches(streaming), _sums(output / "results"))


def run_spark(spark: SparkSession, data: Path, output: Path, per_trigger: int) -> Run:
    """Spark's own join over all files."""
    results = joined_by_spark(spark, data, WINDOW, per_trigger)
    writer = results.writeStream.format("parquet").option("path", str(output / "results"))
    query = writer.option("checkpointLocation", str(output / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    return Run(_batches(query), _sums(output / "results"))


def joined_by_spark(spark: SparkSession, data: Path, window: int, per_trigger: int) -> DataFrame:
    """The streaming DataFrame of Spark's own join over a window of so many seconds, with its default state store."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", _DEFAULT_STORE)
    spark.conf.set("spark.sql.shuffle.partitions", str(BUCKETS))
    frames = {}
    for name in "AB":
        reader = spark.readStream.schema(_DDL).option("maxFilesPerTrigger", per_trigger)
        frame = reader.parquet(str(data / name)).selectExpr("k", "v", "CAST(ts AS TIMESTAMP) AS ts").withWatermark("ts", "0 seconds")
        frames[name] = frame.alias(name)
    within = f"A.ts > B.ts - INTERVAL {window} SECONDS AND A.ts < B.ts + INTERVAL {window} SECONDS"
    joined = frames["A"].join(frames["B"], on=expr(f"A.k = B.k AND {within}"))
    return joined.selectExpr("A.k AS k", "A.v AS av", "B.v AS bv")


def _batches(query: StreamingQuery) -> list[tuple[int, int]]:
    found = []
    for progress in query.recentProgress:
        rows = sum(source.numInputRows for source in progress.sources)
        # Where whole files are read, they are what Spark counts.
        rows = rows if rows >= FILE_SECONDS * RATE else rows * FILE_SECONDS * RATE
        found.append((rows, int(progress.durationMs["triggerExecution"])))
    return found


def _sums(folder: Path) -> tuple[int, int]:
    table = ds.dataset(folder, format="parquet", exclude_invalid_files=True).to_table(columns=["k"])
    return len(table), pc.sum(table.column("k")).as_py() or 0


def compare(progress: Progress, spark: SparkSession, data: Path, per_trigger: int) -> list[dict[str, Figure]]:
    """Both over the same files."""
    systems: dict[str, Callable[[SparkSession, Path, Path, int], Run]] = {"Muntin": run_muntin, "Spark's own join": run_spark}
    warm_up = max(2, -(-WINDOW // (FILE_SECONDS * per_trigger)))
    runs = {}
    for name, run in systems.items():
        progress(f"{name}, {per_trigger} files a trigger")
        with tempfile.TemporaryDirectory() as folder:
            runs[name] = run(spark, data, Path(folder), per_trigger)
    assert len({run.results for run in runs.values()}) == 1, f"both must give the same results: {[run.results for run in runs.values()]}"
    return [
        {
            "system": name,
            "files a trigger": per_trigger,
            "batches timed": len(run.batches) - warm_up,
            "rows a second": round(run.rate(warm_up)),
            "results": run.results[0],
        }
        for name, run in runs.items()
    ]


def bench_spark(progress: Progress, *, quick: bool = False) -> Report:
    """Five files and one file a trigger."""
    files, keys = (8, 600_000) if quick else (40, 600_000)
    rows: list[dict[str, Figure]] = []
    for per_trigger, count in ((2, files),) if quick else ((5, files), (1, 16)):
        data = Path(tempfile.mkdtemp(prefix="muntin-bench-"))
        try:
            progress(f"writing {count} files of {FILE_SECONDS * RATE:,} rows for each stream")
            write_files(data, count, keys)
            rows += compare(progress, local_session(BUCKETS), data, per_trigger)
        finally:
            shutil.rmtree(data, ignore_errors=True)
    rates = [float(row["rows a second"]) for row in rows]
    ratios = [round(ours / theirs, 2) for ours, theirs in zip(rates[::2], rates[1::2], strict=True)]
    claims = [Claim("rows a second over those of Spark's own join, five files a trigger", ratios[0], 5.0, "at least")]
    if len(ratios) > 1:
        claims.append(Claim("the same, one file a trigger", ratios[1], 3.0, "at least"))
    return Report("spark", "How does Muntin on Spark compare with Spark's own stream-stream join?", rows, claims)
