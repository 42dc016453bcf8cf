"""Throughput on Spark by cores and partitions, and a model of clusters that are not here.

The join of :mod:`benchmarks.spark_batches` runs with 1 and 2 cores, several numbers of partitions
and several sizes of batches, each in its own session. The time of a batch is then explained by
four parts, found by least squares: a fixed part, a part per partition that the driver does alone, a
part per partition that cores share, and a part per row that cores share::

    milliseconds = fixed + driver * partitions + task * partitions / cores + row * rows / cores

The model says what more cores would do if nothing else became a bottleneck, above all the network
and the object store, which one machine cannot show. Its error on the measured points is in the
report.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from pyspark.sql import SparkSession

from benchmarks.plots import Plot
from benchmarks.report import Claim, Figure, Progress, Report
from benchmarks.spark_batches import Size, time_muntin, write_streams
from muntin.spark.session import local_session

SIZES = (Size(1_000, 12), Size(100_000, 8), Size(500_000, 5))
CORES_AND_PARTITIONS = ((1, 1), (1, 2), (1, 8), (2, 1), (2, 2), (2, 8))
PREDICTED = (2, 4, 16, 64)
_ROWS = (500_000, 5_000_000)
"""Rows per stream and batch of the predictions."""


@dataclass(frozen=True)
class Point:
    """The median time of a batch, in milliseconds."""

    cores: int
    partitions: int
    rows: int
    milliseconds: float


@dataclass(frozen=True)
class CostParts:
    """The parts of the time of a batch, in milliseconds; ``row`` is per row of both streams."""

    fixed: float
    driver: float
    task: float
    row: float

    def milliseconds(self, cores: int, partitions: int, rows: int) -> float:
        """Return the time of a batch with a number of rows of each stream."""
        shared = self.task * partitions + self.row * 2 * rows
        return self.fixed + self.driver * partitions + shared / cores


def fit(points: Sequence[Point]) -> CostParts:
    """Return the parts that explain the points best, none of them negative.

    Errors count relative to the time of a point, or large batches would decide alone.
    """
    features = np.array(
        [
            (1.0, one.partitions, one.partitions / one.cores, 2 * one.rows / one.cores)
            for one in points
        ]
    )
    times = np.array([one.milliseconds for one in points])
    weighted = features / times[:, None]
    used = list(range(features.shape[1]))
    while True:
        found = np.linalg.lstsq(weighted[:, used], np.ones(len(times)), rcond=None)[0]
        if (found >= 0).all():
            break
        used.pop(int(found.argmin()))
    parts = np.zeros(features.shape[1])
    parts[used] = found
    return CostParts(*map(float, parts))


def measure(progress: Progress, cores: int, partitions: int, sizes: Sequence[Size]) -> list[Point]:
    """Return the times of batches of several sizes in one session; the second run counts."""
    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()
    spark = local_session(partitions, {"spark.driver.memory": "4g"}, f"local[{cores},4]")
    found = []
    times: list[int] = []
    for size in sizes:
        data = Path(tempfile.mkdtemp(prefix="muntin-bench-"))
        try:
            write_streams(data, size)
            for attempt in ("first", "second"):
                progress(
                    f"{cores} cores, {partitions} partitions, {size.rows:,} rows, {attempt} run"
                )
                times = time_muntin(spark, data, size, partitions)
        finally:
            shutil.rmtree(data, ignore_errors=True)
        found.append(Point(cores, partitions, size.rows, median(times)))
    spark.stop()
    return found


def bench_spark_scaling(progress: Progress, *, quick: bool = False) -> Report:
    """Measure, fit, and predict."""
    sizes = (Size(1_000, 2), Size(20_000, 2)) if quick else SIZES
    configurations = ((1, 1), (2, 1), (2, 2)) if quick else CORES_AND_PARTITIONS
    points = [point for one in configurations for point in measure(progress, *one, sizes)]
    parts = fit(points)
    largest = sizes[-1].rows
    times = {(one.cores, one.partitions, one.rows): one.milliseconds for one in points}
    speedup = times[1, 1, largest] / times[2, 2, largest]
    off = [abs(_modelled(parts, one) / one.milliseconds - 1) for one in points]
    return Report(
        "spark-scaling",
        "What do more cores and partitions bring on Spark?",
        [_row(parts, one) for one in points],
        [
            Claim(
                f"throughput with 2 cores over that with 1, {largest:,} rows per stream",
                round(speedup, 2),
                1.4,
                "at least",
            ),
            Claim("median error of the model on the measured points", round(median(off), 3), 0.15),
        ],
        tables={
            "The parts of a batch": [
                {"part": "fixed", "milliseconds": round(parts.fixed, 1)},
                {"part": "per partition, in the driver", "milliseconds": round(parts.driver, 2)},
                {"part": "per partition, shared by cores", "milliseconds": round(parts.task, 2)},
                {
                    "part": "per 1,000 rows, shared by cores",
                    "milliseconds": round(parts.row * 1_000, 3),
                },
            ],
            "What the model says (not measured)": [
                _prediction(parts, cores, rows) for rows in _ROWS for cores in PREDICTED
            ],
        },
        plots=[_plot(parts, points, largest)],
    )


def _plot(parts: CostParts, points: Sequence[Point], rows: int) -> Plot:
    """Plot rows per second with as many partitions as cores: measured, and by the model."""
    alike = [one for one in points if one.cores == one.partitions and one.rows == rows]
    measured: list[tuple[float | str, float]] = [
        (one.cores, 2 * rows / one.milliseconds * 1_000) for one in alike
    ]
    modelled: list[tuple[float | str, float]] = [
        (cores, 2 * rows / parts.milliseconds(cores, cores, rows) * 1_000)
        for cores in (1, *PREDICTED)
    ]
    return Plot(
        "spark-scaling",
        f"Batches of {rows:,} rows per stream",
        "cores and partitions",
        "rows per second",
        {"measured": measured, "by the model, not measured": modelled},
        log="xy",
    )


def _modelled(parts: CostParts, one: Point) -> float:
    return parts.milliseconds(one.cores, one.partitions, one.rows)


def _row(parts: CostParts, one: Point) -> dict[str, Figure]:
    return {
        "cores": one.cores,
        "partitions": one.partitions,
        "rows per stream and batch": one.rows,
        "milliseconds": round(one.milliseconds),
        "by the model": round(_modelled(parts, one)),
        "rows per second": round(2 * one.rows / one.milliseconds * 1_000),
    }


def _prediction(parts: CostParts, cores: int, rows: int) -> dict[str, Figure]:
    took = parts.milliseconds(cores, cores, rows)
    return {
        "cores and partitions": cores,
        "rows per stream and batch": rows,
        "milliseconds": round(took),
        "million rows per second": round(2 * rows / took / 1_000, 1),
    }
