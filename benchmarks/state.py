"""The cost of state on Spark: batches by state size, changes of workers, rebuilds, bytes per row.

Two streams of 500 rows per second each, as many keys as a window has rows of one stream. Two
engines run in one session, one with a window of 5,000 rows of both streams, one with 5,000,000.
Their windows are filled by large files; then each gets files of 500 rows for each stream in turn,
one pair a micro-batch, whose time is what Spark says (``triggerExecution``). Should a pair fall
into two micro-batches, neither counts.

After that, in the large engine, all Python workers of Spark are killed before some batches: the
partitions must not be built again. Then the processes of the partitions are killed: they must, and
report how long it took, from the request to the last partition batch.

State on disk is the folder ``state`` of the checkpoint, in memory what the partitions say they
hold. Spark's own join gets the same files, with its default state store; its state in memory is
what Spark says that store uses.
"""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.report import Claim, Figure, Progress, Report
from benchmarks.spark_runs import (
    PARTITIONS,
    START,
    bench_session,
    declare_stream,
    folder_bytes,
    join_sql,
    joined_by_spark,
)
from muntin.spark.api import SparkEngine
from muntin.testing.generators import uniform_stream
from muntin.testing.processes import kill, resident_bytes_of, state_servers, wait_gone, workers

RATE = 500
"""Rows per second of each stream, so that a batch of 1,000 new rows is a second."""
_WAIT = 30.0
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
        before = set(state_servers(os.getpid()))
        self._engine = SparkEngine(
            spark,
            checkpoint=folder / "checkpoint",
            partitions=PARTITIONS,
            trigger=f"{_TRIGGER} seconds",
        )
        for name in "AB":
            self._engine.execute(declare_stream(name, folder / "data", 1))
        self._engine.query(
            join_sql(self.window),
            name="joined",
            sink={"format": "parquet", "path": str(folder / "results")},
        )
        self._batch = -1
        self.batch(1)
        self.state_servers = sorted(set(state_servers(os.getpid())) - before)

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


# -- time ------------------------------------------------------------------------------------------


def time_batches(
    progress: Progress, small: Running, large: Running, sizes: Sizes
) -> dict[str, list[int]]:
    """Milliseconds of small batches in both engines, taken in turn."""
    for engine, rows in ((small, sizes.small), (large, sizes.large)):
        progress(f"filling windows with {rows:,} rows")
        engine.fill(sizes.files)
    found: dict[str, list[int]] = {"small": [], "large": []}
    progress(
        f"{sizes.timed} batches of {2 * RATE:,} rows in each, after {sizes.warm_up} to warm up"
    )
    gc.collect()
    for number in range(sizes.warm_up + sizes.timed):
        for name, engine in (("small", small), ("large", large)):
            milliseconds, together = engine.batch()
            if number >= sizes.warm_up and together:
                found[name].append(milliseconds)
    return found


def change_workers(progress: Progress, engine: Running, times: int) -> list[int]:
    """Milliseconds of batches before each of which all Python workers were killed."""
    found = []
    for number in range(times):
        progress(f"other workers, {number + 1} of {times}")
        _end(workers(os.getpid()))
        found.append(engine.batch()[0])
    return found


@dataclass(frozen=True)
class Rates:
    """Rows per second of rebuilds: of the machine, and of a partition."""

    machine: list[float]
    partition: list[float]
    milliseconds: list[int]


def rebuild(progress: Progress, engine: Running, times: int) -> Rates:
    """Kill the processes of the partitions and see how fast they are built again."""
    rates = Rates([], [], [])
    for number in range(times):
        progress(f"partitions built again, {number + 1} of {times}")
        before = engine.ours()["rebuilds"]
        _end(state_servers(os.getpid()))
        rates.milliseconds.append(engine.batch()[0])
        after = engine.ours()["rebuilds"]
        assert after["partitions"] == before["partitions"] + PARTITIONS, (
            "every partition was built again once"
        )
        rows = after["rows"] - before["rows"]
        rates.machine.append(rows / (after["seconds"] - before["seconds"]))
        rates.partition.append(rows / (after["partition_seconds"] - before["partition_seconds"]))
    return rates


def _end(pids: list[int]) -> None:
    assert pids, "there is something to end"
    for pid in pids:
        kill(pid)
    assert not wait_gone(pids, _WAIT), "what is killed ends"


# -- bytes -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bytes:
    """Bytes per row of the windows: on disk, in Spark's store, in partitions, in processes."""

    disk: float
    store: float = 0.0
    held: float = 0.0
    grown: float = 0.0


def bytes_of_muntin(spark: SparkSession, sizes: Sizes) -> tuple[Bytes, int]:
    """After the windows have been filled; and the rows that are held."""
    with running(spark, sizes.beside) as engine:
        before = sum(map(resident_bytes_of, engine.state_servers))
        engine.fill(sizes.files)
        rows = int(engine.ours()["rows_held"])
        grown = sum(map(resident_bytes_of, engine.state_servers)) - before
        return Bytes(
            folder_bytes(engine.state) / rows,
            held=engine.ours()["bytes_held"] / rows,
            grown=grown / rows,
        ), rows


def bytes_of_spark(spark: SparkSession, sizes: Sizes) -> tuple[Bytes, int]:
    """Return the same files through Spark's own join."""
    window = sizes.beside // 2 // RATE
    with tempfile.TemporaryDirectory(prefix="muntin-bench-") as name:
        folder = Path(name)
        feeder = Feeder(folder / "data", sizes.beside)
        for seconds in (1, *[window // sizes.files] * sizes.files):
            feeder.put(seconds)
        writer = (
            joined_by_spark(spark, folder / "data", window, 1)
            .writeStream.format("parquet")
            .option("path", str(folder / "results"))
        )
        query = (
            writer.option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        last = query.lastProgress
        assert last is not None, "it ran"
        rows = sum(operator.numRowsTotal for operator in last.stateOperators)
        store = sum(operator.memoryUsedBytes for operator in last.stateOperators)
        return Bytes(folder_bytes(folder / "checkpoint" / "state") / rows, store / rows), rows


# -- report ----------------------------------------------------------------------------------------


def row(measured: str, unit: str, figures: Sequence[float]) -> dict[str, Figure]:
    """Return a line of the report."""
    digits = 1 if max(figures) < 10_000 else None
    return {
        "measured": measured,
        "median": round(median(figures), digits),
        "least": round(min(figures), digits),
        "most": round(max(figures), digits),
        "times": len(figures),
        "unit": unit,
    }


def bytes_rows(progress: Progress, spark: SparkSession, sizes: Sizes) -> list[dict[str, Figure]]:
    """State of both systems after the same rows."""
    lines = []
    progress(f"state of Muntin with {sizes.beside:,} rows")
    muntin, rows = bytes_of_muntin(spark, sizes)
    progress("state of Spark's own join with the same rows")
    theirs, their_rows = bytes_of_spark(spark, sizes)
    assert abs(rows - their_rows) <= 2 * RATE, f"both hold the same rows: {rows} and {their_rows}"
    for name, found in (
        (f"Muntin, {rows:,} rows", muntin),
        (f"Spark's own join, {their_rows:,} rows", theirs),
    ):
        lines.append(row(f"{name}: checkpoint", "bytes per row on disk", [found.disk]))
    lines.append(
        row(
            f"Spark's own join, {their_rows:,} rows: Spark's state store",
            "bytes per row in memory",
            [theirs.store],
        )
    )
    lines.append(
        row(
            f"Muntin, {rows:,} rows: columns, indexes and links in the buckets",
            "bytes per row in memory",
            [muntin.held],
        )
    )
    lines.append(
        row(
            f"Muntin, {rows:,} rows: growth of the partitions' processes",
            "bytes per row in memory",
            [muntin.grown],
        )
    )
    return lines


def bench_state(progress: Progress, *, quick: bool = False) -> Report:
    """Batch times, rebuilds and bytes."""
    sizes = QUICK if quick else Sizes()
    spark = bench_session()
    sized = bytes_rows(progress, spark, sizes)
    with running(spark, sizes.large) as large:
        with running(spark, sizes.small) as small:
            times = time_batches(progress, small, large, sizes)
        changed = change_workers(progress, large, sizes.changes)
        served, idle = large.ours()["workers"], large.ours()["rebuilds"]["partitions"]
        held = large.ours()["rows_held"]
        rates = rebuild(progress, large, sizes.rebuilds)
    lines = [
        row(
            f"batch of {2 * RATE:,} new rows, {sizes.small:,} in the windows", "ms", times["small"]
        ),
        row(
            f"batch of {2 * RATE:,} new rows, {sizes.large:,} in the windows", "ms", times["large"]
        ),
        row("the same after all Python workers were killed", "ms", changed),
        row("the same after the processes of the partitions were killed", "ms", rates.milliseconds),
        row(f"rebuild of {held:,} rows, {PARTITIONS} partitions at once", "rows/s", rates.machine),
        row("rebuild, each partition for itself", "rows/s", rates.partition),
        row("Python workers that have asked a partition before that", "workers", served),
        row("rebuilds before that", "partitions", [idle]),
        *sized,
    ]
    ratio = median(times["large"]) / median(times["small"])
    return Report(
        "state",
        "What does state on Spark cost: time of a batch, of a rebuild, bytes?",
        lines,
        [
            Claim(
                f"time of a batch with {sizes.large:,} rows in the windows over that with "
                f"{sizes.small:,}",
                round(ratio, 3),
                1.3,
            ),
            Claim("partitions built again because the worker had changed", idle, 0),
            Claim(
                "rows per second of a rebuild, median",
                round(median(rates.machine)),
                1_000_000,
                "at least",
            ),
        ],
    )
