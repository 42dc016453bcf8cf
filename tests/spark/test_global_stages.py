"""Global stages on executors: the driver passes on names, and nothing else changes."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from muntin.errors import RunError
from muntin.spark import SparkEngine
from muntin.spark.batch_results import BatchResults
from muntin.spark.driver import global_stages
from muntin.spark.exchange.marks import GLOBAL
from muntin.spark.partition.global_stage import GlobalStage
from muntin.spark.sinks import read_batches
from muntin.testing.compare import difference
from muntin.testing.processes import kill, state_servers
from tests.spark.support import SCHEMA, SECOND, Folders, random_rows
from tests.spark.test_pipelines import ABOVE, LOCAL
from tests.spark.test_subscribe import Taker, Waiting

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-2")]

QUERIES = ABOVE | {
    "groups": LOCAL["groups"],
    "either": "SELECT v % 5 AS m FROM A UNION SELECT k FROM B WINDOW 3 SECONDS",
}
END = 30 * SECOND
GROUPS = (
    "SELECT n, MEDIAN(k) AS m FROM (SELECT k, COUNT(*) AS n FROM A GROUP BY k) c GROUP BY n "
    "WINDOW 3 SECONDS"
)


@pytest.fixture
def on_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all stages on executors from the first batch on."""
    monkeypatch.setattr(global_stages, "LARGE", -1)
    monkeypatch.setattr(GlobalStage, "run", lambda *_: pytest.fail("the driver has run a stage"))


def engine_over(spark: SparkSession, folders: Folders, partitions: int = 2) -> SparkEngine:
    checkpoint = folders.base / "checkpoint"
    engine = SparkEngine(spark, checkpoint=checkpoint, partitions=partitions)
    engine.execute(folders.declarations())
    return engine


@pytest.mark.usefixtures("on_executors")
def test_results_are_exact_over_restarts_lost_servers_and_other_numbers_of_partitions(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path)
    tables = {stream: random_rows(seed, 90, 18) for seed, stream in enumerate("AB")}
    takers = {name: Taker() for name in QUERIES}
    found: dict[str, pa.Table] = {}
    for start, partitions in enumerate((2, 2, 3)):
        engine = engine_over(spark, folders, partitions)
        for name, sql in QUERIES.items():
            engine.query(sql, name=name).subscribe(takers[name])
        for file in (2 * start, 2 * start + 1):
            for stream, table in tables.items():
                folders.write(stream, table.slice(15 * file, 15))
            engine.settle()
            for pid in state_servers(os.getpid()) if file % 2 == 0 else ():
                kill(pid)
        engine.query("SELECT COUNT(*) AS n FROM A WINDOW 1 MINUTE", name="added")
        engine.drop("added")
        if start == 2:
            engine.advance(END)
            engine.settle()
        engine.stop()
        found = {name: engine.results(name) for name in QUERIES}
    folders.check(QUERIES, found, END)
    for name, taker in takers.items():
        taker.check_without_gaps()
        assert not difference(found[name], taker.results()), name
    assert {mark.partition for mark, _ in takers["total"].pieces} == {GLOBAL}


@pytest.mark.usefixtures("on_executors")
def test_subscribers_get_results_before_sinks_and_a_damaged_log_is_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path)
    folders.write("A", random_rows(1, 30, 6))
    taker = Taker()
    sink = Waiting(taker.called)
    engine = engine_over(spark, folders)
    engine.query(ABOVE["total"], name="total", sink=sink).subscribe(taker)
    engine.process_available()
    assert sink.in_time
    folders.write("A", random_rows(2, 30, 6))
    damaged = max((tmp_path / "checkpoint" / "muntin" / "global").glob("*/*.changes*"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    engine = engine_over(spark, folders)
    engine.query(ABOVE["total"], name="total", sink=sink)
    with pytest.raises(RunError, match=rf"is damaged: .*query total .*{damaged.name} is damaged"):
        engine.process_available()


def dense(seed: int, begin: int, count: int) -> pa.Table:
    """Return rows of two seconds with many keys."""
    generator = np.random.default_rng(seed)
    times = np.sort(generator.integers(begin * 10, begin * 10 + 20, count)) * (SECOND // 10)
    columns = [generator.integers(0, 20_000, count), np.arange(count), times]
    return pa.table(
        [pa.array(column).cast(field.type) for column, field in zip(columns, SCHEMA, strict=True)],
        schema=SCHEMA,
    )


def test_a_stage_moves_with_its_first_large_batch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = Folders(tmp_path, ("A",))
    for step, count in enumerate((50, 30_000, 50)):
        folders.write("A", dense(step, 2 * step, count))
    here: list[int] = []
    run = GlobalStage.run

    def noted(self: GlobalStage, batch: int, *outputs: object) -> pa.Table:
        here.append(batch)
        return run(self, batch, *outputs)  # type: ignore[arg-type]

    monkeypatch.setattr(GlobalStage, "run", noted)
    table = BatchResults.table

    def read(self: BatchResults) -> pa.Table:
        assert len(self) < 1_000, "the driver reads few rows"
        return table(self)

    monkeypatch.setattr(BatchResults, "table", read)
    engine = engine_over(spark, folders)
    path = tmp_path / "out"
    engine.query(GROUPS, name="groups", sink={"format": "parquet", "path": str(path)})
    engine.process_available(until=END)
    assert here == [0]
    assert engine.progress is not None
    assert engine.progress["muntin"]["queries"]["groups"]["last_stage_rows"] == 0, "all have left"
    files = sorted(path.glob("batch-*.parquet"))
    assert not list(path.glob(".batch*")), "every file got its name"
    schema = pyarrow.parquet.read_schema(files[0])
    folders.check({"groups": GROUPS}, {"groups": read_batches(path, schema)}, END)
