"""Declarations on Spark.

The facts that the checks rely on are those of Spark, paths stay confined, and stats have one shape.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from muntin.errors import InputError, SettingError, SqlError
from muntin.model.formats import SPARK_OPTIONS
from muntin.spark import SparkEngine
from muntin.spark.sinks import FileSink
from tests.spark.support import Folders, rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-1")]

VALUES = "SELECT k, v FROM A WINDOW 2 SECONDS"
CLASSES = {
    "csv": "catalyst.csv.CSVOptions",
    "json": "catalyst.json.JSONOptions",
    "xml": "catalyst.xml.XmlOptions",
    "text": "execution.datasources.text.TextOptions",
    "parquet": "execution.datasources.parquet.ParquetOptions",
    "orc": "execution.datasources.orc.OrcOptions",
    "avro": "avro.AvroOptions",
}


def test_the_options_of_files_are_those_that_spark_lists(spark: SparkSession) -> None:
    assert SPARK_OPTIONS.keys() == CLASSES.keys()
    java: Any = spark._jvm
    for kind, name in CLASSES.items():
        module = (
            java.java.lang.Class.forName(f"org.apache.spark.sql.{name}$")
            .getField("MODULE$")
            .get(None)
        )
        names = module.getAllOptions().mkString(" ").split()
        assert sorted(SPARK_OPTIONS[kind].split()) == sorted(names), kind


def test_a_confined_engine_reads_and_writes_only_inside(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path / "in", ("A",))
    folders.write("A", rows([1, 2]))
    secret = Folders(tmp_path / "secret", ("S",))
    (tmp_path / "link").symlink_to(tmp_path / "in")
    engine = SparkEngine(
        spark,
        checkpoint=tmp_path / "checkpoint",
        partitions=1,
        allowed_paths=[tmp_path / "in", tmp_path / "out"],
    )
    for statement in (
        secret.declarations(),
        "CREATE STREAM S (v VARCHAR, ts TIMESTAMP) WITH (format = 'kafka', subscribe = 'x')",
        f"CREATE TABLE T (k INT) WITH (path = '{tmp_path}/secret/t.csv')",
        (
            "CREATE STREAM S (v VARCHAR, ts TIMESTAMP) "
            f"WITH (format = 'json', path = '{tmp_path}/in/../secret')"
        ),
    ):
        with pytest.raises(SqlError, match=r"line 1, column \d\d+: .*the allowed folders"):
            engine.execute(statement)
    engine.execute(folders.declarations().replace(f"{tmp_path}/in", f"{tmp_path}/link"))
    with pytest.raises(InputError, match="outside the allowed folders"):
        engine.query(f"{VALUES} WITH (sink = 'csv', path = '{tmp_path}/elsewhere')", name="q")
    engine.query(f"{VALUES} WITH (sink = 'csv', path = '{tmp_path}/out/q')", name="q")
    engine.process_available(until=10_000_000)
    assert len(list((tmp_path / "out" / "q").glob("*.csv"))) == 1
    assert not (tmp_path / "elsewhere").exists()
    (folders.path("A") / "more").symlink_to(tmp_path / "secret")  # noticed at the next start
    with pytest.raises(InputError, match="outside the allowed folders"):
        engine.process_available()


def test_sinks_are_checked_when_their_query_is_registered(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path, ("A",))
    (tmp_path / "file").write_text("x", encoding="utf-8")
    engine = SparkEngine(spark, checkpoint=tmp_path / "checkpoint", partitions=1)
    engine.execute(folders.declarations())
    given: list[tuple[dict[str, str], str]] = [
        ({"format": "parquett", "path": "x"}, "unknown format 'parquett'. Did you mean 'parquet'?"),
        ({"format": "socket"}, "can be read but not written"),
        (
            {"format": "csv", "path": f"{tmp_path}/out", "sep": ";"},
            "the option 'sep' has no effect in the csv sink of query q",
        ),
        (
            {"format": "orc", "path": f"{tmp_path}/out", "compresion": "x"},
            "no option 'compresion'. Did you mean 'compression'?",
        ),
        ({"format": "json", "path": f"{tmp_path}/file/out"}, "cannot make the folder"),
        ({"format": "orc", "path": f"{tmp_path}/file/out"}, "cannot make the folder"),
    ]
    for sink, message in given:
        with pytest.raises(SettingError) as caught:
            engine.query(VALUES, name="q", sink=sink)
        assert message in str(caught.value)
    for options in (
        "format = 'csv'",
        "sink = 'console', path = 'x'",
        "path = 'x'",
        "sink = 'csv', format = 'csv', path = 'x'",
    ):
        with pytest.raises(SettingError):
            engine.query(f"{VALUES} WITH ({options})", name="q")
    engine.query(f"{VALUES} WITH (format = 'csv', path = '{tmp_path}/out')", name="q")
    with pytest.raises(SettingError, match="query q already writes to"):
        engine.query(
            f"{VALUES} WITH (sink = 'json', path = 'file://{tmp_path}/x/../out')", name="r"
        )
    assert FileSink(tmp_path / "out", "csv") in [
        registered.sink for registered in engine._parts.registry.queries.values()
    ]


def test_every_kind_of_query_has_the_same_keys_on_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path)
    engine = SparkEngine(spark, checkpoint=tmp_path / "checkpoint", partitions=1)
    engine.execute(folders.declarations())
    adapt = (
        "SELECT A.v FROM A, B WHERE A.k = B.k WINDOW 2 SECONDS "
        "WITH (overload = 'adapt', resources = '100')"
    )
    handles = {
        name: engine.query(sql, name=name)
        for name, sql in {
            "plain": VALUES,
            "join": "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 2 SECONDS",
            "shared": "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND",
            "adapt": adapt,
            "changes": "SELECT k FROM A WINDOW 2 SECONDS EMIT CHANGES",
            "group": "SELECT k, COUNT(*) AS n FROM A GROUP BY k WINDOW 2 SECONDS",
            "total": "SELECT COUNT(*) AS n FROM A WINDOW 2 SECONDS",
            "union": "SELECT k FROM A UNION ALL SELECT k FROM B WINDOW 2 SECONDS",
        }.items()
    }
    before = {name: handle.stats() for name, handle in handles.items()}
    for stream in "AB":
        folders.write(stream, rows([1, 2, 3]))
    engine.process_available(until=10_000_000)
    after = {name: handle.stats() for name, handle in handles.items()}
    expected = before["plain"]
    for stats in (*before.values(), *after.values()):
        assert sorted(stats) == sorted(expected)
        assert sorted(stats["buffers"]) == sorted(expected["buffers"])
        assert sorted(stats["response_seconds"]) == sorted(expected["response_seconds"])
    assert after["total"]["last_stage_rows"] >= 0
    assert {
        name: stats["overload"]["mode"]
        for name, stats in after.items()
        if stats["overload"]["mode"] == "adapt"
    } == {"adapt": "adapt"}
    assert after["plain"]["rows_out"] == after["plain"]["results"] == 3
