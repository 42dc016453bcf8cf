"""Overload on Spark: a three-way join whose input rises to 1.5, 2, 3 and 5 times the capacity.

A feeder writes files in the time of the clock, so rows are as old as they would be from a live
source. What the machine holds is found first: the rate at which a batch of one trigger interval
takes one trigger interval. Then the input rises to a multiple of that and falls again, five times
for each multiple, with other rows each time. For every batch its duration and how far it is behind
are taken, which share of the results of each second was made, and how old the oldest row of a
result was. All results that there could be are counted from the rows alone. Spark's own join gets
the rows of one run at three times the capacity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean

import numpy as np
import numpy.typing as npt

from benchmarks.plots import Plot
from benchmarks.report import Claim, Figure, Progress, Report
from benchmarks.spark_overload_input import FULL, QUICK, Ramp, Rows
from benchmarks.spark_overload_runs import Adapted, MicroBatch, capacity_of, run_muntin, run_spark
from benchmarks.spark_runs import bench_session

_LOADS = (1.5, 2.0, 3.0, 5.0)
_COMPARED = 3.0
"""The load at which Spark's own join runs."""
_RUNS = 5
_PERIODS = 2
"""Trigger intervals after the load has fallen in which limits end; a window later all is made."""


@dataclass(frozen=True)
class OverloadRun:
    """One run of Muntin: its input, its batches and results, and the share made by second."""

    ramp: Ramp
    adapted: Adapted
    share: npt.NDArray[np.float64]

    @property
    def longest(self) -> float:
        """The longest batch over the trigger interval."""
        return max((one.seconds for one in self.adapted.batches), default=0.0) / self.ramp.interval

    @property
    def exceeded(self) -> int:
        """The batches that took longer than the trigger interval."""
        return sum(one.seconds > self.ramp.interval for one in self.adapted.batches)

    @property
    def oldest(self) -> float:
        """The age of the oldest row in any result over the freshness."""
        return max(self.adapted.sink.oldest, default=0.0) / self.ramp.freshness

    @property
    def stale(self) -> int:
        """The stale results by the count of the engine."""
        return max((int(str(one.get("stale_results", 0))) for one in self.adapted.told), default=0)

    @property
    def after(self) -> float:
        """The least share of a second when limits have ended and a window has passed."""
        ramp = self.ramp
        begin = sum(ramp.phases[:2]) + ramp.window + _PERIODS * ramp.interval
        # The last rows of all wait for a later one of every stream.
        return float(self.share[begin:-1].min(initial=1.0))

    @property
    def during(self) -> float:
        """The share of the results made while the load is highest."""
        before, over, _ = self.ramp.phases
        return float(self.share[before + self.ramp.rise : before + over - self.ramp.rise].mean())


def bench_spark_overload(progress: Progress, *, quick: bool = False) -> Report:
    """Find what the machine holds, then ramp."""
    ramp = QUICK if quick else FULL
    loads, count = ((_COMPARED,), 1) if quick else (_LOADS, _RUNS)
    spark = bench_session()
    capacity = ramp.first_rate * 2.0 if quick else capacity_of(spark, ramp, progress)
    runs: dict[float, list[OverloadRun]] = {load: [] for load in loads}
    for number in range(count):
        for load in loads:
            progress(
                f"Muntin, run {number + 1} of {count} at {load:g} times {capacity:,.0f} rows/s"
            )
            own = replace(ramp, over=load)
            rows = Rows.drawn(own, capacity, 5 + number)
            adapted = run_muntin(spark, own, rows)
            share = adapted.sink.made[: own.seconds] / np.maximum(rows.results(own), 1)
            runs[load].append(OverloadRun(own, adapted, share))
    progress("Spark's own join")
    compared = replace(ramp, over=_COMPARED)
    return report(capacity, runs, run_spark(spark, compared, Rows.drawn(compared, capacity)))


def report(
    capacity: float, runs: Mapping[float, Sequence[OverloadRun]], own: list[MicroBatch]
) -> Report:
    """Return the report of the runs."""
    every = [run for of_load in runs.values() for run in of_load]
    batches = [batch for run in every for batch in run.adapted.batches]
    lags = {
        load: max(_lag(run.adapted.batches) for run in of_load) for load, of_load in runs.items()
    }
    table: list[dict[str, Figure]] = [
        {
            "system": "Muntin, adapt",
            "load": load,
            "runs": len(of_load),
            "batches": sum(len(run.adapted.batches) for run in of_load),
            "longer than the interval": sum(run.exceeded for run in of_load),
            "longest over interval": round(max(run.longest for run in of_load), 3),
            "largest lag, s": round(lags[load], 1),
            "share made at the top": round(mean(run.during for run in of_load), 4),
            "oldest row over freshness": round(max(run.oldest for run in of_load), 3),
            "least share afterwards": round(min(run.after for run in of_load), 4),
        }
        for load, of_load in runs.items()
    ]
    nothing = dict.fromkeys(table[0], "")
    longest = max((batch.seconds for batch in own), default=0.0) / every[0].ramp.interval
    table.append(
        {
            **nothing,
            "system": "Spark's own join",
            "load": _COMPARED,
            "runs": 1,
            "batches": len(own),
            "longest over interval": round(longest, 3),
            "largest lag, s": round(_lag(own), 1),
        }
    )
    shown = runs[_COMPARED][0]
    return Report(
        "spark-overload",
        "What becomes of batches and results on Spark when three times as much comes as the "
        "machine holds?",
        table,
        [
            Claim(
                f"duration of a batch over the trigger interval, largest of all {len(batches)}",
                round(max(run.longest for run in every), 3),
                1.0,
            ),
            Claim(
                "age of the oldest row in any result over the freshness",
                round(max(run.oldest for run in every), 3),
                1.0,
            ),
            Claim("stale results, by the count of the engine", sum(run.stale for run in every), 0),
            Claim(
                f"share of the results made from a window and {_PERIODS} trigger intervals after "
                "the load has fallen on, least second",
                round(min(run.after for run in every), 4),
                1.0,
                "at least",
            ),
            Claim(
                f"largest lag of Spark's own join over Muntin's, at {_COMPARED:g} times",
                round(_lag(own) / max(lags[_COMPARED], 0.1), 1),
                2.0,
                "at least",
            ),
        ],
        plots=_plots(runs, shown, own),
        details=[
            {
                "capacity": round(capacity),
                "load": run.ramp.over,
                "batches": [vars(batch) for batch in run.adapted.batches],
                "told": [
                    {key: value for key, value in one.items() if key != "decisions"}
                    for one in run.adapted.told
                ],
            }
            for run in every
        ]
        + [{"system": "Spark's own join", "batches": [vars(batch) for batch in own]}],
    )


def _lag(batches: Iterable[MicroBatch]) -> float:
    return max((batch.lag for batch in batches), default=0.0)


def _plots(
    runs: Mapping[float, Sequence[OverloadRun]], shown: OverloadRun, own: list[MicroBatch]
) -> list[Plot]:
    before, over, _ = shown.ramp.phases
    when = f"seconds {before} to {before + over}"
    return [
        Plot(
            "spark-overload-lag",
            f"Input ramped to {_COMPARED:g} times what the machine holds, {when}",
            "seconds",
            "how far behind a batch is at its end, s",
            {
                name: [(batch.began + batch.seconds, batch.lag) for batch in batches]
                for name, batches in (
                    ("Muntin, adapt", shown.adapted.batches),
                    ("Spark's own join", own),
                )
            },
        ),
        Plot(
            "spark-overload-share",
            f"Results made, input ramped to multiples of what the machine holds, {when}",
            "seconds",
            "share of all results",
            {
                f"{load:g} times": [
                    (float(second), float(value)) for second, value in enumerate(of_load[0].share)
                ]
                for load, of_load in runs.items()
            },
        ),
    ]
