"""Spark Structured Streaming: stream-stream joins and sliding windows, with the job's state store.

Micro-batches of as many files as Muntin on Spark gets, everything that is there and then the end.
Rows go to ``noop``, and an observed metric counts them and adds up the checksum. Settings of the
session are those that Muntin's own session has.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import count, expr, lit
from pyspark.sql.functions import sum as sum_

CANNOT: Mapping[str, str] = {
    "rows": "joins of streams are bounded by time; there are no windows of rows"
}
STORES = {
    "default": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}
_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
_PARTITIONS = 2


def begin(job: Mapping[str, Any]) -> SparkSession:
    """Return a local session; Java may use half of the memory, which the default store needs."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 // 2**30
    builder = SparkSession.builder.master(f"local[{max(os.cpu_count() or 1, 2)}]").config(
        "spark.driver.memory", f"{max(memory, 2)}g"
    )
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    builder = builder.config("spark.sql.shuffle.partitions", str(_PARTITIONS))
    return builder.config(
        "spark.sql.streaming.stateStore.providerClass", STORES[job["store"]]
    ).getOrCreate()


def run(spark: SparkSession, job: Mapping[str, Any]) -> dict[str, list[int]]:
    """One streaming query for each window, all at once."""
    make = {"join": _join, "three": _three, "distinct": _distinct, "aggregate": _aggregate}[
        job["kind"]
    ]
    with tempfile.TemporaryDirectory(prefix="muntin-bench-", ignore_cleanup_errors=True) as folder:
        queries = {}
        for window in job["windows"]:
            frame, checksum = make(spark, job, window)
            observed = frame.observe(
                "results", count(lit(1)).alias("n"), sum_(expr(checksum)).alias("c")
            )
            writer = observed.writeStream.format("noop").outputMode("append")
            queries[str(window)] = (
                writer.option("checkpointLocation", str(Path(folder) / str(window)))
                .trigger(availableNow=True)
                .start()
            )
        found = {}
        for name, query in queries.items():
            query.awaitTermination()
            told = [
                progress.observedMetrics["results"]
                for progress in query.recentProgress
                if "results" in progress.observedMetrics
            ]
            found[name] = [
                sum(int(row["n"]) for row in told),
                sum(int(row["c"] or 0) for row in told),
            ]
        return found


def _stream(spark: SparkSession, job: Mapping[str, Any], name: str) -> DataFrame:
    reader = spark.readStream.schema("k BIGINT, g BIGINT, v BIGINT, ts TIMESTAMP_NTZ").option(
        "maxFilesPerTrigger", job["per_trigger"] * job.get("times", 1)
    )
    frame = reader.parquet(f"{job['data']}/{name}").selectExpr(
        "k", "g", "v", "CAST(ts AS TIMESTAMP) AS ts"
    )
    return frame.withWatermark("ts", "0 seconds")


def _mixed(number: str) -> str:
    """Return the term of a result in the checksum: a square, so that swapped partners show."""
    return f"pmod({number}, 1000003) * pmod({number}, 1000003) % 1000003"


def _near(one: str, other: str, window: int) -> str:
    return (
        f"{one} > {other} - INTERVAL {window} MILLISECONDS AND {one} < {other} + INTERVAL {window} "
        "MILLISECONDS"
    )


def _join(spark: SparkSession, job: Mapping[str, Any], window: int) -> tuple[DataFrame, str]:
    a, b = (_stream(spark, job, name).alias(name) for name in "AB")
    joined = a.join(b, expr(f"A.k = B.k AND {_near('A.ts', 'B.ts', window)}"))
    return joined.selectExpr("A.v AS av", "B.v AS bv"), _mixed("av * 7919 + bv * 104729")


def _three(spark: SparkSession, job: Mapping[str, Any], window: int) -> tuple[DataFrame, str]:
    a, b, c = (_stream(spark, job, name).alias(name) for name in "ABC")
    pairs = a.join(b, expr(f"A.k = B.k AND {_near('A.ts', 'B.ts', window)}"))
    # What goes into the next stateful operator may have one column with a watermark; the time of B
    # continues as a number.
    pairs = pairs.selectExpr(
        "A.k AS k", "A.ts AS ts", "unix_millis(B.ts) AS bt", "A.v AS av", "B.v AS bv"
    ).alias("P")
    near = f"{_near('P.ts', 'C.ts', window)} AND abs(P.bt - unix_millis(C.ts)) < {window}"
    triples = pairs.join(c, expr(f"P.k = C.k AND {near}")).selectExpr("av", "bv", "C.v AS cv")
    return triples, _mixed("av * 7919 + bv * 104729 + cv * 1299709")


def _windows(
    frame: DataFrame, job: Mapping[str, Any], window: int, columns: list[str]
) -> DataFrame:
    return frame.selectExpr(
        *columns, f"window(ts, '{window} milliseconds', '{job['every']} seconds') AS w"
    )


def _distinct(spark: SparkSession, job: Mapping[str, Any], window: int) -> tuple[DataFrame, str]:
    rows = _windows(_stream(spark, job, "A"), job, window, ["k"]).dropDuplicates(["w", "k"])
    answers = rows.selectExpr("unix_timestamp(w.end) AS t", "k").where(f"t <= {job['end']}")
    return answers, _mixed("t * 7919 + k * 104729")


def _aggregate(spark: SparkSession, job: Mapping[str, Any], window: int) -> tuple[DataFrame, str]:
    a = _windows(_stream(spark, job, "A"), job, window, ["k", "g"])
    b = _windows(_stream(spark, job, "B"), job, window, ["k", "v"])
    groups = (
        a.join(b, ["k", "w"]).groupBy("w", "g").agg(count(lit(1)).alias("n"), sum_("v").alias("s"))
    )
    answers = groups.selectExpr("unix_timestamp(w.end) AS t", "g", "n", "s").where(
        f"t <= {job['end']}"
    )
    return answers, _mixed("t * 7919 + g * 104729 + n * 1299709 + s * 15485863")
