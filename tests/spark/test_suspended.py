"""Bad rows and queries that cannot be evaluated never stop a run on Spark, nor its restart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from muntin.errors import EvaluationError, QuerySuspendedError
from muntin.expressions.evaluator import Evaluator
from muntin.spark import SparkEngine
from tests.spark.support import Folders, rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-1")]

MARK = 777_001
"""A number in an expression that is made to fail: the global stage computes it, in this process."""
REPAIRED = 3
"""The run that replaces the suspended query."""
BAD = "SELECT v % k AS a, v % k + 1 AS b FROM A WINDOW 2 SECONDS"
"""Fails on a third of the rows, those whose key is 0."""


def break_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = Evaluator.raw

    def broken(self: Evaluator, texts: Sequence[str], batch: pa.Table) -> list[pa.ChunkedArray]:
        if any(str(MARK) in text for text in texts):
            raise EvaluationError("nothing works")
        return raw(self, texts, batch)

    monkeypatch.setattr(Evaluator, "raw", broken)


def test_a_failing_query_and_bad_rows_do_not_affect_the_others(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = Folders(tmp_path, ("A",))
    counted = None
    # All is well, then one query fails, then it could run again, and then it is replaced.
    for run in range(4):
        folders.write("A", rows([30 * run + second for second in range(30)], start=30 * run))
        engine = SparkEngine(
            spark,
            checkpoint=tmp_path / "checkpoint",
            partitions=1,
            replace=["failing"] if run == REPAIRED else [],
        )
        engine.execute(folders.declarations())
        bad = engine.query(BAD, name="bad", sink="memory")
        failing = engine.query(
            f"SELECT count(*) + {MARK} AS n FROM A WINDOW 2 SECONDS", name="failing", sink="memory"
        )
        with monkeypatch.context() as patch:
            if run == 1:
                break_marked(patch)
            engine.process_available()
        found = [(row["a"], row["b"]) for row in bad.results().sort_by("_ts").to_pylist()]
        values = [None if place % 3 == 0 else place % (place % 3) for place in range(30 * run + 30)]
        assert found == [(value, None if value is None else value + 1) for value in values]
        assert bad.stats()["suspended"] is None
        if run == REPAIRED:
            times = failing.results().column("_ts").cast("int64").to_pylist()
            assert min(times) >= 90_000_000, "its results from before are deleted"
            assert failing.results().column("n").to_pylist()[-1] == MARK + 2
            assert failing.stats()["suspended"] is None
            assert failing.exception() is None
            assert "suspended" not in engine.explain("failing")
            break
        counted = len(failing.results()) if counted is None else counted
        assert 0 < counted == len(failing.results())
        assert failing.stats()["suspended"] == (None if run == 0 else "nothing works")
        assert (bad.exception(), isinstance(failing.exception(), QuerySuspendedError)) == (
            None,
            run > 0,
        )
        assert ("suspended" in engine.explain("failing")) == (run > 0)
