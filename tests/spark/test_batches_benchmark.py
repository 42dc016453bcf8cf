"""The benchmark of micro-batches by size runs on Spark and measures all three systems."""

from __future__ import annotations

import pytest

from benchmarks.spark_batches import QUICK, bench_spark_batches

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-2")]


@pytest.mark.usefixtures("spark")
def test_the_benchmark_of_batches_measures_all_systems() -> None:
    reported: list[str] = []
    report = bench_spark_batches(reported.append, quick=True)
    assert [line["system"] for line in report.rows] == [
        "Muntin",
        "Spark's floor",
        "Muntin in process, one core",
    ]
    assert {int(line["batches timed"]) for line in report.rows} == {QUICK[0].timed}
    on_spark = report.rows[:2]
    assert all(float(line["milliseconds"]) > 0 for line in on_spark)
    assert len(report.claims) == 1
