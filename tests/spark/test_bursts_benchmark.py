"""The benchmark of bursts on Spark.

It covers every window under both schedulers; subscribers are called before sinks receive a batch.
"""

from __future__ import annotations

import pytest

from benchmarks.spark_bursts import QUICK, SCHEDULERS, bench_spark_bursts

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-2")]


@pytest.mark.usefixtures("spark")
def test_the_benchmark_of_bursts_measures_all_its_figures() -> None:
    report = bench_spark_bursts(lambda _: None, quick=True)
    places = [
        (row["rows of a burst"], row["scheduler"], row["window seconds"]) for row in report.rows
    ]
    assert places == [
        (2 * s * QUICK.rate, name, window)
        for s in QUICK.seconds
        for name in SCHEDULERS
        for window in QUICK.windows
    ]
    for row in report.rows:
        assert int(row["results"]) > 0
        assert 0 < float(row["mean ms"]) <= float(row["max ms"])
        assert float(row["mean ms"]) < float(row["sink ms"])
    by_scheduler = [
        [row["results"] for row in report.rows if row["scheduler"] == name] for name in SCHEDULERS
    ]
    assert by_scheduler[0] == by_scheduler[1]
    (plot,) = report.plots
    assert {name: [place for place, _ in points] for name, points in plot.series.items()} == {
        name.upper(): [str(window) for window in QUICK.windows] for name in SCHEDULERS
    }
