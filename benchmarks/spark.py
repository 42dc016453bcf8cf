"""Muntin on Spark against Spark's stream-stream join: same files, session and results.

Two streams of 10,000 rows per second, keys uniform, window 60 s, as parquet files of ten seconds
each; both write their results as parquet. Rows per second are the input of a micro-batch over the
time Spark says it took (``triggerExecution``), of batches with full windows only: as many batches
at the start as it takes to fill them, and at least two, are left out for both alike. The number of
results and the sum of their keys must agree.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.report import Claim, Figure, Progress, Report
from benchmarks.spark_runs import (
    PARTITIONS,
    Streams,
    bench_session,
    declare_stream,
    join_sql,
    joined_by_spark,
    write_files,
)
from muntin.spark.api import SparkEngine

RATE = 10_000
WINDOW = 60
FILE_SECONDS = 10


@dataclass(frozen=True)
class Run:
    """Rows and milliseconds of every batch, and what came out."""

    batches: list[tuple[int, int]]
    results: tuple[int, int]

    def rate(self, warm_up: int) -> float:
        """Return rows per second after warm-up, the median over batches."""
        return median(
            rows / milliseconds * 1_000 for rows, milliseconds in self.batches[warm_up:] if rows
        )


def run_muntin(spark: SparkSession, data: Path, output: Path, per_trigger: int) -> Run:
    """Our pipeline over all files."""
    engine = SparkEngine(spark, checkpoint=output / "checkpoint", partitions=PARTITIONS)
    for name in "AB":
        engine.execute(declare_stream(name, data, per_trigger))
    engine.query(
        join_sql(WINDOW), name="joined", sink={"format": "parquet", "path": str(output / "results")}
    )
    engine.process_available()
    streaming = engine.streaming
    assert streaming is not None, "it ran"
    return Run(_batches(streaming), _sums(output / "results"))


def run_spark(spark: SparkSession, data: Path, output: Path, per_trigger: int) -> Run:
    """Spark's own join over all files."""
    results = joined_by_spark(spark, data, WINDOW, per_trigger)
    writer = results.writeStream.format("parquet").option("path", str(output / "results"))
    query = (
        writer.option("checkpointLocation", str(output / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return Run(_batches(query), _sums(output / "results"))


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


def compare(
    progress: Progress, spark: SparkSession, data: Path, per_trigger: int
) -> list[dict[str, Figure]]:
    """Return both over the same files."""
    systems: dict[str, Callable[[SparkSession, Path, Path, int], Run]] = {
        "Muntin": run_muntin,
        "Spark's own join": run_spark,
    }
    warm_up = max(2, -(-WINDOW // (FILE_SECONDS * per_trigger)))
    runs = {}
    for name, run in systems.items():
        progress(f"{name}, {per_trigger} files per trigger")
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            runs[name] = run(spark, data, Path(folder), per_trigger)
    assert len({run.results for run in runs.values()}) == 1, (
        f"both must give the same results: {[run.results for run in runs.values()]}"
    )
    return [
        {
            "system": name,
            "files per trigger": per_trigger,
            "batches timed": len(run.batches) - warm_up,
            "rows per second": round(run.rate(warm_up)),
            "results": run.results[0],
        }
        for name, run in runs.items()
    ]


def bench_spark(progress: Progress, *, quick: bool = False) -> Report:
    """Five files and one file per trigger."""
    files, keys = (8, 600_000) if quick else (40, 600_000)
    rows: list[dict[str, Figure]] = []
    for per_trigger, count in ((2, files),) if quick else ((5, files), (1, 16)):
        data = Path(tempfile.mkdtemp(prefix="muntin-bench-"))
        try:
            progress(f"writing {count} files of {FILE_SECONDS * RATE:,} rows for each stream")
            write_files(data, Streams(RATE, keys, FILE_SECONDS, count))
            rows += compare(progress, bench_session(), data, per_trigger)
        finally:
            shutil.rmtree(data, ignore_errors=True)
    rates = [float(row["rows per second"]) for row in rows]
    ratios = [round(ours / theirs, 2) for ours, theirs in zip(rates[::2], rates[1::2], strict=True)]
    claims = [
        Claim(
            "rows per second over those of Spark's own join, five files per trigger",
            ratios[0],
            12.0,
            "at least",
        )
    ]
    if len(ratios) > 1:
        claims.append(Claim("the same, one file per trigger", ratios[1], 7.0, "at least"))
    return Report(
        "spark",
        "How does Muntin on Spark compare with Spark's own stream-stream join?",
        rows,
        claims,
    )
