"""Batches and changes of queries leave nothing behind: no thread, descriptor, file or memory.

``MUNTIN_BATCHES`` sets how many batches and changes are measured, after as many as it takes until
caches are full; ``pytest -s`` shows the measurements.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from muntin.spark import SparkEngine
from muntin.spark.sinks import Sink
from muntin.testing.processes import resident_bytes_of, state_servers
from tests.spark.support import CHANGES, JOIN, Folders, rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-2")]

BATCHES = int(os.environ.get("MUNTIN_BATCHES", "100"))
WARM_UP = 30
SLACK = 8
"""Threads and descriptors that come and go."""
MEGABYTES = 48
"""Growth of a process that is not a leak: allocators keep what they once had."""
PATIENCE = 120.0
"""Seconds in which surplus threads of Java must end; its pools keep idle ones for a minute."""
POOLS = ("block-manager-ask-thread-pool-", "block-manager-storage-async-thread-pool-")
SPARK_FILES = 500
"""Spark keeps two logs of the last 100 batches, with checksums; logs of sources for ten minutes."""
RETAINED = 700
"""Batches without rows that two partitions retain while no rows arrive."""


@dataclass(frozen=True)
class Usage:
    """What the driver, the state servers and the checkpoint use."""

    threads: int
    java_threads: int
    descriptors: int
    server_descriptors: int
    files: int
    spark_files: int
    driver_megabytes: int
    server_megabytes: int


class Discarding(Sink):
    """A sink without files."""

    def write(self, results: pa.Table, batch: int) -> None:
        del results, batch


def open_files(process: int) -> int:
    return len(list(Path(f"/proc/{process}/fd").iterdir()))


def megabytes(process: int) -> int:
    return resident_bytes_of(process) // 2**20


def java_threads(spark: SparkSession) -> int:
    """Return the number of Java's threads, without two pools of Spark's that grow to 100 each."""
    threads = spark._jvm.java.lang.Thread.getAllStackTraces().keySet()  # type: ignore[union-attr]
    return sum(not thread.getName().startswith(POOLS) for thread in threads)


def usage(spark: SparkSession, checkpoint: Path, *, before: Sequence[Usage] = ()) -> Usage:
    """Return what is used, once Java has no more threads than ``before`` or patience has ended."""
    deadline = time.monotonic() + PATIENCE
    while (
        before
        and java_threads(spark) > before[0].java_threads + SLACK
        and time.monotonic() < deadline
    ):
        time.sleep(1)
    gc.collect()
    running = state_servers(os.getpid())
    below = [path for path in checkpoint.rglob("*") if path.is_file()]
    of_spark = [path for path in below if "spark" in path.relative_to(checkpoint).parts]
    of_sources = [path for path in of_spark if "sources" in path.relative_to(checkpoint).parts]
    return Usage(
        threading.active_count(),
        java_threads(spark),
        open_files(os.getpid()),
        sum(map(open_files, running)),
        len(below) - len(of_spark),
        len(of_spark) - len(of_sources),
        megabytes(os.getpid()),
        sum(map(megabytes, running)),
    )


def check(before: Usage, after: Usage, *, files: int) -> None:
    """Fail if more is used than before; ``files`` of ours may be added."""
    print(f"\nbefore {asdict(before)}\nafter  {asdict(after)}")  # noqa: T201 (shown with -s)
    assert after.threads <= before.threads + SLACK
    assert after.java_threads <= before.java_threads + SLACK
    assert after.descriptors <= before.descriptors + SLACK
    assert after.server_descriptors <= before.server_descriptors + SLACK
    assert after.files <= before.files + files
    assert after.spark_files <= SPARK_FILES
    assert after.driver_megabytes <= before.driver_megabytes + MEGABYTES
    assert after.server_megabytes <= before.server_megabytes + 2 * MEGABYTES


def test_batches_leave_nothing_behind(spark: SparkSession, tmp_path: Path) -> None:
    folders, checkpoint = Folders(tmp_path / "in"), tmp_path / "checkpoint"
    engine = SparkEngine(spark, checkpoint=checkpoint, partitions=2)
    engine.execute(folders.declarations())
    engine.query(JOIN, name="pairs", sink=Discarding())
    engine.query(CHANGES, name="changes", sink=lambda *_: None)
    engine.query(
        "SELECT k, COUNT(*) AS n FROM A GROUP BY k WINDOW 3 SECONDS", "counts", Discarding()
    )
    engine.start()
    second = 0
    found: list[Usage] = []
    for count in (WARM_UP, BATCHES):
        for _ in range(count):
            second += 1
            for stream in "AB":
                folders.write(stream, rows([second, second + 0.5], start=second))
        engine.process_available(timeout=count * 10)
        found.append(usage(spark, checkpoint, before=found))
    assert engine.last_batch == WARM_UP + BATCHES - 1
    engine.stop()
    check(*found, files=20)


def test_changes_of_queries_leave_nothing_behind(spark: SparkSession, tmp_path: Path) -> None:
    folders, checkpoint = Folders(tmp_path / "in"), tmp_path / "checkpoint"
    engine = SparkEngine(spark, checkpoint=checkpoint, partitions=2)
    engine.execute(folders.declarations())
    engine.query(JOIN, name="pairs", sink=Discarding())
    for stream in "AB":
        folders.write(stream, rows([1, 2]))
    engine.start()
    engine.process_available()
    found: list[Usage] = []
    for count in (WARM_UP, BATCHES):
        for number in range(count // 2):
            sql = (JOIN, CHANGES, "SELECT COUNT(*) AS n FROM A WINDOW 3 SECONDS")[number % 3]
            engine.query(sql, name="more", sink=Discarding() if number % 2 else "memory")
            engine.drop("more")
        found.append(usage(spark, checkpoint, before=found))
    engine.stop()
    check(*found, files=min(2 * BATCHES + 20, RETAINED))
