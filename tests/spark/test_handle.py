"""The handle of a query on Spark, compared with what users know from Spark's StreamingQuery."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from muntin.errors import InputError
from muntin.spark import SparkEngine, SparkQuery
from muntin.spark.sinks import SinkError
from tests.spark.support import JOIN, Folders, rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-1")]

VALUES = "SELECT v FROM A WINDOW 2 SECONDS"


def engine_over(spark: SparkSession, folders: Folders) -> SparkEngine:
    engine = SparkEngine(spark, checkpoint=folders.base / "checkpoint", partitions=1)
    engine.execute(folders.declarations())
    return engine


def values(frame: DataFrame, column: str = "v") -> list[int]:
    return sorted(row[column] for row in frame.collect())


def test_the_handle_has_the_public_names_of_sparks() -> None:
    public = {name for name in vars(StreamingQuery) if not name.startswith("_")}
    assert not {name for name in public if not hasattr(SparkQuery, name)} - {"name"}


def test_a_query_is_followed_and_stopped_while_the_others_continue(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path, ("A",))
    for second in (1, 2):
        folders.write("A", rows([second], start=second))
    engine = engine_over(spark, folders)
    values_query = engine.query(VALUES, name="values")
    even = engine.query("SELECT v FROM A WHERE v % 2 = 0 WINDOW 2 SECONDS", name="even")
    before = (values_query.isActive, values_query.id, values_query.runId, values_query.lastProgress)
    assert before == (False, None, None, None)
    engine.start()
    values_query.processAllAvailable()
    assert values_query.isActive
    assert sorted(values_query.status) == ["isDataAvailable", "isTriggerActive", "message"]
    assert [one["sink"]["numOutputRows"] for one in values_query.recentProgress] == [1, 1]
    assert [one["sink"]["numOutputRows"] for one in even.recentProgress] == [0, 1]
    last = values_query.lastProgress
    assert last is not None
    assert last["batchId"] == 1
    assert {"timestamp", "durationMs", "sources"} <= last.keys()
    assert (last["id"], last["runId"]) == (values_query.id, values_query.runId)
    assert values_query.id != even.id
    assert values_query.runId != even.runId
    assert all(uuid.UUID(text) for text in (values_query.id, even.id, values_query.runId))
    assert "query values" in values_query.explain()
    assert values_query.awaitTermination(0.1) is False
    values_query.stop()
    assert (values_query.isActive, even.isActive) == (False, True)
    assert values_query.awaitTermination() is True
    folders.write("A", rows([3], start=4))
    even.processAllAvailable()
    assert values(even.table()) == [2, 4]
    engine.stop()
    assert (even.isActive, even.exception(), even.awaitTermination()) == (False, None, True)
    assert even.status["message"] == "Stopped"


def test_a_restart_from_the_checkpoint_keeps_the_id_and_has_a_new_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path, ("A",))
    folders.write("A", rows([1], start=1))
    seen = []
    for _ in range(2):
        query = engine_over(spark, folders).query(VALUES, name="values")
        query.processAllAvailable()
        seen.append((query.id, query.runId))
    (first, run), (second, another) = seen
    assert first == second
    assert run != another


def test_a_failed_run_is_reported_by_every_handle(spark: SparkSession, tmp_path: Path) -> None:
    folders = Folders(tmp_path)

    def broken(frame: DataFrame, batch: int) -> None:
        del frame, batch
        raise OSError("no space left")

    engine = engine_over(spark, folders)
    failing = engine.query(VALUES, name="failing", sink=broken)
    other = engine.query(JOIN, name="other")
    engine.start()
    folders.write("A", rows([1]))
    for query in (failing, other):
        with pytest.raises(SinkError, match="no space left"):
            query.awaitTermination(120)
        assert isinstance(query.exception(), SinkError)
        assert not query.isActive
        assert query.status["message"].startswith("Terminated with exception")
    folders.write("B", rows([1]))
    engine.drop("failing")
    engine.process_available()
    assert other.exception() is None


ODD = """SELECT v, 'a"b' || chr(10) || chr(92) AS t, CASE WHEN v = 1 THEN '' END AS e,
    CASE v WHEN 1 THEN 'NaN'::DOUBLE WHEN 2 THEN '-Infinity'::DOUBLE END AS d
    FROM A WINDOW 2 SECONDS"""
NESTED = "SELECT v::UTINYINT AS u, [v::UINTEGER] AS n FROM A WINDOW 1 SECOND"


def test_results_so_far_are_read_back_with_their_types_from_every_kind_of_file(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path, ("A",))
    engine = engine_over(spark, folders)
    memory = engine.query(ODD, name="memory")
    nested = engine.query(
        "SELECT v::UTINYINT AS u, [v::UINTEGER] AS n FROM A WINDOW 1 SECOND", "nested"
    )
    files = [
        engine.query(ODD, name=name, sink={"format": kind, "path": path})
        for name, kind, path in (
            ("q1", "parquet", f"{tmp_path}/out [1]{{*}}/p"),
            ("q2", "csv", f"{tmp_path}/out/csv"),
            ("q3", "json", f"{tmp_path}/out/json"),
            ("q4", "orc", f"{tmp_path}/out/orc"),
            ("q5", "csv", f"file://{tmp_path}/out/spark csv"),
        )
    ]
    for query in (memory, *files):
        assert query.table().columns == ["_op", "_ts", "v", "t", "e", "d"]
        assert query.table().count() == 0
    for second in (1, 2):
        folders.write("A", rows([second], start=second))
    engine.process_available()
    assert dict(nested.table().dtypes[2:]) == {"u": "smallint", "n": "array<bigint>"}
    assert sorted(row[2:] for row in nested.table().collect()) == [(1, [1]), (2, [2])]
    expected = [[str(value) for value in row] for row in memory.table().orderBy("v").collect()]
    assert [row[2:] for row in expected] == [
        ["1", 'a"b\n\\', "", "nan"],
        ["2", 'a"b\n\\', "None", "-inf"],
    ]
    for query in files:
        found = query.table().orderBy("v").collect()
        assert [[str(value) for value in row] for row in found] == expected, query.name


def test_sinks_that_keep_nothing_cannot_be_read_back(spark: SparkSession, tmp_path: Path) -> None:
    engine = engine_over(spark, Folders(tmp_path, ("A",)))
    for name, sink in (("console", "console"), ("called", lambda *_: None)):
        with pytest.raises(InputError, match=f"the sink of query {name} .* cannot be read back"):
            engine.query(VALUES, name=name, sink=sink).table()
