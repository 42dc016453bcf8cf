"""The benchmark of shared windows runs on Spark.

Both systems count the same results, and every figure is present.
"""

from __future__ import annotations

import pytest

from benchmarks.spark_shared import OURS, QUICK, THEIRS, bench_spark_shared

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-2")]


@pytest.mark.usefixtures("spark")
def test_the_benchmark_of_shared_windows_measures_both_systems() -> None:
    reported: list[str] = []
    report = bench_spark_shared(reported.append, quick=True)
    lines = [(line["system"], line["keys"], line["queries"]) for line in report.rows]
    many, few, seven = QUICK.many_keys, QUICK.few_keys, len(QUICK.windows)
    compared = [
        (system, keys, queries)
        for keys in (many, few)
        for system, queries in ((OURS, 1), (OURS, seven), (THEIRS, seven))
    ]
    assert lines == [*compared, (OURS, many, 1), (THEIRS, many, 1), (OURS, many, 3)]
    for line in report.rows:
        assert all(float(figure) > 0 for name, figure in line.items() if name != "system"), line
    assert [claim.side for claim in report.claims] == ["at least", "at most", "at most"]
    one, all_of_them = (int(line["results"]) for line in report.rows[3:5])
    assert report.claims[-1].bound == round(all_of_them / one, 3)
    assert [list(plot.series) for plot in report.plots] == [[OURS, THEIRS]] * 2
    assert any("3 queries" in text for text in reported)
