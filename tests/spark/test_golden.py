"""Golden scripts on Spark from end to end, cut into micro-batches at random places.

The deep profile runs every script with 1, 2 and 5 partitions; the other profiles run a few scripts
that cover all three. ``errors_input`` is left out: the engine refuses a row without a time in
process, while on Spark the row counts as late (see test_bad_input.py). Scripts about late rows are
fed row by row, because on Spark the batches before a row decide whether it is late.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from muntin.testing.runner import run_file
from muntin.testing.spark_driver import SparkDriver

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-1")]

PARTITIONS = (1, 2, 5)
GOLDEN = Path(__file__).parent.parent / "golden"
SCRIPTS = [path.stem for path in sorted(GOLDEN.glob("*.cqt")) if path.stem != "errors_input"]
ABOUT_LATE_ROWS = {
    "emit_final_late", "late_rows", "sessions_late", "silent_stream", "slack", "slack_and_late",
    "tumble_late",
}  # fmt: skip
CHOSEN = [
    ("arrival", 2),
    ("emit_final_late", 2),
    ("late_rows", 1),
    ("silent_stream", 2),
    ("query_added", 2),
    ("query_dropped", 2),
    ("stored_table_and_two_streams", 5),
]
DEEP = os.environ.get("MUNTIN_PROFILE") == "deep"


@pytest.mark.parametrize(
    ("script", "partitions"),
    [(script, partitions) for script in SCRIPTS for partitions in PARTITIONS] if DEEP else CHOSEN,
)
def test_a_script_on_spark(script: str, partitions: int, spark: SparkSession) -> None:
    seed = None if script in ABOUT_LATE_ROWS else sum(script.encode()) + partitions
    report = run_file(
        GOLDEN / f"{script}.cqt",
        driver=lambda settings: SparkDriver(settings, spark, partitions, seed),
    )
    assert report.ok, str(report)
    assert report.steps, "there was something to do"
