"""The cost of state on Spark: batches by state size, changes of workers, rebuilds, bytes per row.

Two streams of 500 rows per second each, as many keys as a window has rows of one stream. Two
engines run in one session, one with a window of 5,000 rows of both streams, one with 5,000,000.
Their windows are filled by large files; then each gets files of 500 rows for each stream in turn,
one pair a micro-batch, whose time is what Spark says (``triggerExecution``). Should a pair fall
into two micro-batches, neither counts.

After that, in the large engine, all Python workers of Spark are killed before some batches: the
partitions must not be built again. Then the processes of the partitions are killed: they must, and
report how long it took, from the request to the last partition batch.

Last, the large engine is stopped and starts again with another number of partitions, twice; the
seconds are those that it logs for redistributing its rows.

State on disk is the folder ``state`` of the checkpoint, in memory what the partitions say they
hold. Spark's own join gets the same files, with its default state store; its state in memory is
what Spark says that store uses.
"""

from __future__ import annotations

import gc
import logging
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

from benchmarks.report import Claim, Figure, Progress, Report
from benchmarks.spark_runs import PARTITIONS, bench_session, folder_bytes, joined_by_spark
from benchmarks.state_runs import QUICK, RATE, Feeder, Running, Sizes, running
from muntin.testing.processes import kill, resident_bytes_of, state_servers, wait_gone, workers

_WAIT = 30.0

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


class _Redistributions(logging.Handler):
    """Takes rows and seconds from what the engine logs of them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[int, float]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the figures of the message, if it is the one."""
        if isinstance(record.args, tuple) and record.msg.startswith("redistributed"):
            rows, _, _, seconds = record.args
            self.found.append((int(str(rows).replace(",", "")), float(str(seconds))))


def rescale(progress: Progress, engine: Running, partitions: Sequence[int]) -> list[float]:
    """Return the seconds per million rows of starts with other numbers of partitions."""
    heard, log = _Redistributions(), logging.getLogger("muntin.spark")
    before = log.level
    log.addHandler(heard)
    log.setLevel(logging.INFO)
    try:
        for count in partitions:
            progress(f"the state over {count} partitions")
            engine.rescale(count)
    finally:
        log.removeHandler(heard)
        log.setLevel(before)
    assert len(heard.found) == len(partitions), "every start redistributed the rows"
    return [seconds / rows * 1e6 for rows, seconds in heard.found]


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
    with tempfile.TemporaryDirectory(prefix="muntin-bench-", ignore_cleanup_errors=True) as name:
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
            f"Muntin, {rows:,} rows: columns, indexes and links in the partitions",
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
        rescaled = rescale(progress, large, sizes.partitions)
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
        row(
            f"other numbers of partitions, {held:,} rows: {PARTITIONS} to "
            + " to ".join(map(str, sizes.partitions)),
            "s per million rows",
            rescaled,
        ),
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
                3_000_000,
                "at least",
            ),
        ],
    )
