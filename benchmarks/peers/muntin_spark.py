"""Muntin on Spark: all queries in one engine; the driver counts results in Arrow tables."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.peers.muntin_process import sql, summary
from muntin.spark.api import SparkEngine
from muntin.spark.batch_results import BatchResults
from muntin.spark.session import local_session
from muntin.spark.sinks import Sink

CANNOT: Mapping[str, str] = {}
_PARTITIONS = 2


@dataclass
class _Summaries(Sink):
    """Number of results and checksum of each batch."""

    job: Mapping[str, Any]
    batches: dict[int, tuple[int, int]] = field(default_factory=dict)

    def write(self, results: BatchResults, batch: int) -> None:
        self.batches[batch] = summary(results.table(), self.job)


def begin(_: Mapping[str, Any]) -> SparkSession:
    """Return a local session; Java may use as much memory as for Spark's own joins."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 // 2**30
    return local_session(_PARTITIONS, {"spark.driver.memory": f"{max(memory, 2)}g"})


def run(spark: SparkSession, job: Mapping[str, Any]) -> dict[str, list[int]]:
    """One engine over all files."""
    with tempfile.TemporaryDirectory(prefix="muntin-bench-", ignore_cleanup_errors=True) as folder:
        engine = SparkEngine(spark, checkpoint=Path(folder) / "checkpoint", partitions=_PARTITIONS)
        for name in job["streams"]:
            engine.execute(
                f"CREATE STREAM {name} (k BIGINT, g BIGINT, v BIGINT, ts TIMESTAMP) WITH (format = "
                "'parquet', "
                f"path = '{job['data']}/{name}', time = 'ts', maxFilesPerTrigger = "
                f"'{job['per_trigger'] * job.get('times', 1)}')"
            )
        sinks = {str(window): _Summaries(job) for window in job["windows"]}
        for window in job["windows"]:
            engine.query(sql(job, window), name=f"q{window}", sink=sinks[str(window)])
        engine.process_available()
        return {
            name: [
                sum(count for count, _ in sink.batches.values()),
                sum(check for _, check in sink.batches.values()),
            ]
            for name, sink in sinks.items()
        }
