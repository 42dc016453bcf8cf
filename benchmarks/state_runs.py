"""The engines of ``python -m benchmarks state``: live ones, fed file by file."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.spark_runs import PARTITIONS, START, declare_stream, join_sql
from muntin.spark.api import SparkEngine
from muntin.testing.generators import uniform_stream
from muntin.testing.processes import state_servers

RATE = 500
"""Rows per second of each stream, so that a batch of 1,000 new rows is a second."""
_TRIGGER = 1
"""Seconds between triggers.

They fire at whole seconds; files that appear between two of them are read together.
"""


@dataclass(frozen=True)
class Sizes:
    """Rows in the windows (small, large, beside Spark), files that fill them, batches per kind."""

    small: int = 5_000
    large: int = 5_000_000
    beside: int = 1_000_000
    files: int = 10
    warm_up: int = 10
    timed: int = 25
    changes: int = 5
    rebuilds: int = 4
    partitions: tuple[int, ...] = (5, 3)


QUICK = Sizes(
    small=2_000, large=20_000, beside=20_000, files=2, warm_up=0, timed=3, changes=1, rebuilds=1
)


class Feeder:
    """Writes two streams as files, each pair of them at once."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.folder = folder
        self._keys = rows // 2
        self._written = self._number = 0
        for name in "AB":
            (folder / name).mkdir(parents=True)

    def put(self, seconds: int) -> None:
        """Write the next seconds of both streams."""
        self._number += 1
        hidden = []
        for seed, name in enumerate("AB"):
            start = START + self._written * 1_000_000
            stream = uniform_stream(
                seconds * RATE, RATE, self._keys, 2 * self._number + seed, start=start
            )
            hidden.append(self.folder / name / f".{self._number:05d}.parquet")
            pq.write_table(stream, hidden[-1])
            os.utime(hidden[-1], (1_000 + self._number, 1_000 + self._number))
        time.sleep((0.5 - time.time()) % _TRIGGER)
        for path in hidden:
            path.rename(path.with_name(path.name[1:]))
        self._written += seconds


class Running:
    """An engine with the join over a window of a number of rows, live."""

    def __init__(self, spark: SparkSession, folder: Path, rows: int) -> None:
        self.window = rows // 2 // RATE
        self.feeder = Feeder(folder / "data", rows)
        self.state = folder / "checkpoint" / "muntin" / "state"
        self._spark, self._folder = spark, folder
        before = set(state_servers(os.getpid()))
        self._engine = self._declared(PARTITIONS)
        self._batch = -1
        self.batch(1)
        self.state_servers = sorted(set(state_servers(os.getpid())) - before)

    def _declared(self, partitions: int) -> SparkEngine:
        engine = SparkEngine(
            self._spark,
            checkpoint=self._folder / "checkpoint",
            partitions=partitions,
            trigger=f"{_TRIGGER} seconds",
        )
        for name in "AB":
            engine.execute(declare_stream(name, self._folder / "data", 1))
        sink = {"format": "parquet", "path": str(self._folder / "results")}
        engine.query(join_sql(self.window), name="joined", sink=sink)
        return engine

    def rescale(self, partitions: int) -> None:
        """Start again with another number of partitions, with rows that wait."""
        self.stop()
        self.feeder.put(1)
        self._engine = self._declared(partitions)
        self._engine.process_available()

    def fill(self, files: int) -> None:
        """As many rows as the window holds, from large files."""
        for _ in range(files):
            self.batch(self.window // files)

    def batch(self, seconds: int = 1) -> tuple[int, bool]:
        """Return the milliseconds of the micro-batch of new rows, and whether it had all."""
        self.feeder.put(seconds)
        self._engine.settle()
        streaming = self._engine.streaming
        assert streaming is not None, "it runs"
        new = [
            told
            for told in streaming.recentProgress
            if told.batchId > self._batch and told.numInputRows
        ]
        self._batch = max(told.batchId for told in new)
        return max(int(told.durationMs["triggerExecution"]) for told in new), len(new) == 1

    def ours(self) -> dict[str, Any]:
        """Our part of its progress."""
        progress = self._engine.progress
        assert progress is not None, "it has had a batch"
        found: dict[str, Any] = progress["muntin"]
        return found

    def stop(self) -> None:
        """End it."""
        self._engine.stop()


@contextmanager
def running(spark: SparkSession, rows: int) -> Iterator[Running]:
    """Yield an engine in a separate folder."""
    folder = Path(tempfile.mkdtemp(prefix="muntin-bench-"))
    engine = Running(spark, folder, rows)
    try:
        yield engine
    finally:
        engine.stop()
        shutil.rmtree(folder, ignore_errors=True)
