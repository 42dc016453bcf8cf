"""The runs of :mod:`benchmarks.spark_overload`: capacity, Muntin, and Spark's own join."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.report import Progress
from benchmarks.spark_overload_input import (
    SECOND,
    STREAMS,
    Feeder,
    Integers,
    Ramp,
    Rows,
)
from benchmarks.spark_runs import PARTITIONS, use_own_store
from muntin.spark.api import SparkEngine
from muntin.spark.batch_results import BatchResults
from muntin.spark.sinks import Sink


@dataclass
class WatchingSink(Sink):
    """Counts results by the second of their newest row, and keeps the age of their oldest row.

    The age is relative to the newest row of the batch.
    """

    start: int
    seconds: int
    made: Integers = field(init=False)
    oldest: list[float] = field(default_factory=list)
    done: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.made = np.zeros(self.seconds + 1, np.int64)

    def write(self, batch_results: BatchResults, batch: int) -> None:
        """Take a batch."""
        if batch in self.done or not len(batch_results):
            return
        results = batch_results.table()
        self.done.add(batch)
        moments = results.column("_ts").cast(pa.int64()).to_numpy()
        self.made += np.bincount(
            np.clip((moments - self.start) // SECOND, 0, self.seconds), minlength=self.seconds + 1
        )
        first = min(pc.min(results.column(name)).cast(pa.int64()).as_py() for name in "abc")
        self.oldest.append((int(moments.max()) - first) / SECOND)


@dataclass(frozen=True)
class MicroBatch:
    """One batch: begin and end in seconds from the start of feeding, duration, final backlog."""

    began: float
    seconds: float
    rows: int
    lag: float


def batches_of(
    streaming: StreamingQuery, rows: Rows, start: int, read: Mapping[int, int] | None = None
) -> list[MicroBatch]:
    """Return the batches of a streaming query; each is as far behind as the last row it has read.

    ``read`` has the rows read up to each batch, where Spark does not know them: Muntin reads whole
    files.
    """
    every = np.sort(np.concatenate(list(rows.times.values())))
    found, before = [], 0
    for progress in streaming.recentProgress:
        batch = int(progress["batchId"])
        so_far = before + int(progress["numInputRows"]) if read is None else read.get(batch, before)
        if so_far <= before:
            continue
        began = datetime.fromisoformat(progress["timestamp"]).timestamp() - start / SECOND
        seconds = progress["durationMs"]["triggerExecution"] / 1_000
        last = every[min(so_far, len(every)) - 1] / SECOND
        found.append(MicroBatch(began, seconds, so_far - before, began + seconds - last))
        before = so_far
    return found


def declare(name: str, folder: Path, per_trigger: int | None = None) -> str:
    """Return the statement by which Muntin reads the files."""
    limit = f", maxFilesPerTrigger = '{per_trigger}'" if per_trigger else ""
    return (
        f"CREATE STREAM {name} (k BIGINT, ts TIMESTAMP) WITH (format = 'parquet', path = "
        f"'{folder / name}', time = 'ts'{limit})"
    )


def sql(ramp: Ramp) -> str:
    """Return the join."""
    return (
        "SELECT A.ts AS a, B.ts AS b, C.ts AS c FROM A, B, C WHERE A.k = B.k AND B.k = C.k "
        f"WINDOW {ramp.window} SECONDS FRESHNESS {ramp.freshness} SECONDS"
    )


def capacity_of(spark: SparkSession, ramp: Ramp, progress: Progress) -> float:
    """Return the rows per second and stream at which a batch takes a trigger interval.

    The rate grows until a batch takes longer; the result is interpolated between the last two.
    """
    before: tuple[float, float] | None = None
    rate = float(ramp.first_rate)
    while True:
        seconds = _batch_seconds(spark, ramp, rate)
        progress(
            f"{rate:,.0f} rows per second of each stream: a batch of {ramp.interval} s takes "
            f"{seconds:.2f} s"
        )
        if seconds > ramp.interval:
            if before is None:
                return rate * ramp.interval / seconds
            # Between the two by logarithms, since the number of results grows by a power of the
            # rate.
            low, high = np.log(before[1]), np.log(seconds)
            return float(
                np.exp(np.interp(np.log(ramp.interval), [low, high], np.log([before[0], rate])))
            )
        before = rate, seconds
        rate *= 2 if seconds > ramp.interval / 4 else 3


def _batch_seconds(spark: SparkSession, ramp: Ramp, rate: float) -> float:
    """Return the seconds that a batch of one interval takes with full windows."""
    batches = 3 + -(-ramp.window // ramp.interval)
    steady = replace(ramp, phases=(batches * ramp.interval, 0, 0), calm=1.0)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        feeder = Feeder(
            Rows.drawn(steady, rate), steady, Path(folder) / "data", start=3_600 * SECOND
        )
        for number in range(batches):
            for name in STREAMS:
                feeder.write(name, number, number * ramp.interval, (number + 1) * ramp.interval)
        engine = SparkEngine(spark, checkpoint=Path(folder) / "checkpoint", partitions=PARTITIONS)
        for name in STREAMS:
            engine.execute(declare(name, Path(folder) / "data", 1))
        engine.query(sql(ramp), name="q", sink=WatchingSink(feeder.start, steady.seconds))
        engine.process_available()
        assert engine.streaming is not None, "it ran"
        durations = [
            batch.seconds for batch in batches_of(engine.streaming, feeder.rows, feeder.start)
        ]
        engine.stop()
    return median(durations[-3:])


@dataclass(frozen=True)
class Adapted:
    """A run of Muntin: its batches, its results, and its overload report after each batch."""

    batches: list[MicroBatch]
    sink: WatchingSink
    told: Sequence[dict[str, object]]


def run_muntin(spark: SparkSession, ramp: Ramp, rows: Rows) -> Adapted:
    """Feed Muntin."""
    told: list[dict[str, object]] = []
    read: dict[int, int] = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        feeder = Feeder(rows, ramp, Path(folder) / "data")

        def observe(progress: dict[str, Any]) -> None:
            muntin = progress["muntin"]
            read[int(progress["batchId"])] = sum(
                stream["rows"] for stream in muntin["streams"].values()
            ) - len(STREAMS)
            told.append(
                {
                    "seconds": time.time() - feeder.start / SECOND,
                    **muntin["queries"]["q"].get("overload", {}),
                }
            )

        engine = SparkEngine(
            spark,
            checkpoint=Path(folder) / "checkpoint",
            partitions=PARTITIONS,
            trigger=f"{ramp.interval} seconds",
            on_progress=observe,
            overload="adapt",
        )
        for name in STREAMS:
            engine.execute(declare(name, Path(folder) / "data"))
        sink = WatchingSink(0, ramp.seconds)
        engine.query(sql(ramp), name="q", sink=sink)
        engine.start()
        feeder.warm_up(lambda: len(STREAMS) + max(read.values(), default=-len(STREAMS)))
        with feeder.feeding():
            sink.start = feeder.start
            streaming = engine.streaming
            assert streaming is not None, "it runs"
            _wait_for(lambda: max(read.values(), default=0), ramp, feeder, streaming)
        batches = batches_of(streaming, rows, feeder.start, read)
        engine.stop()
    return Adapted(batches, sink, told)


def run_spark(spark: SparkSession, ramp: Ramp, rows: Rows) -> list[MicroBatch]:
    """Feed Spark's join.

    If it has not read all rows in time, the last entry has its backlog.
    """
    use_own_store(spark)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        feeder = Feeder(rows, ramp, Path(folder) / "data")
        joined = _joined_by_spark(spark, Path(folder) / "data", ramp)
        writer = joined.writeStream.outputMode("append").option(
            "checkpointLocation", str(Path(folder) / "checkpoint")
        )
        streaming = writer.format("noop").trigger(processingTime=f"{ramp.interval} seconds").start()
        seen: dict[int, int] = {}

        def rows_read() -> int:
            seen.update(
                {
                    int(progress["batchId"]): int(progress["numInputRows"])
                    for progress in streaming.recentProgress
                }
            )
            return sum(seen.values()) - len(STREAMS)

        feeder.warm_up(lambda: len(STREAMS) + rows_read())
        with feeder.feeding():
            _wait_for(rows_read, ramp, feeder, streaming)
        read = {
            batch: sum(rows for earlier, rows in seen.items() if earlier <= batch) - len(STREAMS)
            for batch in seen
        }
        batches = batches_of(streaming, rows, feeder.start, read)
        every = np.sort(np.concatenate(list(rows.times.values())))
        if rows_read() < len(every):
            waited = time.time() - feeder.start / SECOND
            batches.append(
                MicroBatch(waited, 0.0, 0, waited - float(every[max(rows_read() - 1, 0)]) / SECOND)
            )
        streaming.stop()
    return batches


def _joined_by_spark(spark: SparkSession, data: Path, ramp: Ramp) -> DataFrame:
    frames = {}
    for name in STREAMS:
        reader = spark.readStream.schema("k BIGINT, ts TIMESTAMP_NTZ").parquet(str(data / name))
        frames[name] = reader.selectExpr(
            f"k AS k{name}", f"CAST(ts AS TIMESTAMP) AS t{name}"
        ).withWatermark(f"t{name}", "0 seconds")

    span = f"INTERVAL {ramp.window} SECONDS"
    near = "kA = k{0} AND tA > t{0} - " + span + " AND tA < t{0} + " + span
    # Spark allows one time with a watermark in what it joins further: that of B continues as a
    # number.
    pairs = (
        frames["A"]
        .join(frames["B"], on=expr(near.format("B")))
        .selectExpr("kA", "tA", "unix_micros(tB) AS b")
    )
    together = expr(f"{near.format('C')} AND abs(b - unix_micros(tC)) < {ramp.window * SECOND}")
    return pairs.join(frames["C"], on=together).selectExpr("tA", "b", "tC")


def _wait_for(
    rows_read: Callable[[], int], ramp: Ramp, feeder: Feeder, streaming: StreamingQuery
) -> None:
    """Wait until all rows that were fed are read, or until patience runs out."""
    whole = sum(len(times) for times in feeder.rows.times.values())
    until = time.monotonic() + ramp.seconds + ramp.patience
    while time.monotonic() < until and rows_read() < whole:
        error = streaming.exception()
        if error is not None:
            raise error
        time.sleep(0.2)
