"""Many results: executors write them, and the driver handles names and counts."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import DataFrame, SparkSession

from muntin.spark import SparkEngine
from muntin.spark.batch_results import BatchResults
from muntin.spark.sinks import read_batches
from muntin.testing.compare import difference
from tests.spark.support import SCHEMA, SECOND, Folders

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-2")]

QUERIES = {
    "pairs": "SELECT A.k, A.v, B.v AS w FROM A, B WHERE A.k = B.k WINDOW 4 SECONDS",
    # Rows of different keys, and so of different partitions, are often equal.
    "changes": "SELECT A.v % 9 AS v, B.v % 9 AS w FROM A, B WHERE A.k = B.k WINDOW 4 SECONDS "
    "EMIT CHANGES",
}
END = 20 * SECOND


def dense(seed: int, begin: int, end: int) -> pa.Table:
    """Return rows of some seconds with few keys, at few instants, so that changes cancel out."""
    generator = np.random.default_rng(seed)
    times = np.sort(generator.integers(begin * 10, end * 10, 1_500)) * (SECOND // 10)
    columns = [generator.integers(0, 40, len(times)), np.arange(len(times)), times]
    return pa.table(
        [pa.array(column).cast(field.type) for column, field in zip(columns, SCHEMA, strict=True)],
        schema=SCHEMA,
    )


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    found = Folders(tmp_path, ("A", "B"))
    for step in range(3):
        for seed, stream in enumerate("AB"):
            found.write(stream, dense(2 * step + seed, step * 4, step * 4 + 4))
    return found


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path, folders: Folders) -> SparkEngine:
    engine = SparkEngine(spark, checkpoint=tmp_path / "state", partitions=3)
    engine.execute(folders.declarations())
    return engine


def test_files_of_partitions_hold_all_results_and_no_rows_pass_through_the_driver(
    engine: SparkEngine, tmp_path: Path, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BatchResults, "table", lambda _: pytest.fail("the driver read rows"))
    for name, sql in QUERIES.items():
        path = str(tmp_path / "out" / name)
        engine.query(sql, name=name, sink={"format": "parquet", "path": path})
    engine.process_available()
    monkeypatch.undo()
    engine.process_available(until=END)
    found = {}
    for name in QUERIES:
        folder = tmp_path / "out" / name
        files = sorted(file.name for file in folder.glob("batch-*.parquet"))
        assert {"batch-000000001-00000.parquet", "batch-000000001-00002.parquet"} <= {*files}
        assert not list(folder.glob(".batch*")), "every file got its name"
        schema = pa.parquet.read_schema(folder / files[0])
        for file in files:
            times = pa.parquet.read_table(folder / file).column("_ts").cast(pa.int64()).to_numpy()
            assert (np.diff(times) >= 0).all(), "each file is in the order of time"
        found[name] = read_batches(folder, schema)
    folders.check(QUERIES, found, END)


def test_a_function_gets_a_dataframe_with_a_partition_per_piece(
    engine: SparkEngine, folders: Folders
) -> None:
    taken: dict[str, list[pa.Table]] = {name: [] for name in QUERIES}
    partitions: dict[str, list[int]] = {name: [] for name in QUERIES}

    def take(name: str, frame: DataFrame, _: int) -> None:
        taken[name].append(frame.toArrow())
        partitions[name].append(frame.rdd.getNumPartitions())

    for name, sql in QUERIES.items():
        engine.query(sql, name=name, sink=partial(take, name))
        engine.query(sql, name=f"{name}_kept")
    engine.process_available(until=END)
    kept = {name: engine.results(f"{name}_kept") for name in QUERIES}
    folders.check(QUERIES, kept, END)
    for name in QUERIES:
        assert max(partitions[name]) == 3, "pieces stay where they are"
        results = pa.concat_tables(
            table.set_column(1, "_ts", table.column("_ts").cast(pa.timestamp("us")))
            for table in taken[name]
        ).cast(kept[name].schema)
        assert not difference(kept[name], results), name
