"""Many windows over one pair of streams on Spark: one shared join against Spark's joins.

Two streams of 1,000 rows per second each, 1,200 s of event time, as parquet files of 60 s; windows
of 1, 5, 15, 30, 60, 300 and 600 s. Muntin runs one engine with seven queries; Spark runs seven
streaming queries at once, each with its own read, watermark and interval condition. Both are in one
session, with ``availableNow``, the same files per trigger, as many partitions as cores. Spark's own
joins have the state store that is fastest for them (in Java's heap, see
:mod:`benchmarks.spark_runs`) and write to ``noop``, where an observed metric counts the rows; the
partitions of Muntin write the rows as Arrow files, and its sinks add up their counts.

Times are those of the wall clock, of micro-batches with full windows only: from the end of the
batch that has filled the largest window to the end of the last batch with rows, where a batch ends
when all queries have it. Every number of results must be the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.plots import Plot
from benchmarks.report import Claim, Figure, Progress, Report
from benchmarks.spark_queries import Run, run_muntin, run_spark, temporary_folder
from benchmarks.spark_runs import Streams, bench_session, write_files

WINDOWS = (1, 5, 15, 30, 60, 300, 600)
OURS = "Muntin"
THEIRS = "Spark's own joins"


@dataclass(frozen=True)
class Sizes:
    """Sizes: windows, rate, seconds per file, files, files per trigger, keys, runs of Muntin.

    ``counts`` are the numbers of queries with spread windows; those in ``native`` are run by
    Spark's own joins, too.
    """

    windows: tuple[float, ...] = WINDOWS
    rate: int = 1_000
    file_seconds: int = 60
    files: int = 20
    per_trigger: int = 5
    many_keys: int = 600_000
    few_keys: int = 60_000
    times: int = 3
    counts: tuple[int, ...] = (1, 4, 16, 64)
    native: tuple[int, ...] = (1, 4)

    def streams(self, keys: int) -> Streams:
        """Return the streams with a number of keys."""
        return Streams(self.rate, keys, self.file_seconds, self.files)

    @property
    def warm_up(self) -> int:
        """Batches that it takes to fill the largest window."""
        return math.ceil(max(self.windows) / (self.file_seconds * self.per_trigger))

    @property
    def timed_rows(self) -> int:
        """Rows of both streams in the batches after that."""
        return 2 * self.rate * self.file_seconds * (self.files - self.warm_up * self.per_trigger)


QUICK = Sizes(
    windows=(1, 4),
    rate=200,
    file_seconds=2,
    files=4,
    per_trigger=2,
    many_keys=2_000,
    few_keys=200,
    times=1,
    counts=(1, 3),
    native=(1,),
)


@dataclass(frozen=True)
class Measured:
    """Runs of one system with some windows, of which all gave the same results."""

    system: str
    keys: int
    windows: Sequence[float]
    runs: Sequence[Run]

    def seconds(self, sizes: Sizes) -> float:
        """Return the median of the runs."""
        return median(run.seconds(sizes.warm_up) for run in self.runs)

    @property
    def last(self) -> Run:
        """The last of the runs, for all that does not depend on the clock."""
        return self.runs[-1]

    def row(self, sizes: Sizes) -> dict[str, Figure]:
        """As a line of the report."""
        seconds = sorted(run.seconds(sizes.warm_up) for run in self.runs)
        return {
            "system": self.system,
            "keys": self.keys,
            "queries": len(self.windows),
            "seconds": round(median(seconds), 2),
            "least": round(seconds[0], 2),
            "most": round(seconds[-1], 2),
            "runs": len(seconds),
            "rows per second": round(sizes.timed_rows / median(seconds)),
            "results": self.last.total,
            "state rows": self.last.rows,
            "MB in memory": _megabytes(self.last.memory),
            "MB on disk": _megabytes(self.last.disk),
        }


def _megabytes(size: int) -> float:
    return round(size / 1e6, 1)


def spread_windows(largest: float, number: int) -> tuple[float, ...]:
    """Return windows in seconds from one to the largest, in geometric progression.

    >>> spread_windows(600, 1), spread_windows(600, 4)
    ((600,), (1.0, 8.434, 71.138, 600.0))
    """
    return (
        (largest,)
        if number == 1
        else tuple(round(largest ** (place / (number - 1)), 3) for place in range(number))
    )


def measure(
    progress: Progress, sizes: Sizes, keys: int, plans: Sequence[tuple[Sequence[float], bool]]
) -> list[Measured]:
    """Run each plan's windows over streams with given keys, by Muntin and optionally by Spark."""
    spark = bench_session()
    with temporary_folder() as data:
        progress(
            f"{keys:,} keys: writing {sizes.files} files of {sizes.rate * sizes.file_seconds:,} "
            "rows for each stream"
        )
        write_files(data, sizes.streams(keys))
        ours: list[list[Run]] = [[] for _ in plans]
        for time in range(sizes.times):
            for runs, (windows, _) in zip(ours, plans, strict=True):
                progress(
                    f"{keys:,} keys: {OURS}, {len(windows)} queries, {time + 1} of {sizes.times}"
                )
                runs.append(run_muntin(spark, data, windows, sizes.per_trigger))
        found = []
        for runs, (windows, both) in zip(ours, plans, strict=True):
            theirs = []
            if both:
                progress(f"{keys:,} keys: {THEIRS}, {len(windows)} queries")
                theirs.append(run_spark(spark, data, windows, sizes.per_trigger))
            found += [
                Measured(system, keys, windows, made)
                for system, made in ((OURS, runs), (THEIRS, theirs))
                if made
            ]
            counts = [run.results for run in (*runs, *theirs)]
            assert all(count == counts[0] for count in counts), (
                f"every query has the same number of results each time: {counts}"
            )
    return found


def compare(
    progress: Progress, sizes: Sizes, keys: int
) -> tuple[list[Measured], float, float, float]:
    """Return all windows against the largest alone, and against Spark's own joins.

    Returns the runs, and three ratios: rows per second over those of Spark's own joins, time of all
    windows over that of the largest, and results likewise.
    """
    found = one, seven, native = measure(
        progress, sizes, keys, [((max(sizes.windows),), False), (sizes.windows, True)]
    )
    faster = native.seconds(sizes) / seven.seconds(sizes)
    return (
        found,
        faster,
        seven.seconds(sizes) / one.seconds(sizes),
        seven.last.total / one.last.total,
    )


def bench_spark_shared(progress: Progress, *, quick: bool = False) -> Report:
    """Seven windows with many and with few keys, then growing numbers of spread windows."""
    sizes = QUICK if quick else Sizes()
    many, many_faster, many_slower, _ = compare(progress, sizes, sizes.many_keys)
    few, _, few_slower, more = compare(progress, sizes, sizes.few_keys)
    plans = [
        (spread_windows(max(sizes.windows), number), number in sizes.native)
        for number in sizes.counts
    ]
    spread = measure(progress, sizes, sizes.many_keys, plans)
    queries = len(sizes.windows)
    return Report(
        "spark-shared",
        "What do many windows over the same streams cost on Spark, shared in Muntin and as joins "
        "of Spark's own?",
        [measured.row(sizes) for measured in (*many, *few, *spread)],
        [
            Claim(
                f"rows per second of {queries} queries over those of Spark's own joins",
                round(many_faster, 1),
                40,
                "at least",
            ),
            Claim(
                f"time of {queries} queries over that of the largest window alone",
                round(many_slower, 3),
                1.3,
            ),
            Claim(
                "time over that of the largest alone, with few keys (bound: ratio of results)",
                round(few_slower, 3),
                round(more, 3),
            ),
        ],
        plots=_plots(sizes, spread),
    )


def _plots(sizes: Sizes, spread: Sequence[Measured]) -> list[Plot]:
    """Time and state against the number of queries."""

    def by_queries(
        figure: Callable[[Measured], float],
    ) -> dict[str, list[tuple[float | str, float]]]:
        return {
            system: [
                (len(measured.windows), figure(measured))
                for measured in spread
                if measured.system == system
            ]
            for system in (OURS, THEIRS)
        }

    seconds = by_queries(lambda measured: measured.seconds(sizes))
    memory = by_queries(lambda measured: _megabytes(measured.last.memory))
    return [
        Plot(
            "spark-shared-time",
            f"Seconds for {sizes.timed_rows:,} rows",
            "queries",
            "seconds",
            seconds,
            log="xy",
        ),
        Plot(
            "spark-shared-state",
            "State with full windows",
            "queries",
            "MB in memory",
            memory,
            log="xy",
        ),
    ]
