"""Overload on Spark: a three-way join whose input rises to three times the capacity, and back.

A feeder writes files in the time of the clock, so rows are as old as they would be from a live
source. What the machine holds is found first: the rate at which a batch of one trigger interval
takes one trigger interval. Then the same rows are fed to Muntin with ``overload = 'adapt'`` and to
Spark's own join. For every batch its duration and how far it is behind are taken; for Muntin also
which share of the results of each second was made, and how old the oldest row of a result was. All
results that there could be are counted from the rows alone.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.plots import Plot
from benchmarks.report import Claim, Figure, Progress, Report
from benchmarks.spark_runs import PARTITIONS, bench_session, use_own_store
from muntin.spark.api import SparkEngine
from muntin.spark.sinks import Sink

Integers = npt.NDArray[np.int64]

STREAMS = "ABC"
_SECOND = 1_000_000
_SETTLING = 2
"""Batches after the load has changed in which it is being adapted to."""
_COMPLETE_AGAIN = 20
"""Seconds after the load has fallen until results are complete.

They cover detection, lifting the limits, and one window.
"""


@dataclass(frozen=True)
class Ramp:
    """The input: values, window, freshness and trigger interval; seconds per phase; loads.

    The load rises for ``rise`` seconds, stays, and falls for as long.
    """

    keys: int = 200
    window: int = 4
    freshness: int = 12
    interval: int = 2
    phases: tuple[int, int, int] = (16, 60, 40)
    rise: int = 20
    calm: float = 0.5
    over: float = 3.0
    first_rate: int = 200
    tick: float = 0.5
    patience: float = 60.0

    def rate(self, second: float, capacity: float) -> float:
        """Return rows per second of each stream at a second, for a capacity of the machine."""
        before, over, _ = self.phases
        risen = min(second - before, before + over - second) / self.rise
        return capacity * (self.calm + (self.over - self.calm) * min(max(risen, 0.0), 1.0))

    @property
    def reached(self) -> float:
        """The second at which as much comes as the machine holds."""
        return self.phases[0] + self.rise * (1 - self.calm) / (self.over - self.calm)

    @property
    def seconds(self) -> int:
        """How long it takes."""
        return sum(self.phases)


FULL = Ramp()
QUICK = Ramp(phases=(4, 6, 6), rise=2, patience=20.0)


@dataclass(frozen=True)
class Rows:
    """The rows of a ramp, each stream's times in microseconds from its beginning on, and values."""

    times: dict[str, Integers]
    values: dict[str, Integers]

    @classmethod
    def drawn(cls, ramp: Ramp, capacity: float) -> Rows:
        """Poisson arrivals with uniform values."""
        generator = np.random.default_rng(5)
        times, values = {}, {}
        for name in STREAMS:
            parts = [
                np.sort(
                    generator.integers(0, _SECOND, generator.poisson(ramp.rate(second, capacity)))
                )
                + second * _SECOND
                for second in range(ramp.seconds)
            ]
            times[name] = np.concatenate(parts)
            values[name] = generator.integers(0, ramp.keys, len(times[name]))
        return cls(times, values)

    def between(self, name: str, begin: float, end: float, start: int) -> pa.Table:
        """Return the rows of a stream between two seconds, with times from ``start`` on."""
        first, last = np.searchsorted(self.times[name], [begin * _SECOND, end * _SECOND])
        moments = pa.array(self.times[name][first:last] + start).cast(pa.timestamp("us"))
        return pa.table({"k": self.values[name][first:last], "ts": moments})

    @cached_property
    def _ordered(self) -> dict[str, Integers]:
        return {name: np.sort(self.values[name] * (1 << 40) + self.times[name]) for name in STREAMS}

    def results(self, ramp: Ramp) -> Integers:
        """Return for each second the number of results that its rows complete.

        It is the product of the rows of equal value inside the windows of the two other streams.
        """
        found = np.zeros(ramp.seconds, np.int64)
        for place, name in enumerate(STREAMS):
            product = np.ones(len(self.times[name]), np.int64)
            for other_place, other in enumerate(STREAMS):
                if other == name:
                    continue
                wanted = self.values[name] * (1 << 40) + self.times[name]
                # Of two rows of one instant that of the stream declared later completes the result.
                newest = np.searchsorted(
                    self._ordered[other], wanted, "right" if other_place < place else "left"
                )
                oldest = np.searchsorted(
                    self._ordered[other], wanted - ramp.window * _SECOND, "right"
                )
                product *= newest - oldest
            found += np.bincount(
                self.times[name] // _SECOND, product, minlength=ramp.seconds
            ).astype(np.int64)
        return found


@dataclass
class Feeder:
    """Writes rows as files when they are due; ``fed`` has the number of rows after each tick."""

    rows: Rows
    ramp: Ramp
    folder: Path
    start: int = 0
    _stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        for name in STREAMS:
            (self.folder / name).mkdir(parents=True)

    @contextmanager
    def feeding(self) -> Iterator[None]:
        """Feed from now on, until it is left."""
        self.start = time.time_ns() // 1_000
        thread = threading.Thread(target=self._feed, name="feeder", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join()

    def warm_up(self, rows_read: Callable[[], int]) -> None:
        """Run a first batch, which starts the workers: a row per stream that joins with nothing."""
        before = pa.array([time.time_ns() // 1_000 - 60 * _SECOND]).cast(pa.timestamp("us"))
        for place, name in enumerate(STREAMS):
            part = self.folder / name / ".first.parquet"
            pq.write_table(pa.table({"k": [-1 - place], "ts": before}), part)
            os.utime(part, (1, 1))
            part.rename(self.folder / name / "first.parquet")
        until = time.monotonic() + self.ramp.patience
        while time.monotonic() < until and rows_read() < len(STREAMS):
            time.sleep(0.1)

    def _feed(self) -> None:
        for number in range(round(self.ramp.seconds / self.ramp.tick)):
            due = self.start / _SECOND + (number + 1) * self.ramp.tick
            if self._stopped.wait(max(due - time.time(), 0)):
                return
            for name in STREAMS:
                self.write(name, number, number * self.ramp.tick, (number + 1) * self.ramp.tick)

    def write(self, name: str, number: int, begin: float, end: float) -> None:
        """Write the rows of a stream between two seconds as a file."""
        path = self.folder / name / f"{number:05d}.parquet"
        part = path.with_name(f".{path.name}")
        pq.write_table(self.rows.between(name, begin, end, self.start), part)
        os.utime(part, (number + 1_000, number + 1_000))
        part.rename(path)


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

    def write(self, results: pa.Table, batch: int) -> None:
        """Take a batch."""
        if batch in self.done or not len(results):
            return
        self.done.add(batch)
        moments = results.column("_ts").cast(pa.int64()).to_numpy()
        self.made += np.bincount(
            np.clip((moments - self.start) // _SECOND, 0, self.seconds), minlength=self.seconds + 1
        )
        first = min(pc.min(results.column(name)).cast(pa.int64()).as_py() for name in "abc")
        self.oldest.append((int(moments.max()) - first) / _SECOND)


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
        began = datetime.fromisoformat(progress["timestamp"]).timestamp() - start / _SECOND
        seconds = progress["durationMs"]["triggerExecution"] / 1_000
        last = every[min(so_far, len(every)) - 1] / _SECOND
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
    """Return how long a batch of one interval takes with full windows."""
    batches = 3 + -(-ramp.window // ramp.interval)
    steady = replace(ramp, phases=(batches * ramp.interval, 0, 0), calm=1.0)
    with tempfile.TemporaryDirectory() as folder:
        feeder = Feeder(
            Rows.drawn(steady, rate), steady, Path(folder) / "data", start=3_600 * _SECOND
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
    with tempfile.TemporaryDirectory() as folder:
        feeder = Feeder(rows, ramp, Path(folder) / "data")

        def hear(progress: dict[str, Any]) -> None:
            muntin = progress["muntin"]
            read[int(progress["batchId"])] = sum(
                stream["rows"] for stream in muntin["streams"].values()
            ) - len(STREAMS)
            told.append(
                {
                    "seconds": time.time() - feeder.start / _SECOND,
                    **muntin["queries"]["q"].get("overload", {}),
                }
            )

        engine = SparkEngine(
            spark,
            checkpoint=Path(folder) / "checkpoint",
            partitions=PARTITIONS,
            trigger=f"{ramp.interval} seconds",
            on_progress=hear,
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
    with tempfile.TemporaryDirectory() as folder:
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
            waited = time.time() - feeder.start / _SECOND
            batches.append(
                MicroBatch(waited, 0.0, 0, waited - float(every[max(rows_read() - 1, 0)]) / _SECOND)
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
    together = expr(f"{near.format('C')} AND abs(b - unix_micros(tC)) < {ramp.window * _SECOND}")
    return pairs.join(frames["C"], on=together).selectExpr("tA", "b", "tC")


def _wait_for(
    rows_read: Callable[[], int], ramp: Ramp, feeder: Feeder, streaming: StreamingQuery
) -> None:
    """Wait until all that was fed is read, or so long that it never will be."""
    whole = sum(len(times) for times in feeder.rows.times.values())
    until = time.monotonic() + ramp.seconds + ramp.patience
    while time.monotonic() < until and rows_read() < whole:
        error = streaming.exception()
        if error is not None:
            raise error
        time.sleep(0.2)


def bench_spark_overload(progress: Progress, *, quick: bool = False) -> Report:
    """Find what the machine holds, then ramp."""
    ramp = QUICK if quick else FULL
    spark = bench_session()
    capacity = ramp.first_rate * 2.0 if quick else capacity_of(spark, ramp, progress)
    rows = Rows.drawn(ramp, capacity)
    progress(f"Muntin, {capacity:,.0f} rows per second of each stream are what the machine holds")
    muntin = run_muntin(spark, ramp, rows)
    progress("Spark's own join")
    return report(ramp, capacity, rows, muntin, run_spark(spark, ramp, rows))


def report(
    ramp: Ramp, capacity: float, rows: Rows, muntin: Adapted, own: list[MicroBatch]
) -> Report:
    """Return what it shows."""
    runs, sink, told = (
        {"Muntin, adapt": muntin.batches, "Spark's own join": own},
        muntin.sink,
        muntin.told,
    )
    before, over, _ = ramp.phases
    possible = rows.results(ramp)
    share = sink.made[: ramp.seconds] / np.maximum(possible, 1)
    # Batches that began when there had been too much for two intervals.
    adapted = [
        batch
        for batch in runs["Muntin, adapt"]
        if ramp.reached + (_SETTLING + 1) * ramp.interval <= batch.began < before + over
    ]
    calm = share[
        before + over + _COMPLETE_AGAIN : -1
    ]  # the last rows of all wait for a later one of every stream
    table: list[dict[str, Figure]] = []
    for name, batches in runs.items():
        during = [batch for batch in batches if before <= batch.began < before + over]
        table.append(
            {
                "system": name,
                "rows/s held": round(capacity),
                "batches in overload": len(during),
                "longest batch, s": round(max((batch.seconds for batch in during), default=0.0), 2),
                "largest lag, s": round(max((batch.lag for batch in batches), default=0.0), 1),
                "share made in overload": "",
                "oldest row in a result, s": "",
            }
        )
    table[0]["share made in overload"] = round(float(share[before : before + over].mean()), 3)
    table[0]["oldest row in a result, s"] = round(max(sink.oldest, default=0.0), 2)
    largest = [float(row["largest lag, s"]) for row in table]
    return Report(
        "spark-overload",
        "What becomes of batches and results on Spark when three times as much comes as the "
        "machine holds?",
        table,
        [
            Claim(
                "duration of batches in overload over the trigger interval, largest of "
                f"{len(adapted)} after {_SETTLING} intervals",
                round(max((batch.seconds for batch in adapted), default=0.0) / ramp.interval, 3),
                1.0,
            ),
            Claim(
                "age of the oldest row in any result over the freshness",
                round(max(sink.oldest, default=0.0) / ramp.freshness, 3),
                1.0,
            ),
            Claim(
                f"share of the results made from {_COMPLETE_AGAIN} s after the load has fallen on, "
                "least second",
                round(float(calm.min(initial=1.0)), 4),
                1.0,
                "at least",
            ),
            Claim(
                "largest lag of Spark's own join over Muntin's",
                round(largest[1] / max(largest[0], 0.1), 1),
                2.0,
                "at least",
            ),
        ],
        plots=[
            Plot(
                "spark-overload-lag",
                f"Input ramped to {ramp.over:g} times what the machine holds, seconds {before} to "
                f"{before + over}",
                "seconds",
                "how far behind a batch is at its end, s",
                {
                    name: [(batch.began + batch.seconds, batch.lag) for batch in batches]
                    for name, batches in runs.items()
                },
            ),
            Plot(
                "spark-overload-share",
                f"Results made, input ramped to {ramp.over:g} times what the machine holds, "
                f"seconds {before} to {before + over}",
                "seconds",
                "share of all results",
                {
                    "Muntin, adapt": [
                        (float(second), float(value)) for second, value in enumerate(share)
                    ]
                },
            ),
        ],
        details=[
            *(
                {"system": name, "batches": [vars(batch) for batch in batches]}
                for name, batches in runs.items()
            ),
            {
                "told": [
                    {key: value for key, value in one.items() if key != "decisions"} for one in told
                ]
            },
        ],
    )
