"""A checkpoint resumes with queries added, dropped or changed, or refuses with a reason."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import muntin
from muntin.errors import InputError
from muntin.spark import SparkEngine
from muntin.spark.driver.checkpoint import CheckpointError
from muntin.testing.compare import difference
from tests.spark.support import CHANGES, JOIN, SECOND, Folders, rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-2")]

VALUES = "SELECT v FROM A WINDOW 2 SECONDS"
OTHER_VALUES = "SELECT k, v * 10 AS tens FROM A WINDOW 2 SECONDS"


def engine_over(
    spark: SparkSession,
    folders: Folders,
    queries: dict[str, str],
    partitions: int = 2,
    replace: Sequence[str] = (),
) -> SparkEngine:
    path = folders.base / "checkpoint"
    engine = SparkEngine(spark, checkpoint=path, partitions=partitions, replace=replace)
    engine.execute(folders.declarations())
    for name, sql in queries.items():
        engine.query(sql, name=name)
    return engine


def test_consecutive_runs_add_up_while_queries_are_added_and_dropped_between_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path)
    for stream in "AB":
        folders.write(stream, rows([1, 2, 3]))
    engine = engine_over(spark, folders, {"pairs": JOIN, "values": VALUES, "gone": VALUES})
    engine.process_available()
    for stream in "AB":
        folders.write(stream, rows([4, 5], start=3))
    engine.process_available(until=6 * SECOND)
    folders.check({"pairs": JOIN}, {"pairs": engine.results("pairs")}, 6 * SECOND)
    assert engine.results("gone").column("v").to_pylist() == [0, 1, 2, 3, 4]

    for stream in "AB":
        folders.write(stream, rows([7, 8], start=5))
    now = {"pairs": JOIN, "values": OTHER_VALUES, "changes": CHANGES}
    with pytest.raises(CheckpointError, match=r"query values has changed \(its text\).*\(memory\)"):
        engine_over(spark, folders, now).process_available()
    again = engine_over(spark, folders, now, replace=["values"])
    again.process_available(until=20 * SECOND)
    folders.check({"pairs": JOIN}, {"pairs": again.results("pairs")}, 20 * SECOND)
    assert again.results("values").column("tens").to_pylist() == [50, 60], (
        "a replaced query begins anew, at the batch of its change"
    )
    assert set(again.results("changes").column("_ts").cast("int64").to_pylist()) <= {
        second * SECOND for second in range(6, 21)
    }
    with pytest.raises(InputError, match="gone"):
        again.results("gone")

    for stream in "AB":
        folders.write(stream, rows([19, 21], start=7))
    third = engine_over(spark, folders, {"pairs": JOIN})
    third.process_available()
    assert third.late("A").column("v").to_pylist() == [7], (
        "what was late by a moment of an earlier run is late"
    )

    more = SparkEngine(spark, checkpoint=folders.base / "checkpoint", partitions=2)
    more.execute(folders.declarations())
    more.execute(folders.declarations().replace("CREATE STREAM A", "CREATE STREAM C").split(";")[0])
    more.query(JOIN, name="pairs")
    with pytest.raises(CheckpointError, match="its streams are A, B, not A, B, C"):
        more.process_available()
    retyped = SparkEngine(spark, checkpoint=folders.base / "checkpoint", partitions=2)
    retyped.execute(folders.declarations().replace("v BIGINT", "v DOUBLE"))
    retyped.query(JOIN, name="pairs")
    with pytest.raises(CheckpointError, match="stream A was declared with other columns"):
        retyped.process_available()


def test_an_unreadable_deployment_is_refused_by_name_and_nothing_is_changed(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path)
    file = tmp_path / "checkpoint" / "muntin" / "program"
    file.parent.mkdir(parents=True)
    for content, message in (
        (b"garbage", "is damaged"),
        (pickle.dumps("a text"), "written by Muntin 0.1"),
        (b"", "is damaged"),
    ):
        file.write_bytes(content)
        with pytest.raises(CheckpointError, match=message) as caught:
            engine_over(spark, folders, {"values": VALUES}).process_available()
        assert str(file) in str(caught.value)
        assert file.read_bytes() == content
    file.unlink()
    (tmp_path / "checkpoint" / "spark" / "commits").mkdir(parents=True)
    (tmp_path / "checkpoint" / "spark" / "commits" / "0").touch()
    with pytest.raises(CheckpointError, match="Spark's files but no deployment"):
        engine_over(spark, folders, {"values": VALUES}).process_available()


def test_queries_are_added_and_dropped_while_the_engine_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path, ("A",))
    engine = engine_over(spark, folders, {"first": VALUES})
    folders.write("A", rows([1, 2]))
    engine.start()
    engine.settle()
    second = engine.query(OTHER_VALUES, name="second")
    folders.write("A", rows([3, 4], start=2))
    engine.settle()
    engine.drop("first")
    folders.write("A", rows([5], start=4))
    engine.settle()
    assert second.results().column("tens").to_pylist() == [20, 30, 40]
    assert second.progress is not None
    engine.drop("second")
    third = engine.query(VALUES, name="third")
    folders.write("A", rows([6], start=5))
    engine.settle()
    assert third.results().column("v").to_pylist() == [5]
    engine.stop()
    assert engine.await_termination(10)
    folders.write("A", rows([7], start=6))
    engine.start()
    engine.settle()
    engine.stop()
    assert third.results().column("v").to_pylist() == [5, 6]


KEYS = "SELECT A.v AS x, B.v AS y FROM A, B WHERE A.k = B.k WINDOW 20 SECONDS"
VALUES_MET = "SELECT A.v AS x, B.k AS y FROM A, B WHERE A.v = B.k WINDOW 20 SECONDS"
AHEAD = "SELECT A.v AS x, B.v AS y FROM A, B WHERE A.v < B.v WINDOW 20 SECONDS"


def test_a_query_with_a_new_partitioning_finds_the_rows_that_are_held(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path)
    engine = engine_over(spark, folders, {"first": KEYS})
    twin = muntin.Engine()
    for stream in "AB":
        twin.stream(stream, {"k": "bigint", "v": "bigint", "ts": "timestamp"}, time="ts")
    handles = {"first": twin.query(KEYS, name="first")}
    second = 0

    def feed(count: int) -> None:
        nonlocal second
        for stream in "AB":
            table = rows([second + number for number in range(count)], start=second)
            folders.write(stream, table)
            twin.push(stream, table)
        second += count

    feed(4)
    engine.start()
    engine.settle()
    before = engine.streaming
    engine.query(VALUES_MET, name="met")
    handles["met"] = twin.query(VALUES_MET, name="met")
    feed(3)
    engine.settle()
    assert engine.streaming is before, "nothing was stopped"
    assert engine.streaming is not None
    assert engine.streaming.isActive
    engine.stop()
    engine.query(AHEAD, name="ahead")
    handles["ahead"] = twin.query(AHEAD, name="ahead")
    feed(2)
    engine.process_available(until=100 * SECOND)
    twin.advance(100 * SECOND)
    assert not list((tmp_path / "checkpoint" / "muntin" / "carried").iterdir()), (
        "what was put aside goes when it was taken"
    )
    for name, handle in handles.items():
        expected = handle.poll()
        assert len(expected) > 2, f"{name} has results to compare"
        problem = difference(expected, engine.results(name))
        assert not problem, f"{name}: {problem}"


def test_a_heartbeat_advances_time_by_the_clock_except_during_replay(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path, ("A",))
    folders.write("A", rows([1]))
    engine = SparkEngine(
        spark, checkpoint=tmp_path / "checkpoint", partitions=1, heartbeat="1 second"
    )
    engine.execute(folders.declarations())
    handle = engine.query("SELECT v FROM A WINDOW 5 SECONDS EMIT CHANGES", name="q")
    engine.process_available()
    assert handle.results().column("_op").to_pylist() == [], (
        "the instant of the row is not complete"
    )
    engine.start()
    until = time.monotonic() + 60
    while len(handle.results()) < 2 and time.monotonic() < until:
        assert not engine.await_termination(1), "it runs until it is stopped"
    engine.stop()
    assert handle.results().column("_op").to_pylist() == ["+", "-"]
    assert not [thread for thread in threading.enumerate() if thread.name == "muntin-heartbeat"], (
        "no time moves on after the end"
    )
