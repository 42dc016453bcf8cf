"""Overload on Spark: a three-way join whose input rises to three times the capacity, and back.

A feeder writes files in the time of the clock, so rows are as old as they would be from a live
source. What the machine holds is found first: the rate at which a batch of one trigger interval
takes one trigger interval. Then the same rows are fed to Muntin with ``overload = 'adapt'`` and to
Spark's own join. For every batch its duration and how far it is behind are taken; for Muntin also
which share of the results of each second was made, and how old the oldest row of a result was. All
results that there could be are counted from the rows alone.
"""

from __future__ import annotations

import numpy as np

from benchmarks.plots import Plot
from benchmarks.report import Claim, Figure, Progress, Report
from benchmarks.spark_overload_input import (
    FULL,
    QUICK,
    Ramp,
    Rows,
)
from benchmarks.spark_overload_runs import Adapted, MicroBatch, capacity_of, run_muntin, run_spark
from benchmarks.spark_runs import bench_session

_SETTLING = 2
"""Batches after the load has changed in which it is being adapted to."""
_COMPLETE_AGAIN = 20
"""Seconds after the load has fallen until results are complete.

They cover detection, lifting the limits, and one window.
"""


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
    """Return the report of the runs."""
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
