"""Response times on Spark in bursts: seven windows over two streams, LWO beside MQT.

Results come through ``subscribe``.

A micro-batch is a burst: its rows reach a partition at once. The windows are filled by one large
batch, which is not measured; then bursts of two sizes come in turn. For every result the time from
when its partition got its share to the call of the subscriber is taken, and beside it the time
until the sink has the batch. Both schedulers run over the same files in one session, one after the
other, in the order LWO, MQT, MQT, LWO; the results of each query must be as many with the same sum
of keys.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.plots import Plot
from benchmarks.report import Claim, Figure, Progress, Report
from benchmarks.spark_runs import PARTITIONS, START, bench_session, declare_stream, join_sql
from muntin.runtime.metrics import ResponseTimes
from muntin.spark.api import SparkEngine
from muntin.spark.exchange.marks import Mark
from muntin.spark.sinks import Sink
from muntin.testing.generators import uniform_stream

SCHEDULERS = ("lwo", "mqt")
_BUFFER = 1 << 30
"""Bytes that may wait for a subscriber: nothing is to be left out."""


@dataclass(frozen=True)
class Bursts:
    """The input: windows, rows per second and stream, keys, seconds per burst, bursts, runs."""

    windows: tuple[int, ...] = (1, 5, 15, 30, 60, 300, 600)
    rate: int = 1_000
    keys: int = 60_000
    seconds: tuple[int, ...] = (5, 50)
    times: int = 4
    runs: tuple[str, ...] = (*SCHEDULERS, *reversed(SCHEDULERS))

    def batches(self) -> list[int]:
        """Return the seconds of each micro-batch: fill the windows, warm up, then bursts."""
        return [
            max(self.windows),
            self.seconds[0],
            *(seconds for _ in range(self.times) for seconds in self.seconds),
        ]


FULL = Bursts()
QUICK = Bursts((1, 5, 20), 500, 2_000, (2, 10), 1, SCHEDULERS)
_NOT_MEASURED = 2


@dataclass
class Waits:
    """Times seen by subscribers, by window and burst seconds, and by sinks, by burst."""

    batches: Sequence[int]
    times: dict[tuple[int, int], ResponseTimes] = field(
        default_factory=lambda: defaultdict(ResponseTimes)
    )
    sums: dict[int, tuple[int, int]] = field(default_factory=lambda: defaultdict(lambda: (0, 0)))
    until_sink: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    _arrived: dict[int, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def subscriber(self, window: int) -> Callable[[pa.RecordBatch, Mark], None]:
        """Return a subscriber of the query with a window."""

        def take(batch: pa.RecordBatch, mark: Mark) -> None:
            moment = time.time()
            with self._lock:
                self._arrived[mark.batch] = min(
                    self._arrived.get(mark.batch, mark.arrived), mark.arrived
                )
                count, total = self.sums[window]
                self.sums[window] = (
                    count + len(batch),
                    total + (pc.sum(batch.column("k")).as_py() or 0),
                )
                if mark.batch >= _NOT_MEASURED:
                    self.times[window, self.batches[mark.batch]].add(
                        moment, mark.arrived, len(batch)
                    )

        return take

    def sink_has(self, batch: int) -> None:
        """Note that a sink was given a batch."""
        moment = time.time()
        with self._lock:
            if batch >= _NOT_MEASURED and batch in self._arrived:
                self.until_sink[self.batches[batch]].append(moment - self._arrived[batch])


class NotingSink(Sink):
    """Notes when it gets a batch, and keeps nothing."""

    def __init__(self, waits: Waits) -> None:
        self._waits = waits

    def write(self, results: Any, batch: int) -> None:
        """Take a batch."""
        del results
        self._waits.sink_has(batch)


def write_bursts(folder: Path, bursts: Bursts) -> None:
    """Write the streams A and B as files, one per micro-batch."""
    batches = bursts.batches()
    for seed, name in enumerate("AB", 1):
        stream = uniform_stream(
            sum(batches) * bursts.rate, bursts.rate, bursts.keys, seed, start=START
        )
        (folder / name).mkdir(parents=True)
        done = 0
        for number, seconds in enumerate(batches):
            path = folder / name / f"{number:05d}.parquet"
            pq.write_table(stream.slice(done, seconds * bursts.rate), path)
            os.utime(path, (number + 1_000, number + 1_000))
            done += seconds * bursts.rate


def run(
    spark: SparkSession,
    data: Path,
    bursts: Bursts,
    scheduler: str,
    sql: Callable[[int], str] = join_sql,
) -> Waits:
    """Return all queries over all files under a scheduler."""
    waits = Waits(bursts.batches())
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as checkpoint:
        engine = SparkEngine(
            spark, checkpoint=checkpoint, partitions=PARTITIONS, scheduler=scheduler
        )
        for name in "AB":
            engine.execute(declare_stream(name, data, 1))
        for window in bursts.windows:
            query = engine.query(sql(window), name=f"within_{window}", sink=NotingSink(waits))
            query.subscribe(waits.subscriber(window), buffer=_BUFFER)
        engine.process_available()
        assert engine.progress is not None, "it ran"
        told = engine.progress["muntin"]
    missed = [
        one
        for query in told["queries"].values()
        for one in query["subscribers"]
        if one["rows_left_out"] or one["failures"]
    ]
    assert not missed, f"subscribers must get everything: {missed}"
    assert not told["unsent"], f"{told['unsent']} results did not come"
    assert {window: count for window, (count, _) in waits.sums.items()} == {
        window: told["results"][f"within_{window}"] for window in bursts.windows
    }, "subscribers get as many results as sinks"
    return waits


def measure(
    progress: Progress,
    spark: SparkSession,
    bursts: Bursts,
    sql: Callable[[int], str] = join_sql,
) -> dict[str, list[Waits]]:
    """Return the runs of each scheduler."""
    found: dict[str, list[Waits]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="muntin-bench-", ignore_cleanup_errors=True) as folder:
        progress(f"writing {len(bursts.batches())} files for each stream")
        write_bursts(Path(folder), bursts)
        for number, scheduler in enumerate(bursts.runs, 1):
            progress(f"{scheduler}, run {number} of {len(bursts.runs)}")
            found[scheduler].append(run(spark, Path(folder), bursts, scheduler, sql))
    sums = [waits.sums for some in found.values() for waits in some]
    assert all(one == sums[0] for one in sums), f"schedulers must give the same results: {sums}"
    return found


def together(runs: Sequence[Waits], window: int, seconds: int) -> ResponseTimes:
    """Return the times of a window in bursts of some seconds, of all runs."""
    times = ResponseTimes()
    for waits in runs:
        times.merge(waits.times[window, seconds])
    return times


def bench_spark_bursts(progress: Progress, *, quick: bool = False) -> Report:
    """Return both schedulers, bursts of all sizes, every window."""
    bursts = QUICK if quick else FULL
    found = measure(progress, bench_session(), bursts)
    rows: list[dict[str, Figure]] = []
    for seconds in bursts.seconds:
        for scheduler, runs in found.items():
            until_sink = mean(wait for waits in runs for wait in waits.until_sink[seconds])
            for window in bursts.windows:
                times = together(runs, window, seconds)
                told = {name: round(1_000 * value, 1) for name, value in times.stats().items()}
                rows.append(
                    {
                        "rows of a burst": 2 * seconds * bursts.rate,
                        "scheduler": scheduler,
                        "window seconds": window,
                        "results": times.count,
                        "mean ms": told["mean"],
                        "p95 ms": told["p95"],
                        "max ms": told["max"],
                        "sink ms": round(1_000 * until_sink, 1),
                    }
                )
    largest = 2 * max(bursts.seconds) * bursts.rate
    means = {
        name: [
            float(row["mean ms"])
            for row in rows
            if (row["rows of a burst"], row["scheduler"]) == (largest, name)
        ]
        for name in found
    }
    lwo, mqt = means["lwo"], means["mqt"]
    claims = [
        Claim(
            "mean response time under MQT over LWO, smallest window, largest burst",
            round(mqt[0] / lwo[0], 3),
            0.5,
        ),
        Claim("the same, averaged over the queries", round(mean(mqt) / mean(lwo), 3), 1.0),
    ]
    series = {
        name.upper(): list(zip(map(str, bursts.windows), values, strict=True))
        for name, values in means.items()
    }
    plot = Plot(
        "spark-bursts",
        f"Response time on Spark, bursts of {largest:,} rows",
        "window, seconds",
        "mean until the subscriber has it, ms",
        series,
        kind="bar",
    )
    question = "How long do results of each window take on Spark in bursts, under LWO and MQT?"
    return Report("spark-bursts", question, rows, claims, plots=[plot])
