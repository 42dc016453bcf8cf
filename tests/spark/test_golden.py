"""Golden scripts on Spark from end to end: a few in the profile ci, in deep all that tests/golden/test_buckets.py runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from muntin.testing.runner import run_file
from muntin.testing.spark_driver import SparkDriver

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

GOLDEN = Path(__file__).parent.parent / "golden"
CHOSEN = {"late_rows", "query_added", "query_dropped", "stored_table_and_two_streams"}
LEFT_OUT = {"settings", "explain"}
ABOUT_LATE_ROWS = {"late_rows", "slack", "slack_and_late"}
DEEP = os.environ.get("MUNTIN_PROFILE") == "deep"
SCRIPTS = [path for path in sorted(GOLDEN.glob("*.cqt")) if not path.stem.startswith("errors_") and path.stem not in LEFT_OUT]


@pytest.mark.parametrize("script", [path for path in SCRIPTS if DEEP or path.stem in CHOSEN], ids=lambda path: path.stem)
def test_a_script_on_spark(script: Path, spark: SparkSession) -> None:
    number = sum(script.name.encode())
    seed = None if script.stem in ABOUT_LATE_ROWS else number
    report = run_file(script, driver=lambda settings: SparkDriver(settings, spark, buckets=(1, 2, 5)[number % 3] if DEEP else 2, seed=seed))
    assert report.ok, str(report)
