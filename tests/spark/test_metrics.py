"""The metrics of an engine on Spark: those of its batches, across dropped queries and restarts."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from muntin.metrics import prometheus_text
from muntin.spark import SparkEngine
from muntin.spark.driver.phase_clock import PHASES
from tests.spark.support import JOIN, SECOND, Folders, rows
from tests.unit.metrics.exposition import Series, parsed

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-1")]


def test_metrics_are_those_of_the_batches_and_never_fall(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path / "in")
    for stream in "AB":
        folders.write(stream, rows([0, 1, 2]))
        folders.write(stream, rows([2.5, 1, 3], start=3))
    engine = SparkEngine(spark, checkpoint=tmp_path / "state", partitions=2)
    engine.execute(folders.declarations())
    engine.query(JOIN, name="pairs")
    assert parsed(prometheus_text(engine)).value("muntin_batches_total") == 0
    engine.process_available()
    found = parsed(prometheus_text(engine))
    assert found.value("muntin_engine_info", engine="spark") == 1
    assert found.value("muntin_stream_rows_total", stream="A") == 3 + 3
    assert found.value("muntin_stream_late_rows_total", stream="A") == 1
    assert found.value("muntin_batches_total") == 2
    for phase in PHASES:
        assert found.value("muntin_batch_phase_seconds_total", phase=phase) > 0
    results = len(engine.results("pairs"))
    assert found.value("muntin_query_results_total", query="pairs") == results > 0
    assert found.value("muntin_query_response_seconds_count", query="pairs") == results
    assert found.value("muntin_query_watermark_timestamp_seconds", query="pairs") == 3
    assert found.value("muntin_held_bytes") > 0
    before: dict[Series, float] = found.counters()

    engine.drop("pairs")
    assert parsed(prometheus_text(engine)).value("muntin_results_total") == results
    engine.query(JOIN, name="pairs")
    folders.write("A", rows([5], start=6))
    folders.write("B", rows([5], start=6))
    engine.process_available(until=9 * SECOND)
    again = parsed(prometheus_text(engine))
    assert again.counters().keys() >= before.keys()
    assert all(again.samples[series] >= value for series, value in before.items())
    more = len(engine.results("pairs"))
    assert again.value("muntin_query_results_total", query="pairs") == results + more
