"""Faulty input on Spark.

It leads to a clear error before anything runs, or its rows are set aside; after a repair the run
resumes.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from muntin.errors import InputError, MuntinError, SettingError, SqlError
from muntin.spark import SparkEngine
from muntin.spark.sinks import SinkError
from tests.spark.support import SCHEMA, SECOND, Folders, rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-1")]

VALUES = "SELECT k, v FROM A WINDOW 2 SECONDS"


def engine_over(
    spark: SparkSession, folders: Folders, columns: str = "k BIGINT, v BIGINT, ts TIMESTAMP"
) -> SparkEngine:
    engine = SparkEngine(spark, checkpoint=folders.base / "checkpoint", partitions=1)
    engine.execute(folders.declarations().replace("k BIGINT, v BIGINT, ts TIMESTAMP", columns))
    return engine


def refused(spark: SparkSession, folders: Folders, columns: str, *pieces: str) -> None:
    engine = engine_over(spark, folders, columns)
    engine.query("SELECT ts FROM A WINDOW 2 SECONDS", name="q")
    with pytest.raises(InputError) as caught:
        engine.process_available()
    for piece in pieces:
        assert piece in str(caught.value)


def test_results_triggered_only_by_input_are_refused(spark: SparkSession) -> None:
    engine = SparkEngine(spark, partitions=1)
    engine.execute("CREATE STREAM A (value BIGINT, timestamp TIMESTAMP) WITH (format = 'rate')")
    with pytest.raises(
        SettingError, match="query q cannot be triggered by input alone on Spark"
    ) as refused:
        engine.query(
            "SELECT COUNT(*) AS n FROM A WINDOW 2 SECONDS WITH (pipeline = 'input')", name="q"
        )
    assert "pipeline = 'probing'" in str(refused.value)
    assert (
        engine.query(
            "SELECT COUNT(*) AS n FROM A WINDOW 2 SECONDS WITH (pipeline = 'probing')", name="q"
        ).name
        == "q"
    )


def test_sources_that_do_not_fit_are_refused_before_anything_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path, ("A",))
    folders.write("A", rows([1, 2]))
    refused(
        spark,
        folders,
        "k BIGINT, w BIGINT, ts TIMESTAMP",
        "stream A",
        "column w",
        "The source has k, v, ts",
    )
    refused(
        spark,
        folders,
        "k VARCHAR, v BIGINT, ts TIMESTAMP",
        "stream A",
        "column k",
        "string",
        "int64",
    )
    engine = SparkEngine(spark, partitions=1)
    create = "CREATE STREAM A (k BIGINT, ts TIMESTAMP) WITH"
    for options, message in (
        (
            f"(format = 'parquet', path = '{tmp_path}/nowhere')",
            r"column \d+: stream A reads .*nowhere.*where there is nothing",
        ),
        ("(time = 'ts')", "line 1, column 1: stream A has no source"),
        (
            f"(format = 'parquett', path = '{tmp_path}')",
            "unknown format 'parquett'. Did you mean 'parquet'?",
        ),
        (
            f"(format = 'parquet', path = '{tmp_path}', slak = '1 second')",
            "no option 'slak'. Did you mean 'slack'?",
        ),
    ):
        with pytest.raises(SqlError, match=message):
            engine.execute(f"{create} {options}")
    with pytest.raises(InputError, match="no query to run"):
        engine.process_available()
    engine.execute(f"{create} (format = 'no.such.Source', path = '{tmp_path}')")
    engine.query("SELECT k FROM A WINDOW 2 SECONDS")
    with pytest.raises(InputError, match=r"stream A cannot be read as 'no\.such\.Source'"):
        engine.process_available()
    with pytest.raises(InputError, match="is not streaming"):
        engine.stream("B", spark.range(3), time="id")


def test_a_folder_that_is_gone_is_refused_at_the_start(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "A").mkdir()
    engine = SparkEngine(spark, partitions=1)
    engine.execute(
        f"CREATE STREAM A (k BIGINT, ts TIMESTAMP) WITH (format = 'parquet', path = '{tmp_path}/A')"
    )
    engine.query("SELECT k FROM A WINDOW 2 SECONDS")
    (tmp_path / "A").rmdir()
    with pytest.raises(InputError, match=r"A.*where there is nothing"):
        engine.process_available()


def test_wrong_settings_sinks_and_queries_are_refused_and_disturb_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(SettingError, match="partitions cannot be 0"):
        SparkEngine(spark, partitions=0)
    with pytest.raises(MuntinError, match="soon"):
        SparkEngine(spark, partitions=1, heartbeat="soon")
    with pytest.raises(InputError, match="on a file system that this process cannot reach"):
        SparkEngine(spark, partitions=1, checkpoint="ftp://server/folder")
    with pytest.raises(InputError, match="takes for a pattern"):
        SparkEngine(spark, partitions=1, checkpoint=tmp_path / "run[1]")
    folders = Folders(tmp_path, ("A",))
    engine = engine_over(spark, folders)
    for sink, piece in (
        ("nosuch", "cannot have the sink 'nosuch'"),
        ({"path": "x"}, "has no format"),
        ({"format": "csv"}, "has no path"),
    ):
        with pytest.raises(SettingError, match=piece):
            engine.query(VALUES, name="q", sink=sink)
    with pytest.raises(SqlError, match="nosuch"):
        engine.query("SELECT nosuch FROM A WINDOW 2 SECONDS", name="q")
    engine.query(VALUES, name="q")
    with pytest.raises(MuntinError, match="the name q is taken"):
        engine.query(VALUES, name="q")
    with pytest.raises(MuntinError, match="no query 'r'"):
        engine.drop("r")


def test_rows_without_a_time_are_late_and_the_others_are_processed(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path, ("A",))
    times = pa.array([None, 1 * SECOND, None, 2 * SECOND], pa.int64()).cast(pa.timestamp("us"))
    folders.write(
        "A", pa.table([pa.array([1, 2, 3, 4]), pa.array([1, 2, 3, 4]), times], schema=SCHEMA)
    )
    folders.write("A", pa.table([pa.array([5]), pa.array([5]), times.slice(0, 1)], schema=SCHEMA))
    engine = engine_over(spark, folders)
    handle = engine.query(VALUES, name="q")
    engine.process_available(until=3 * SECOND)
    assert handle.results().column("v").to_pylist() == [2, 4]
    assert sorted(engine.late("A").column("v").to_pylist()) == [1, 3, 5]


def test_a_failing_sink_is_named_and_after_its_repair_every_result_is_there_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path, ("A",))
    for second in (1, 2, 3):
        folders.write("A", rows([second], start=second))
    seen: dict[int, list[int]] = {}
    broken = [True]

    def sink(frame: DataFrame, batch: int) -> None:
        if broken[0] and batch >= 1:
            raise RuntimeError("the disk is full")
        seen[batch] = [row["v"] for row in frame.collect()]

    engine = engine_over(spark, folders)
    good = engine.query(VALUES, name="good")
    engine.query(VALUES, name="fragile", sink=sink)
    with pytest.raises(
        SinkError, match=r"sink of query fragile failed in batch 1: RuntimeError: the disk is full"
    ):
        engine.process_available()
    broken[0] = False
    engine.process_available()
    assert [value for batch in sorted(seen) for value in seen[batch]] == [1, 2, 3]
    assert good.results().column("v").to_pylist() == [1, 2, 3]


def test_a_file_with_values_that_do_not_fit_stops_the_run_and_can_be_replaced(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path, ("A",))
    folders.write("A", rows([1]))
    engine = engine_over(spark, folders, "k INT, v BIGINT, ts TIMESTAMP")
    handle = engine.query(VALUES, name="q")
    engine.process_available()
    large = folders.write(
        "A", pa.table([pa.array([2**40]), pa.array([1]), rows([2]).column("ts")], schema=SCHEMA)
    )
    with pytest.raises(MuntinError, match=r"1099511627776|not in range"):
        engine.process_available()
    pq.write_table(rows([2], start=7), large)
    os.utime(large, (50, 50))
    engine.process_available(until=3 * SECOND)
    assert handle.results().column("v").to_pylist() == [0, 7]
