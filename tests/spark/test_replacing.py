"""Runs and queries whose output folder already holds other results.

They are refused with a remedy, and replace the results on request.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from muntin.errors import SettingError
from muntin.spark import SparkEngine
from muntin.spark.driver.checkpoint import CheckpointError
from tests.spark.support import SECOND, Folders, rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-2")]

NARROW = "SELECT v FROM A WINDOW 5 SECONDS EMIT CHANGES"
WIDE = "SELECT v FROM A WINDOW 50 SECONDS EMIT CHANGES"


def engine_over(
    spark: SparkSession, folders: Folders, checkpoint: str = "one", **options: object
) -> SparkEngine:
    path = folders.base / checkpoint
    engine = SparkEngine(spark, checkpoint=path, partitions=1, **options)  # type: ignore[arg-type]
    engine.execute(folders.declarations())
    return engine


def answer(folder: Path) -> list[int]:
    """Return the rows that remain after all changes in a folder."""
    found: list[int] = []
    for file in sorted(folder.glob("batch-*.parquet")):
        for row in pq.read_table(file).to_pylist():
            (found.append if row["_op"] == "+" else found.remove)(row["v"])
    return found


def test_a_new_checkpoint_never_overwrites_the_results_of_another_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path, ("A",))
    folders.write("A", rows([1], start=1))
    sinks = {kind: {"format": kind, "path": str(tmp_path / kind)} for kind in ("parquet", "orc")}

    def engine(checkpoint: str, **options: object) -> SparkEngine:
        made = engine_over(spark, folders, checkpoint, **options)
        for kind, sink in sinks.items():
            made.query(WIDE, name=kind, sink=sink)
        return made

    engine("one").process_available(until=int(1.5 * SECOND))
    assert answer(tmp_path / "parquet") == [1]
    folders.write("A", rows([2], start=2))
    for refused, sink in sinks.items():
        other = engine_over(spark, folders, "two")
        other.query(WIDE, name="fresh", sink={"format": "json", "path": str(tmp_path / "fresh")})
        other.query(WIDE, name="q", sink=sink)
        with pytest.raises(
            SettingError,
            match=(
                rf"/{refused} holds results of query {refused} of run \w+ \(checkpoint "
                r".*/one\); this is run"
            ),
        ):
            other.process_available()
        assert not (tmp_path / "fresh").exists(), "nothing is claimed when one sink cannot be"
    assert (
        answer(tmp_path / "parquet"),
        sorted(row["v"] for row in spark.read.orc(str(tmp_path / "orc")).collect()),
    ) == ([1], [1])

    engine("one").process_available(until=int(2.5 * SECOND))
    assert answer(tmp_path / "parquet") == [1, 2], "the run that owns the folder goes on"
    engine("three", replace=True).process_available(until=int(2.5 * SECOND))
    assert answer(tmp_path / "parquet") == [1, 2]
    assert sorted(row["v"] for row in spark.read.orc(str(tmp_path / "orc")).collect()) == [1, 2]


def test_a_changed_query_leaves_no_row_without_a_retraction(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path, ("A",))
    folders.write("A", rows([1], start=1))
    out = {"format": "parquet", "path": str(tmp_path / "out")}
    taken: list[int] = []

    def function(frame: DataFrame, batch: int) -> None:
        taken.append(batch * frame.count())

    first = engine_over(spark, folders)
    first.query(WIDE, name="q", sink=out)
    first.query(WIDE, name="called", sink=function)
    first.process_available(until=int(1.5 * SECOND))
    assert answer(tmp_path / "out") == [1]

    changed = engine_over(spark, folders)
    changed.query(NARROW, name="q", sink=out)
    changed.query(WIDE, name="called", sink=function)
    with pytest.raises(
        CheckpointError,
        match=r"query q has changed \(its text\).*/out\) holds results that nothing would retract",
    ):
        changed.process_available()
    called = engine_over(spark, folders)
    called.query(WIDE, name="q", sink=out)
    called.query(NARROW, name="called", sink=function)
    with pytest.raises(
        CheckpointError, match=r"query called has changed \(its text\), and its sink \(a function\)"
    ):
        called.process_available()

    # The same query under other settings is resumed: what it emitted before is retracted when its
    # window ends.
    folders.write("A", rows([2], start=2))
    resumed = engine_over(spark, folders, expiry="lazy", sharing="off")
    resumed.query(WIDE.replace(" WINDOW", "\nWINDOW"), name="q", sink=out)
    resumed.process_available(until=51 * SECOND)
    assert answer(tmp_path / "out") == [2]

    folders.write("A", rows([60, 62], start=60))
    replaced = engine_over(spark, folders, replace=True)
    replaced.query(NARROW, name="q", sink=out)
    replaced.process_available(until=66 * SECOND)
    assert answer(tmp_path / "out") == [61], "only what the new query has"


def test_a_query_added_again_while_the_engine_runs_needs_a_new_folder(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path, ("A",))
    folders.write("A", rows([1], start=1))
    out = {"format": "parquet", "path": str(tmp_path / "out")}
    engine = engine_over(spark, folders)
    engine.query(WIDE, name="stays")
    engine.query(WIDE, name="q", sink=out)
    engine.start()
    try:
        engine.advance(int(1.5 * SECOND))
        engine.settle()
        engine.drop("q")
        for sql, name, fact in (
            (NARROW, "q", "from before it was registered again"),
            (WIDE, "q", "from before"),
            (WIDE, "r", "of query q"),
        ):
            with pytest.raises(
                SettingError,
                match=(
                    rf"/out holds results of query q.*{fact if name == 'q' else ''}.*another "
                    r"folder"
                ),
            ):
                engine.query(sql, name=name, sink=out)
        engine.query(WIDE, name="q", sink={"format": "parquet", "path": str(tmp_path / "other")})
        folders.write("A", rows([2], start=2))
        engine.settle()
        engine.advance(int(2.5 * SECOND))
        engine.settle()
    finally:
        engine.stop()
    assert (answer(tmp_path / "out"), answer(tmp_path / "other")) == ([1], [2])
