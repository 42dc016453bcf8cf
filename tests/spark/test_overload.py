"""Overload on Spark.

Tests cover limits as control rows, subsets of the exact results, restarts, and queries that cannot
adapt.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import muntin
from benchmarks.spark_overload import bench_spark_overload
from benchmarks.spark_overload_input import QUICK, Rows
from muntin.errors import SettingError
from muntin.spark import SparkEngine

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-2")]

SECOND = 1_000_000
SQL = (
    "SELECT A.ts AS a, B.ts AS b, C.ts AS c FROM A, B, C WHERE A.k = B.k AND B.k = C.k "
    "WINDOW 1 SECOND FRESHNESS 2 SECONDS"
)
SCHEMA = "(k BIGINT, ts TIMESTAMP)"


def write(folder: Path, seconds: range, seed: int = 3) -> dict[str, pa.Table]:
    """Write a file per second and stream; the seconds in the middle have more rows."""
    drawn = np.random.default_rng(seed)
    tables: dict[str, list[pa.Table]] = {name: [] for name in "ABC"}
    for second in range(20):
        count = 120 if 4 <= second < 8 else 30
        for name, parts in tables.items():
            times = pa.array(np.sort(drawn.integers(0, SECOND, count)) + second * SECOND).cast(
                pa.timestamp("us")
            )
            parts.append(pa.table({"k": drawn.integers(0, 8, count), "ts": times}))
            path = folder / name / f"{second:03d}.parquet"
            if second in seconds:
                path.parent.mkdir(parents=True, exist_ok=True)
                pq.write_table(parts[-1], path)
                os.utime(path, (1_000 + second, 1_000 + second))
    return {name: pa.concat_tables(parts) for name, parts in tables.items()}


def engine_over(spark: SparkSession, folder: Path, **settings: Any) -> SparkEngine:
    engine = SparkEngine(
        spark, checkpoint=folder / "checkpoint", partitions=2, overload="adapt", **settings
    )
    for name in "ABC":
        path = folder / name
        engine.execute(
            f"CREATE STREAM {name} {SCHEMA} "
            f"WITH (format = 'parquet', path = '{path}', time = 'ts', maxFilesPerTrigger = '1')"
        )
    engine.query(SQL, name="q")
    return engine


def exact(tables: dict[str, pa.Table]) -> Counter[tuple[int, ...]]:
    engine = muntin.Engine()
    for name in "ABC":
        engine.execute(f"CREATE STREAM {name} {SCHEMA} WITH (time = 'ts')")
    query = engine.query(SQL)
    for name, table in tables.items():
        engine.push(name, table)
    engine.advance(100 * SECOND)
    return members(query.poll())


def members(results: pa.Table) -> Counter[tuple[int, ...]]:
    return Counter(
        zip(*(results.column(name).cast(pa.int64()).to_pylist() for name in "abc"), strict=True)
    )


def test_results_are_a_subset_of_the_exact_ones_and_complete_at_low_load(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = write(tmp_path, range(6))
    engine = engine_over(spark, tmp_path, resources=1000)
    engine.start()
    engine.settle()
    reported = engine.progress
    engine.stop()
    assert reported is not None
    overload = reported["muntin"]["queries"]["q"]["overload"]
    assert overload["overloaded"]
    assert overload["stale_results"] == 0
    assert set(overload["budgets"]) == {"A into B", "B into A", "C into A+B", "A+B into C"}
    write(tmp_path, range(6, 20))
    again = engine_over(spark, tmp_path, resources=1000)
    again.start()
    again.settle()
    again.stop()
    made, possible = members(again.results("q")), exact(tables)
    assert max(made.values()) == 1, "every result once"
    assert set(made) <= set(possible)
    assert 0 < len(made) < len(possible)
    early = {one for one in possible if max(one) < 3 * SECOND}
    assert early <= set(made), "nothing is missing before the load is high"
    late = {one for one in possible if 18 * SECOND <= max(one) < 19.5 * SECOND}
    assert late
    assert late <= set(made), "and nothing once it is low again"


def test_without_a_trigger_interval_or_resources_there_is_nothing_to_adapt_to(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path, range(1))
    engine = engine_over(spark, tmp_path)
    with pytest.raises(SettingError, match="trigger"):
        engine.start()
    engine.process_available()
    reported = engine.progress
    assert reported is not None
    assert not reported["muntin"]["queries"]["q"]["overload"]["overloaded"], (
        "where nobody waits nothing is left out"
    )


COUNTS = (
    "SELECT A.k AS k, COUNT(*) AS n FROM A, B, C WHERE A.k = B.k AND B.k = C.k GROUP BY A.k "
    "WINDOW 1 SECOND FRESHNESS 2 SECONDS EMIT CHANGES"
)


def answers(changes: pa.Table) -> Iterator[tuple[datetime, Counter[tuple[int, int]]]]:
    """Yield the answer after every instant, and check that only what was there is taken back."""
    answer: Counter[tuple[int, int]] = Counter()
    for instant, rows in groupby(changes.to_pylist(), key=lambda row: row["_ts"]):
        for row in rows:
            answer[row["k"], row["n"]] += 1 if row["_op"] == "+" else -1
        assert min(answer.values(), default=0) >= 0
        yield instant, +answer


def test_operators_count_the_matches_that_limited_joins_make_also_after_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables, results = write(tmp_path, range(0)), list[pa.Table]()
    for seconds in (range(6), range(6, 20)):
        write(tmp_path, seconds)
        engine = engine_over(spark, tmp_path, resources=1000)
        engine.query(COUNTS, name="counts")
        engine.start()
        engine.settle()
        reported = engine.progress
        engine.stop()
        results.append(engine.results("counts"))
        assert reported is not None
        counts = reported["muntin"]["queries"]["counts"]
        assert counts["in_effect"]["overload"] == "adapt"
        assert counts["overload"]["overloaded"] == (6 not in seconds)
        assert counts["overload"]["stale_results"] == 0
    exact = muntin.Engine()
    for name in "ABC":
        exact.execute(f"CREATE STREAM {name} {SCHEMA} WITH (time = 'ts')")
    query = exact.query(COUNTS)
    for name, table in tables.items():
        exact.push(name, table)
    exact.advance(19_500_000)
    possible = dict(answers(query.poll()))
    found = dict(answers(results[-1]))
    instants = [instant for instant in found if instant in possible]
    late = [instant for instant in instants if instant >= instants[0] + timedelta(seconds=18)]
    assert late
    assert all(found[instant] == possible[instant] for instant in late)
    assert any(found[instant] != possible[instant] for instant in instants)


def test_the_benchmark_counts_results_from_rows_alone() -> None:
    rows = Rows.drawn(QUICK, 20.0)
    tables = {name: rows.between(name, 0, QUICK.seconds, 0) for name in "ABC"}
    engine = muntin.Engine()
    for name in "ABC":
        engine.execute(f"CREATE STREAM {name} {SCHEMA} WITH (time = 'ts')")
    query = engine.query(
        f"SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW {QUICK.window} SECONDS"
    )
    for name, table in tables.items():
        engine.push(name, table)
    engine.advance(1_000 * SECOND)
    times = query.poll().column("_ts").cast(pa.int64()).to_numpy()
    assert (
        rows.results(QUICK).tolist()
        == np.bincount(times // SECOND, minlength=QUICK.seconds).tolist()
    )


def test_the_benchmark_runs() -> None:
    report = bench_spark_overload(lambda _: None, quick=True)
    assert all(row.keys() == report.rows[0].keys() for row in report.rows), (
        "tables want the same columns"
    )
    assert [row["system"] for row in report.rows] == ["Muntin, adapt", "Spark's own join"]
    assert len(report.claims) == 5
    assert report.claims[1].holds, "freshness is kept however little time there was to adapt"
    assert report.claims[2].holds
