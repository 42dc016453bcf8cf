"""Sinks in a Spark session.

Tests cover Spark's formats, views, unusual names, and queries that are dropped and added again.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from muntin.errors import SettingError
from muntin.spark import SparkEngine
from muntin.spark.sinks import SinkError
from tests.spark.support import SECOND, Folders, rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-2")]

VALUES = "SELECT v FROM A WINDOW 2 SECONDS"
ODD = "it's `odd`; a.b / ü"


def engine_over(spark: SparkSession, folders: Folders) -> SparkEngine:
    engine = SparkEngine(spark, checkpoint=folders.base / "check point", partitions=1)
    engine.execute(folders.declarations())
    return engine


def view(spark: SparkSession, name: str) -> list[int]:
    quoted = name.replace("`", "``")
    return sorted(row["v"] for row in spark.sql(f"SELECT v FROM `{quoted}`").collect())


def test_sinks_and_metrics_count_a_repeated_batch_once(spark: SparkSession, tmp_path: Path) -> None:
    folders = Folders(tmp_path, ("A",))
    for second in (1, 2):
        folders.write("A", rows([second], start=second))
    folders.write("A", rows([0], start=9))
    engine = engine_over(spark, folders)
    kinds = ("orc", "parquet", "csv", "json")
    for kind in kinds:
        engine.query(
            VALUES, name=kind, sink={"format": kind, "path": f"file://{tmp_path}/out/{kind}"}
        )
    with pytest.raises(
        SettingError, match=r"query csv already writes to .*out/csv.*separate folder"
    ):
        engine.query(VALUES, name="second", sink={"format": "json", "path": f"{tmp_path}/out/csv"})
    with pytest.raises(SettingError, match=r"query orc already writes to .*out/orc"):
        engine.query(VALUES, name="third", sink={"format": "orc", "path": f"{tmp_path}/out/orc/"})
    broken = [True]

    def sink(frame: DataFrame, batch: int) -> None:
        del frame
        if broken[0] and batch == 1:
            raise OSError(28, "No space left on device")

    odd = engine.query(VALUES, name=ODD)
    engine.query(VALUES, name="fragile", sink=sink)
    with pytest.raises(
        SinkError,
        match=(
            r"sink of query fragile failed in batch 1: OSError: .*No space left on "
            r"device.*start again"
        ),
    ):
        engine.process_available()
    assert engine.progress is not None
    assert engine.progress["muntin"]["results"][ODD] == 1, "what is not complete is not counted"
    broken[0] = False
    engine.process_available(until=5 * SECOND)
    assert engine.progress["muntin"]["results"] == dict.fromkeys((*kinds, ODD, "fragile"), 2)
    assert engine.progress["muntin"]["streams"] == {"A": {"rows": 3, "late": 1, "ahead": 0}}
    assert spark.read.orc(f"{tmp_path}/out/orc").orderBy("v").toPandas()["v"].tolist() == [1, 2]
    for kind in ("parquet", "csv", "json"):
        options = {"header": "true"} if kind == "csv" else {}
        read = spark.read.format(kind).options(**options).load(f"{tmp_path}/out/{kind}")
        assert sorted(int(row["v"]) for row in read.collect()) == [1, 2]
    assert view(spark, ODD) == [1, 2]
    assert odd.results().column("v").to_pylist() == [1, 2]


def test_views_exist_after_a_restart_and_a_query_added_again_starts_over(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path, ("A",))
    folders.write("A", rows([1], start=1))
    engine = engine_over(spark, folders)
    engine.query(VALUES, name=ODD)
    engine.query(VALUES, name="kept")
    engine.process_available()
    engine.drop(ODD)
    assert not [table for table in spark.catalog.listTables() if table.name == ODD], (
        "its view goes with it"
    )
    engine.query(VALUES, name=ODD)
    assert view(spark, ODD) == []
    folders.write("A", rows([2], start=2))
    engine.process_available()
    assert view(spark, ODD) == [2]
    spark.catalog.dropTempView("kept")

    again = engine_over(spark, folders)
    again.query(VALUES, name="kept")
    assert view(spark, "kept") == [1, 2], "the view is there before anything runs"
    folders.write("A", rows([3], start=3))
    again.process_available()
    assert view(spark, "kept") == [1, 2, 3]

    third = engine_over(spark, folders)
    third.query(VALUES, name="kept")
    third.query(VALUES, name=ODD)
    folders.write("A", rows([4], start=4))
    third.process_available()
    assert (view(spark, "kept"), view(spark, ODD)) == ([1, 2, 3, 4], [4]), (
        "a run without a query forgets what it kept"
    )
