"""A row far in the future on Spark.

It is set aside, also across a restart, and results begin at the first instant.
"""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from muntin.spark import SparkEngine
from tests.spark.support import SECOND, Folders, rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-2")]

FAR = 10**9


def test_a_row_ahead_stays_set_aside_across_a_restart_and_a_count_begins_at_the_first_row(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folders = Folders(tmp_path, ("A",))
    for second in ([5], [6, FAR]):
        folders.write("A", rows(second))

    def run() -> SparkEngine:
        engine = SparkEngine(
            spark, checkpoint=tmp_path / "checkpoint", partitions=2, max_advance="1 day"
        )
        engine.execute(folders.declarations())
        engine.query("SELECT COUNT(*) AS n FROM A WINDOW 10 SECONDS", name="q")
        return engine

    engine = run()
    with caplog.at_level(logging.WARNING, "muntin"):
        engine.process_available()
    assert engine.progress is not None
    assert engine.progress["muntin"]["streams"] == {"A": {"rows": 3, "late": 0, "ahead": 1}}
    assert [
        record.message.partition(" further ahead")[0]
        for record in caplog.records
        if "ahead" in record.message
    ] == ["stream A has rows"]
    assert any(
        "stream A begins at 1970-01-01 00:00:05, decades away" in record.message
        for record in caplog.records
    )
    folders.write("A", rows([7, FAR + 1]))
    engine = run()
    engine.process_available(until=9 * SECOND)
    changes = engine.results("q")
    times = [time // SECOND for time in changes.column("_ts").cast(pa.int64()).to_pylist()]
    found = list(
        zip(changes.column("_op").to_pylist(), times, changes.column("n").to_pylist(), strict=True)
    )
    assert found == [("+", 5, 1), ("-", 6, 1), ("+", 6, 2), ("-", 7, 2), ("+", 7, 3)]
    late = engine.late("A").column("ts").cast(pa.int64()).to_pylist()
    assert late == [FAR * SECOND, (FAR + 1) * SECOND]
