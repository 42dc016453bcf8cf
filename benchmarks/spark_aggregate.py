"""A sliding GROUP BY of Muntin on Spark against Spark's ``window()``.

Files, session and results are the same.

One stream of 10,000 rows per second, 10,000 groups, SUM, COUNT, MIN and MAX over the last 60 s at
every second, as parquet files of ten seconds each; both write their results as parquet. Spark's own
way is ``groupBy(window(ts, '60 seconds', '1 second'), k)`` in append mode: the whole answer at
every second, once. Muntin gives that with EMIT SNAPSHOT, and with EMIT CHANGES the groups that have
changed. No row is at a whole second, where the two count differently. Rows per second are the input
of a micro-batch over the time Spark says it took, the median of the batches with full windows.
Results must agree: their number, the sums of all columns, and those of the answers that the changes
add up to.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.functions import count, lit, window
from pyspark.sql.functions import max as max_
from pyspark.sql.functions import min as min_
from pyspark.sql.functions import sum as sum_
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.report import Claim, Figure, Progress, Report
from benchmarks.spark_queries import temporary_folder
from benchmarks.spark_runs import PARTITIONS, START, bench_session, use_own_store
from muntin.spark.api import SparkEngine
from muntin.testing.generators import uniform_stream

_SECOND = 1_000_000
_FIGURES = ("total", "n", "least", "most")
_SELECT = (
    "SELECT k, SUM(v) AS total, COUNT(*) AS n, MIN(v) AS least, MAX(v) AS most FROM A GROUP BY k"
)
OURS = "Muntin, the answer at every second"
CHANGES = "Muntin, its changes"
THEIRS = "Spark's own window()"


@dataclass(frozen=True)
class Sizes:
    """Rows per second, groups, seconds of the window and of a file, files, files per trigger."""

    rate: int = 10_000
    groups: int = 10_000
    window: int = 60
    file_seconds: int = 10
    files: int = 20
    per_trigger: int = 2

    @property
    def warm_up(self) -> int:
        """Batches that are left out: those that fill the window, and at least two."""
        return max(2, -(-self.window // (self.file_seconds * self.per_trigger)))

    @property
    def last(self) -> int:
        """The last second that is complete, in microseconds."""
        return START + (self.file_seconds * self.files - 1) * _SECOND


QUICK = Sizes(rate=200, groups=20, window=4, file_seconds=2, files=6)


@dataclass(frozen=True)
class Run:
    """Rows and milliseconds of every batch, the number of output rows, and sums over answers."""

    batches: list[tuple[int, int]]
    rows: int
    sums: tuple[int, ...]

    def rate(self, warm_up: int) -> float:
        """Return rows per second after warm-up, the median over batches."""
        return median(rows / milliseconds * 1_000 for rows, milliseconds in self.batches[warm_up:])


def write_files(folder: Path, sizes: Sizes) -> None:
    """Write the stream as files in time order.

    Values are integers, so that sums do not depend on the order.
    """
    rows = sizes.rate * sizes.file_seconds
    stream = uniform_stream(
        rows * sizes.files, sizes.rate, sizes.groups, 1, start=START + _SECOND // sizes.rate // 2
    )
    values = pc.cast(pc.multiply(stream.column("v"), 1_000_000), pa.int64(), safe=False)
    stream = stream.set_column(1, "v", values)
    folder.mkdir(parents=True)
    for number in range(sizes.files):
        path = folder / f"{number:05d}.parquet"
        pq.write_table(stream.slice(number * rows, rows), path)
        os.utime(path, (number + 1_000, number + 1_000))


def run_muntin(spark: SparkSession, data: Path, output: Path, sizes: Sizes, emit: str) -> Run:
    """Our GROUP BY over all files."""
    engine = SparkEngine(spark, checkpoint=output / "checkpoint", partitions=PARTITIONS)
    engine.execute(
        "CREATE STREAM A (k BIGINT, v BIGINT, ts TIMESTAMP) WITH (format = 'parquet', path = "
        f"'{data}', time = 'ts', "
        f"maxFilesPerTrigger = '{sizes.per_trigger}')"
    )
    sql = f"{_SELECT} WINDOW {sizes.window} SECONDS EVERY 1 SECOND EMIT {emit}"
    engine.query(sql, name="groups", sink={"format": "parquet", "path": str(output / "results")})
    engine.process_available()
    assert engine.streaming is not None, "it ran"
    found = _results(output / "results")
    times = found.column("_ts").cast(pa.int64()).to_numpy()
    signs = np.where(pc.equal(found.column("_op"), "+").to_numpy(), 1, -1)
    # A change counts in every answer from its own second on; a row of an answer counts in that one.
    weights = signs * ((sizes.last - times) // _SECOND + 1 if emit == "CHANGES" else 1)
    return Run(
        _batches(engine.streaming, sizes), len(found), _sums(found, weights * (times <= sizes.last))
    )


def run_spark(spark: SparkSession, data: Path, output: Path, sizes: Sizes) -> Run:
    """Spark's own sliding windows over all files."""
    use_own_store(spark)
    reader = spark.readStream.schema("k BIGINT, v BIGINT, ts TIMESTAMP_NTZ").option(
        "maxFilesPerTrigger", sizes.per_trigger
    )
    rows = (
        reader.parquet(str(data))
        .selectExpr("k", "v", "CAST(ts AS TIMESTAMP) AS ts")
        .withWatermark("ts", "0 seconds")
    )
    grouped = rows.groupBy(window("ts", f"{sizes.window} seconds", "1 second").alias("w"), "k")
    figures = (
        sum_("v").alias("total"),
        count(lit(1)).alias("n"),
        min_("v").alias("least"),
        max_("v").alias("most"),
    )
    answers = grouped.agg(*figures).selectExpr("w.end AS at", "k", *_FIGURES)
    writer = answers.writeStream.format("parquet").option("path", str(output / "results"))
    query = (
        writer.option("checkpointLocation", str(output / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = _results(output / "results")
    times = found.column("at").cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    return Run(
        _batches(query, sizes), len(found), _sums(found, (times <= sizes.last).astype(np.int64))
    )


def _results(folder: Path) -> pa.Table:
    return ds.dataset(folder, format="parquet", exclude_invalid_files=True).to_table()


def _sums(found: pa.Table, weights: npt.NDArray[np.int64]) -> tuple[int, ...]:
    """Return the sums of all columns over all answers."""
    columns = [found.column(name).cast(pa.int64()).to_numpy() for name in ("k", *_FIGURES)]
    return tuple(int((column * weights).sum()) for column in columns)


def _batches(query: StreamingQuery, sizes: Sizes) -> list[tuple[int, int]]:
    file = sizes.rate * sizes.file_seconds
    found = []
    for progress in query.recentProgress:
        rows = sum(source.numInputRows for source in progress.sources)
        # Where whole files are read, they are what Spark counts.
        found.append(
            (rows if rows >= file else rows * file, int(progress.durationMs["triggerExecution"]))
        )
    return [(rows, milliseconds) for rows, milliseconds in found if rows]


def bench_spark_aggregate(progress: Progress, *, quick: bool = False) -> Report:
    """Return all three over the same files, one after the other."""
    sizes = QUICK if quick else Sizes()
    systems: dict[str, Callable[[SparkSession, Path, Path, Sizes], Run]] = {
        OURS: partial(run_muntin, emit="SNAPSHOT"),
        CHANGES: partial(run_muntin, emit="CHANGES"),
        THEIRS: run_spark,
    }
    runs = {}
    with temporary_folder() as folder:
        progress(f"writing {sizes.files} files of {sizes.rate * sizes.file_seconds:,} rows")
        write_files(folder / "data", sizes)
        spark = bench_session()
        for number, (name, run) in enumerate(systems.items()):
            progress(name)
            runs[name] = run(spark, folder / "data", folder / str(number), sizes)
    assert len({run.sums for run in runs.values()}) == 1, (
        f"all must give the same answers: {[run.sums for run in runs.values()]}"
    )
    assert runs[OURS].rows == runs[THEIRS].rows, (
        f"both give each answer once: {[run.rows for run in runs.values()]}"
    )
    rates = {name: run.rate(sizes.warm_up) for name, run in runs.items()}
    rows: list[dict[str, Figure]] = [
        {
            "system": name,
            "batches timed": len(run.batches) - sizes.warm_up,
            "rows per second": round(rates[name]),
            "results": run.rows,
        }
        for name, run in runs.items()
    ]
    return Report(
        "spark-aggregate",
        "How does a sliding GROUP BY of Muntin on Spark compare with Spark's own sliding windows?",
        rows,
        [
            Claim(
                "rows per second over those of Spark's own window(), the answer at every second",
                _ratio(rates, OURS),
                8.0,
                "at least",
            ),
            Claim("the same, its changes at every second", _ratio(rates, CHANGES), 8.0, "at least"),
        ],
    )


def _ratio(rates: dict[str, float], ours: str) -> float:
    return round(rates[ours] / rates[THEIRS], 2)
