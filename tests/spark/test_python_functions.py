"""Python functions on Spark: shipped to partitions and global stages, and declared again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import muntin
from muntin.spark import SparkEngine
from muntin.spark.driver.checkpoint import CheckpointError
from muntin.spark.standing_query import SparkQuery
from muntin.testing.compare import difference
from tests.spark.support import Folders, rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-2")]

QUERIES = {
    "joined": "SELECT A.v, scaled(B.v) AS w FROM A, B WHERE scaled(A.k) = scaled(B.k) "
    "WINDOW 4 SECONDS",
    "counted": "SELECT COUNT(*) AS n, SUM(scaled(v)) AS s FROM A WINDOW 4 SECONDS",
}
BROKEN = "SELECT broken(v) AS v FROM A WINDOW 4 SECONDS"


def declare(engine: SparkEngine | muntin.Engine, factor: int) -> None:
    def scaled(x: pa.Array) -> pa.Array:
        return pc.multiply(x, factor)

    def broken(_: pa.Array) -> pa.Array:
        raise ValueError("broken")

    engine.function("scaled", scaled, {"x": "bigint"}, "bigint")
    engine.function("broken", broken, {"x": "bigint"}, "bigint")


def run(
    spark: SparkSession, folders: Folders, checkpoint: Path, factor: int
) -> tuple[SparkEngine, SparkQuery]:
    engine = SparkEngine(spark, checkpoint=checkpoint, partitions=2)
    engine.execute(folders.declarations())
    if factor:
        declare(engine, factor)
    for name, sql in QUERIES.items() if factor else ():
        engine.query(sql, name=name, sink="memory")
    broken = engine.query(
        BROKEN if factor else "SELECT v FROM A WINDOW 4 SECONDS", name="broken", sink="memory"
    )
    engine.process_available()
    return engine, broken


def test_functions_are_shipped_and_belong_to_the_checkpoint(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders, checkpoint = Folders(tmp_path), tmp_path / "checkpoint"
    local = muntin.Engine(clock=None)
    for name in folders.streams:
        local.stream(name, {"k": "bigint", "v": "bigint", "ts": "timestamp"})
        folders.write(name, rows(range(8)))
    declare(local, 3)
    queries = [local.query(sql, name=name) for name, sql in QUERIES.items()]
    engine, broken = run(spark, folders, checkpoint, 3)
    reason = str(broken.stats()["suspended"])
    assert reason.startswith("the function broken failed in test_python_functions.py, line ")
    for name in folders.streams:
        folders.write(name, rows([8, 9], start=8))
    with pytest.raises(CheckpointError, match=r"with the functions scaled\(x BIGINT\) -> BIGINT"):
        run(spark, folders, checkpoint, 0)
    with pytest.raises(CheckpointError, match=r"query joined has changed \(the code of scaled\)"):
        run(spark, folders, checkpoint, 4)
    engine, _ = run(spark, folders, checkpoint, 3)
    for name, tables in folders.written.items():
        local.push(name, pa.concat_tables(tables))
    for query in queries:
        assert not difference(query.poll(), engine.results(query.name))
