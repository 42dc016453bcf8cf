"""Bad rows and queries that cannot be evaluated never stop a run on Spark, nor its restart."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark.support import SCHEMA, SECOND, Folders

from muntin.expressions.salvage import MOST
from muntin.spark import SparkEngine

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-1")]

FAILING = "SELECT 'a' LIKE repeat('$', (k - k + 1)::BIGINT) ESCAPE '$' AS v FROM A WINDOW 2 SECONDS"
"""TRY does not catch this error, so a batch with more than MOST rows is as good as none."""


def some_rows(first: int, count: int) -> pa.Table:
    places = range(first, first + count)
    times = pa.array([place * SECOND // 1_000 for place in places]).cast(pa.timestamp("us"))
    return pa.table([pa.array([place % 3 for place in places]), pa.array(places), times], schema=SCHEMA)


def test_a_failing_query_and_bad_rows_leave_the_others_alone(spark: SparkSession, tmp_path: Path) -> None:
    folders = Folders(tmp_path, ("A",))
    few, many = 30, MOST + 100
    folders.write("A", some_rows(0, few))
    folders.write("A", some_rows(few, many))
    for batches in (2, 3):
        engine = SparkEngine(spark, checkpoint=tmp_path / "checkpoint", buckets=1)
        engine.execute(folders.declarations())
        healthy = engine.query("SELECT v FROM A WINDOW 2 SECONDS", name="healthy", sink="memory")
        bad = engine.query("SELECT v % k AS a, v % k + 1 AS b FROM A WINDOW 2 SECONDS", name="bad", sink="memory")
        failing = engine.query(FAILING, name="failing", sink="memory")
        engine.process_available()
        rows = few + many + (few if batches == 3 else 0)
        assert len(healthy.results()) == rows
        expected = [None if place % 3 == 0 else place % (place % 3) for place in range(rows)]
        found = bad.results().sort_by("_ts").to_pylist()
        assert [(row["a"], row["b"]) for row in found] == [(one, None if one is None else one + 1) for one in expected]
        assert len(failing.results()) == few
        assert "more than" in failing.stats()["suspended"]
        assert healthy.stats()["suspended"] is None
        assert "suspended" in engine.explain("failing")
        engine.stop()
        folders.write("A", some_rows(rows, few))
