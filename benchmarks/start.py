"""How long a new process, and an engine in a warm Spark session, take until a query answers.

Each start of a process is a separate one: once with an empty kernel cache, then with a warm one. On
Spark, engines start one after the other in a session, from ``start()`` to the first results in a
sink; those that warm it up do not count.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

from benchmarks.report import Claim, Progress, Report
from benchmarks.spark_runs import (
    PARTITIONS,
    Streams,
    bench_session,
    declare_stream,
    join_sql,
    write_files,
)
from muntin.spark.api import SparkEngine
from muntin.spark.batch_results import BatchResults
from muntin.spark.sinks import Sink

_SPARK_WARM_UP = 3
_SPARK_LIMIT = 300.0
"""Seconds in which the first results must come."""

_PROGRAM = """
import muntin
engine = muntin.Engine()
for name in "AB":
    engine.stream(name, {"k": "bigint", "ts": "timestamp"}, time="ts")
q = engine.query("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 MINUTE")
engine.push("A", [(1, 0)])
engine.push("B", [(1, 1)])
engine.advance(2)
assert len(q.poll()) == 1
"""


def _start(cache: str) -> tuple[float, int]:
    begin = time.perf_counter()
    done = subprocess.run(  # noqa: S603 (our own interpreter on our own text)
        [sys.executable, "-c", _PROGRAM],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        check=True,
        capture_output=True,
        text=True,
    )
    return time.perf_counter() - begin, done.stderr.count("compiled kernel")


class _Clock(Sink):
    """A sink that notes when the first results come."""

    def __init__(self) -> None:
        self.first: float | None = None

    def write(self, results: BatchResults, batch: int) -> None:
        """Note the time."""
        del batch
        if len(results) and self.first is None:
            self.first = time.perf_counter()


def _start_on_spark(spark: SparkSession) -> float:
    """Return the seconds from ``start()`` to the first results."""
    with tempfile.TemporaryDirectory(prefix="muntin-bench-") as folder:
        data, clock = Path(folder) / "in", _Clock()
        write_files(data, Streams(rate=100, keys=10, file_seconds=1, files=1))
        engine = SparkEngine(spark, checkpoint=Path(folder) / "state", partitions=PARTITIONS)
        for name in "AB":
            engine.execute(declare_stream(name, data, 1))
        engine.query(join_sql(60), name="joined", sink=clock)
        begin = time.perf_counter()
        engine.start()
        engine.process_available(timeout=_SPARK_LIMIT)
        engine.stop()
    assert clock.first is not None, "there are results"
    return clock.first - begin


def bench_start(progress: Progress, *, quick: bool = False) -> Report:
    """Start cold once and warm several times, in process and on Spark."""
    with tempfile.TemporaryDirectory() as cache:
        progress("first start, compiling")
        cold, messages = _start(cache)
        progress("warm starts")
        warm = sorted(_start(cache)[0] for _ in range(2 if quick else 5))
    progress("starts in a Spark session")
    spark = bench_session()
    times = [_start_on_spark(spark) for _ in range(_SPARK_WARM_UP + (1 if quick else 5))]
    on_spark = round(median(times[_SPARK_WARM_UP:]), 2)
    return Report(
        "start",
        "How long does a new process take until its first query answers?",
        [
            {"start": "kernel cache empty", "seconds": round(cold, 2), "progress lines": messages},
            {
                "start": "kernel cache warm",
                "seconds": round(warm[len(warm) // 2], 2),
                "progress lines": 0,
            },
            {"start": "engine in a warm Spark session", "seconds": on_spark, "progress lines": 0},
        ],
        [
            Claim("seconds of a cold start", round(cold, 2), 30.0),
            Claim("seconds of a warm start", round(warm[len(warm) // 2], 2), 3.0),
            Claim("seconds from start() to results in a warm Spark session", on_spark, 1.0),
            Claim("cold starts that showed no progress", float(messages == 0), 0.0),
        ],
    )
