"""The driver's share of the work when many results are written, on a standalone cluster.

Seven windows over two streams with few keys give about 33 million results, which go to parquet
folders. The cluster has two workers of one core each, so the driver, its Java and its Python, is
apart from everything that executors do. CPU seconds are those of the processes in ``/proc``, over
the batches after the first ones. Memory of the driver is the resident size of its Python process
and, for its Java, the heap in use after a collection.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.report import Claim, Figure, Progress, Report, resident_bytes
from benchmarks.spark_queries import temporary_folder
from benchmarks.spark_runs import Streams, declare_stream, join_sql, write_files
from benchmarks.spark_shared import WINDOWS
from muntin.spark.api import SparkEngine
from muntin.spark.session import local_session
from muntin.testing.cluster import SETTINGS, Cluster
from muntin.testing.processes import cpu_seconds_of, descendants

_EXECUTOR = 3_000
"""Megabytes of an executor."""


@dataclass(frozen=True)
class Sizes:
    """Files of each stream, files of the first run of the engine, the streams and windows."""

    files: int = 20
    warm_up: int = 6
    rate: int = 1_000
    file_seconds: int = 60
    keys: int = 60_000
    windows: tuple[float, ...] = WINDOWS


QUICK = Sizes(4, 2, 200, 2, 200, (1, 4))


@dataclass
class Usage:
    """CPU seconds and resident bytes at the ends of batches, and the heap at two of them."""

    driver: list[float] = field(default_factory=list)
    executors: list[float] = field(default_factory=list)
    python: list[int] = field(default_factory=list)
    heap: list[int] = field(default_factory=list)

    def share(self, since: int) -> float:
        """Return the driver's share of the CPU after a batch."""
        driver = self.driver[-1] - self.driver[since]
        return driver / (driver + self.executors[-1] - self.executors[since])


@dataclass
class Observer:
    """Notes after every batch what the driver and the executors use.

    Java collects garbage before the first batch that counts and after the last one, so that the
    measured CPU has none of it.
    """

    sizes: Sizes
    cluster: Cluster
    progress: Progress
    usage: Usage = field(default_factory=Usage)
    batches: int = 0

    def __call__(self, _: object) -> None:
        """Note the usage after another batch."""
        self.batches += 1
        self.progress(f"batch {self.batches} of {self.sizes.files}")
        if self.batches == self.sizes.warm_up:
            self.usage.heap.append(used_heap())
        self.usage.python.append(resident_bytes())
        others = set(self.cluster.processes())
        ours = {os.getpid(), *descendants(os.getpid())} - others
        self.usage.executors.append(sum(map(cpu_seconds_of, others)))
        self.usage.driver.append(sum(map(cpu_seconds_of, ours)))
        if self.batches == self.sizes.files:
            self.usage.heap.append(used_heap())


def used_heap() -> int:
    """Return the bytes in use in the heap of the driver's Java, after a collection."""
    spark = SparkSession.getActiveSession()
    assert spark is not None, "an engine runs in it"
    java = spark.sparkContext._jvm.java.lang  # type: ignore[union-attr]  # noqa: SLF001
    java.System.gc()
    runtime = java.Runtime.getRuntime()
    return int(runtime.totalMemory()) - int(runtime.freeMemory())


def run(progress: Progress, sizes: Sizes, cluster: Cluster, folder: Path) -> tuple[Usage, int]:
    """Run the queries file by file; return what was used, and the number of results."""
    settings = {
        **SETTINGS,
        "spark.driver.memory": "2g",
        "spark.executor.memory": f"{_EXECUTOR - 200}m",
    }
    spark = local_session(cluster.workers, settings, cluster.master)
    data = folder / "data"
    write_files(data, Streams(sizes.rate, sizes.keys, sizes.file_seconds, sizes.files))
    observer = Observer(sizes, cluster, progress)
    engine = SparkEngine(
        spark,
        checkpoint=folder / "checkpoint",
        partitions=cluster.workers,
        on_progress=observer,
    )
    for name in "AB":
        engine.execute(declare_stream(name, data, 1))
    places = [folder / "results" / str(place) for place in range(len(sizes.windows))]
    for place, window in zip(places, sizes.windows, strict=True):
        sink = {"format": "parquet", "path": str(place)}
        engine.query(join_sql(window), name=f"q{place.name}", sink=sink)
    engine.process_available()
    assert observer.batches == sizes.files, "a batch for every pair of files"
    results = sum(spark.read.parquet(str(place)).count() for place in places)
    spark.stop()
    return observer.usage, results


def _row(measured: str, unit: str, figures: Sequence[float]) -> dict[str, Figure]:
    return {
        "measured": measured,
        "after the first batches": round(figures[0], 1),
        "at the end": round(figures[-1], 1),
        "most": round(max(figures), 1),
        "unit": unit,
    }


def bench_spark_driver(progress: Progress, *, quick: bool = False) -> Report:
    """Measure CPU and memory of the driver."""
    sizes = QUICK if quick else Sizes()
    with temporary_folder() as folder:
        java = "" if not quick else "-XX:TieredStopAtLevel=1"
        with Cluster(folder / "cluster", memory=_EXECUTOR, java=java) as cluster:
            usage, results = run(progress, sizes, cluster, folder)
    since = sizes.warm_up - 1
    rows = [
        _row("CPU of the driver", "s", usage.driver[since:]),
        _row("CPU of master, workers and executors", "s", usage.executors[since:]),
        _row("driver: Python", "MB", [size / 1e6 for size in usage.python[since:]]),
        _row("driver: Java's heap", "MB", [size / 1e6 for size in usage.heap]),
        _row("results of all batches", "rows", [results]),
    ]
    grown = usage.python[-1] / usage.python[since]
    heap = usage.heap[-1] / usage.heap[0]
    return Report(
        "spark-driver",
        "How much of the work does the driver do when there are many results?",
        rows,
        [
            Claim("the driver's share of all CPU", round(usage.share(since), 3), 0.1),
            Claim("memory of the driver's Python, end over beginning", round(grown, 2), 1.1),
            Claim("heap of the driver's Java, end over beginning", round(heap, 2), 1.1),
        ],
    )
