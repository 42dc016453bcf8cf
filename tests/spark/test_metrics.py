"""The metrics of an engine on Spark: those of its batches, across dropped queries and restarts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from muntin.errors import InputError
from muntin.metrics import prometheus_text
from muntin.spark import MetricsSource, SparkEngine
from muntin.spark.driver.phase_clock import PHASES
from muntin.spark.metrics_source import metrics_system
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


def gauges(spark: SparkSession) -> dict[str, float]:
    """Return the gauges in the registry from which Spark's sinks read, without their prefix."""
    system = metrics_system(spark)
    found = {}
    registry = system.getClass().getDeclaredField("registry")
    registry.setAccessible(True)
    for entry in registry.get(system).getGauges().entrySet():
        _, mark, name = str(entry.getKey()).partition(".driver.muntin")
        if mark:
            found[name] = float(entry.getValue().getValue())
    return found


def test_spark_s_metrics_system_has_the_metrics(spark: SparkSession, tmp_path: Path) -> None:
    folders = Folders(tmp_path / "in")
    for stream in "AB":
        folders.write(stream, rows([0, 1, 2]))
    engine = SparkEngine(spark, checkpoint=tmp_path / "state", partitions=2)
    engine.execute(folders.declarations())
    engine.query(JOIN, name="my pairs")
    source = MetricsSource(engine, every="1 hour")
    with pytest.raises(InputError, match="already a source"):
        MetricsSource(engine)
    with pytest.raises(InputError, match="every 1 ms"):
        MetricsSource(engine, name="other", every="1 ms")
    try:
        assert gauges(spark)[".query.my%20pairs.results_total"] == 0
        engine.process_available()
        source.update()
        found = gauges(spark)
        results = float(len(engine.results("my pairs")))
        assert found[".query.my%20pairs.results_total"] == results > 0
        assert found[".query.my%20pairs.response_seconds_count"] == results
        assert found[".stream.A.rows_total"] == 3
        assert found[".batch_phase_seconds_total.sinks"] > 0
        engine.drop("my pairs")
        source.update()
        assert ".query.my%20pairs.results_total" not in gauges(spark)
        assert gauges(spark)[".results_total"] == results
    finally:
        source.close()
    assert not gauges(spark)
    assert metrics_system(spark).getSourcesByName("muntin").isEmpty()
    MetricsSource(engine).close()


def test_a_live_view_follows_a_query_until_it_is_dropped(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path / "in")
    for stream in "AB":
        folders.write(stream, rows([0, 1, 2]))
    engine = SparkEngine(spark, partitions=2)
    engine.execute(folders.declarations())
    query = engine.query(JOIN, name="pairs")
    engine.process_available()
    shown: list[str] = []

    def display(html: str) -> Callable[[str], None]:
        shown.append(html)
        return shown.append

    view = query.live(300, 0.1, display=display)
    assert f">{query.stats()['rows_out']}</td>" in shown[0]
    query.stop()
    assert view.wait(60)
    assert "ended: there is no query" in shown[-1]
