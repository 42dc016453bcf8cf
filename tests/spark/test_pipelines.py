"""DISTINCT, GROUP BY, aggregates, set operators and sub-selects on Spark.

The results are those of the in-process engine, also after restarts.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from muntin.spark import SparkEngine
from muntin.spark.driver.checkpoint import CheckpointError
from tests.spark.support import SECOND, Folders, random_rows, rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-2")]

LOCAL = {
    "groups": (
        "SELECT k, COUNT(*) AS n, AVG(v) AS a, MEDIAN(v) AS m FROM A GROUP BY k WINDOW 4 SECONDS"
    ),
    "joined": (
        "SELECT A.k, SUM(B.v) AS total FROM A, B WHERE A.k = B.k GROUP BY A.k "
        "HAVING COUNT(*) > 1 WINDOW 2 SECONDS EVERY 1 SECOND"
    ),
    "asof": (
        "SELECT A.k, A.v, B.v AS w FROM A ASOF LEFT JOIN B ON A.k = B.k AND A.ts >= B.ts "
        "WINDOW 2 SECONDS EMIT CHANGES"
    ),
    "both": "SELECT k FROM A INTERSECT SELECT k FROM B WINDOW 1 SECOND",
    "shown": "SELECT DISTINCT k FROM B WINDOW 2 SECONDS EVERY 3 SECONDS EMIT SNAPSHOT",
}
ABOVE = {
    "total": (
        "SELECT COUNT(*) AS n, SUM(v * 0.1::DOUBLE) AS s, MIN(v) AS least, COUNT(DISTINCT k) AS "
        "keys FROM A WINDOW 3 SECONDS"
    ),
    "counts": (
        "SELECT n, COUNT(*) AS groups FROM (SELECT k, COUNT(*) AS n FROM B "
        "GROUP BY k) c GROUP BY n WINDOW 2 SECONDS EMIT INSERTS"
    ),
    "rolled": (
        "SELECT k, v % 2 AS odd, GROUPING(k, v % 2) AS g, SUM(v) AS s, MEDIAN(v) AS m FROM A "
        "GROUP BY ROLLUP (k, v % 2) WINDOW 3 SECONDS"
    ),
    "newest": "SELECT MAX(v) AS v FROM A WINDOW 2 SECONDS EVERY 2 SECONDS EMIT SNAPSHOT",
}
QUERIES = LOCAL | ABOVE


def engine_over(
    spark: SparkSession, folders: Folders, queries: dict[str, str], partitions: int = 2
) -> SparkEngine:
    engine = SparkEngine(spark, checkpoint=folders.base / "checkpoint", partitions=partitions)
    engine.execute(folders.declarations())
    for name, sql in queries.items():
        engine.query(sql, name=name)
    return engine


def test_results_are_those_in_process_even_from_a_checkpoint(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path)
    stages = tmp_path / "checkpoint" / "muntin" / "global"
    for stream, seed in (("A", 1), ("B", 2)):
        folders.write(stream, random_rows(seed, 60, 6))
    engine_over(spark, folders, QUERIES).process_available()
    assert len(list(stages.iterdir())) == len(ABOVE), (
        "a folder for each query that has a global stage"
    )
    for stream in "AB":
        folders.write(stream, rows([7, 7.5, 8, 11], start=100))
    again = engine_over(spark, folders, QUERIES)
    again.settle()
    again.query("SELECT COUNT(*) AS n FROM A WINDOW 1 MINUTE", name="added")
    assert len(list(stages.iterdir())) == len(ABOVE)
    for stream in "AB":
        folders.write(stream, rows([12, 13], start=104))
    again.settle()
    again.advance(20 * SECOND)
    again.settle()
    assert again.results("added").column("n").to_pylist() == [1, 1, 2], (
        "it counts what came after it"
    )
    assert len(list(stages.iterdir())) == len(ABOVE) + 1
    again.drop("added")
    again.advance(21 * SECOND)
    again.settle()
    again.stop()
    folders.check(QUERIES, {name: again.results(name) for name in QUERIES}, 21 * SECOND)
    assert len(list(stages.iterdir())) == len(ABOVE), "what a dropped query remembered is gone"
    assert again.progress is not None
    reported = again.progress["muntin"]["queries"]
    assert [reported[name]["last_stage_rows"] for name in LOCAL] == [0] * len(LOCAL), (
        "they have no global stage"
    )
    assert reported["newest"]["last_stage_rows"] > 0

    damaged = max(stages.glob("*/*.changes*"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    with pytest.raises(
        CheckpointError, match=rf"{damaged.name} is damaged. Restore the checkpoint folder"
    ):
        engine_over(spark, folders, QUERIES).process_available()


def test_explain_shows_what_runs_where(spark: SparkSession, tmp_path: Path) -> None:
    engine = engine_over(spark, Folders(tmp_path), QUERIES)
    assert "by A.k" in engine.explain("groups")
    assert "partitions compute group by 1 of the columns below (rows)" in engine.explain("groups")
    assert "the global stage computes one group (rows from all partitions)" in engine.explain(
        "total"
    )
