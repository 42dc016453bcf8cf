"""Rows that are stamped on Spark: once per micro-batch, the same when the batch is repeated."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from muntin.errors import RunError
from muntin.spark import SparkEngine

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-2")]

PAIRS = "SELECT A.v AS x, B.v AS y, A._arrival AS at FROM A, B WHERE A.k = B.k WINDOW 1 HOUR"


def test_a_batch_that_failed_has_the_same_time_after_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = {name: tmp_path / name for name in "AB"}
    for name, folder in folders.items():
        folder.mkdir()
        pq.write_table(pa.table({"k": [1, 2], "v": [10, 20]}), folder / f"{name}1.parquet")
    calls: list[DataFrame] = []

    def sink(results: DataFrame, _: int) -> None:
        calls.append(results)
        if len(calls) == 1:
            raise ValueError("the sink is down")

    def engine_at(now: int) -> SparkEngine:
        engine = SparkEngine(spark, checkpoint=tmp_path / "checkpoint", partitions=2)
        engine._parts.controls.clock = lambda: now
        for name, folder in folders.items():
            frame = spark.readStream.schema("k long, v long").parquet(str(folder))
            engine.stream(name, frame, time="arrival")
        engine.query(PAIRS, name="kept")
        engine.query("SELECT v FROM A WINDOW 1 HOUR", name="other", sink=sink)
        return engine

    with pytest.raises(RunError, match="the sink is down"):
        engine_at(1_000).process_available()
    engine = engine_at(5_000)
    engine.process_available()
    found = engine.results("kept")
    assert sorted(found.column("x").to_pylist()) == [10, 20]
    assert set(found.column("at").cast(pa.int64()).to_pylist()) == {1_000}, "stamped once"
    pq.write_table(pa.table({"k": [1], "v": [30]}), folders["A"] / "A2.parquet")
    later = engine_at(500)
    later.process_available()
    assert later.results("kept").column("at").cast(pa.int64()).to_pylist()[2:] == [1_001], (
        "a clock that was set back moves no time back"
    )
    assert later.late("A").num_rows == 0
