"""Response times of GROUP BY over a shared join in bursts, LWO beside MQT, in process and on Spark.

The queries are those of the other benchmarks of bursts (:mod:`benchmarks.shared_engine`,
:mod:`benchmarks.spark_bursts`), with COUNT and MAX by key above the join: seven windows, each
query with a subscriber. The time of a change is from when its rows were pushed, or came to their
partition, to the call of the subscriber. Both schedulers must give every query the same changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean, median

from benchmarks import shared_engine, spark_bursts
from benchmarks.plots import Plot
from benchmarks.report import Claim, Figure, Progress, Report
from benchmarks.spark_runs import bench_session

SCHEDULERS = ("lwo", "mqt")
_AT_MOST = 0.5
_THOUSAND = 1_000


def grouped_sql(window: int) -> str:
    """Return a GROUP BY above the join under a window in seconds."""
    return (
        "SELECT A.k, COUNT(*) AS n, MAX(B.ts) AS newest FROM A, B WHERE A.k = B.k GROUP BY A.k "
        f"WINDOW {window} SECONDS"
    )


@dataclass(frozen=True)
class Scale:
    """The bursts in process and on Spark."""

    engine: shared_engine.Bursts
    spark: spark_bursts.Bursts


FULL = Scale(shared_engine.Bursts(times=3), replace(spark_bursts.FULL, seconds=(5, 20), times=3))
QUICK = Scale(
    shared_engine.Bursts(rate=20, keys=200, rows=200, times=2, repeats=1),
    replace(spark_bursts.QUICK, seconds=(2, 4)),
)


def in_process(progress: Progress, scale: Scale) -> list[dict[str, Figure]]:
    """Return the mean times of each window in a background engine."""
    windows = scale.spark.windows
    means: dict[str, list[list[float]]] = {name: [] for name in SCHEDULERS}
    counts: dict[tuple[int, ...], None] = {}
    for number in range(scale.engine.repeats):
        for name in SCHEDULERS:
            progress(f"in process, {name}, run {number + 1} of {scale.engine.repeats}")
            waits = shared_engine.run(name, scale.engine, windows, grouped_sql)
            counts[tuple(wait.results for wait in waits)] = None
            means[name].append([wait.total / max(wait.results, 1) / 1e6 for wait in waits])
    assert len(counts) == 1, f"every scheduler gives every query the same changes: {counts}"
    (changes,) = counts
    return [
        {
            "where": "in process",
            "rows of a burst": 2 * scale.engine.rows,
            "window seconds": window,
            "changes": changes[place],
            **{
                f"{name} mean ms": round(median(run[place] for run in means[name]), 2)
                for name in SCHEDULERS
            },
            "MQT/LWO": round(_ratio(means["mqt"], means["lwo"], place), 3),
        }
        for place, window in enumerate(windows)
    ]


def _ratio(mqt: Sequence[Sequence[float]], lwo: Sequence[Sequence[float]], place: int) -> float:
    """Return the median of the ratios of runs that were made one after the other."""
    return median(one[place] / max(other[place], 1e-9) for one, other in zip(mqt, lwo, strict=True))


def on_spark(progress: Progress, scale: Scale) -> list[dict[str, Figure]]:
    """Return the mean times of each window for subscribers on Spark, in the larger bursts."""
    bursts = scale.spark
    found = spark_bursts.measure(progress, bench_session(), bursts, grouped_sql)
    seconds = max(bursts.seconds)
    rows: list[dict[str, Figure]] = []
    for window in bursts.windows:
        times = {name: spark_bursts.together(found[name], window, seconds) for name in SCHEDULERS}
        means = {name: _THOUSAND * one.stats()["mean"] for name, one in times.items()}
        rows.append(
            {
                "where": "Spark",
                "rows of a burst": 2 * seconds * bursts.rate,
                "window seconds": window,
                "changes": times["mqt"].count,
                **{f"{name} mean ms": round(value, 2) for name, value in means.items()},
                "MQT/LWO": round(means["mqt"] / max(means["lwo"], 1e-9), 3),
            }
        )
    return rows


def bench_scheduled_groups(progress: Progress, *, quick: bool = False) -> Report:
    """Return both schedulers in process and on Spark, every window."""
    scale = QUICK if quick else FULL
    places = {"in process": in_process(progress, scale), "Spark": on_spark(progress, scale)}
    claims, plots = [], []
    for place, rows in places.items():
        claims += [
            Claim(
                f"mean response time of GROUP BY under MQT over LWO, smallest window, {place}",
                float(rows[0]["MQT/LWO"]),
                _AT_MOST,
            ),
            Claim(
                "the same, averaged over the queries",
                round(_mean(rows, "mqt") / _mean(rows, "lwo"), 3),
                1.0,
            ),
        ]
        series = {
            name.upper(): [
                (str(row["window seconds"]), float(row[f"{name} mean ms"])) for row in rows
            ]
            for name in SCHEDULERS
        }
        plots.append(
            Plot(
                f"scheduled-groups-{place.split()[-1].lower()}",
                f"GROUP BY above a shared join, {place}, bursts of {rows[0]['rows of a burst']:,} "
                "rows",
                "window, seconds",
                "mean until the subscriber has it, ms",
                series,
                kind="bar",
            )
        )
    question = "How long do changes of GROUP BY above a shared join take under LWO and MQT?"
    rows = [row for some in places.values() for row in some]
    return Report("scheduled-groups", question, rows, claims, plots=plots)


def _mean(rows: Sequence[dict[str, Figure]], scheduler: str) -> float:
    return mean(float(row[f"{scheduler} mean ms"]) for row in rows)
