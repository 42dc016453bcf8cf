"""The benchmark of state runs on Spark.

Batches of both engines are timed; other workers cause no rebuild, dead state servers do.
"""

from __future__ import annotations

import pytest

from benchmarks.spark_runs import PARTITIONS
from benchmarks.state import bench_state
from benchmarks.state_runs import QUICK

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-2")]


@pytest.mark.usefixtures("spark")
def test_the_benchmark_of_state_measures_all_its_figures() -> None:
    reported: list[str] = []
    report = bench_state(reported.append, quick=True)
    found = {str(line["measured"]): line for line in report.rows}
    claims = {claim.text: claim for claim in report.claims}
    assert claims["partitions built again because the worker had changed"].holds
    served = found["Python workers that have asked a partition before that"]
    assert float(served["least"]) >= 2, "the workers have changed"
    assert float(found["rebuild, each partition for itself"]["median"]) > 0
    assert any(f"{QUICK.large:,} in the windows" in name for name in found)
    assert claims["rows per second of a rebuild, median"].measured > 0
    assert float(served["times"]) == PARTITIONS
    ours, theirs = (
        next(line for name, line in found.items() if name.startswith(who) and "checkpoint" in name)
        for who in ("Muntin", "Spark")
    )
    assert float(ours["median"]) > 0
    assert float(theirs["median"]) > 0
