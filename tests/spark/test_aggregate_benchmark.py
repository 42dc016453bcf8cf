"""The benchmark of sliding aggregates runs on Spark.

All three implementations give the same answers, and every figure is present.
"""

from __future__ import annotations

import pytest

from benchmarks.spark_aggregate import CHANGES, OURS, QUICK, THEIRS, bench_spark_aggregate

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-2")]


@pytest.mark.usefixtures("spark")
def test_the_benchmark_of_aggregates_measures_all_three() -> None:
    reported: list[str] = []
    report = bench_spark_aggregate(reported.append, quick=True)
    assert [line["system"] for line in report.rows] == [OURS, CHANGES, THEIRS]
    assert {int(line["batches timed"]) for line in report.rows} == {
        QUICK.files // QUICK.per_trigger - QUICK.warm_up
    }
    assert all(float(line["rows per second"]) > 0 for line in report.rows)
    seconds = QUICK.file_seconds * QUICK.files - 1
    assert int(report.rows[0]["results"]) == QUICK.groups * seconds, (
        "every group is in every answer"
    )
    assert len(report.claims) == 2
    assert reported[-1] == THEIRS
