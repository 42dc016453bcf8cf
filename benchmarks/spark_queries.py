"""Queries with different windows over one pair of streams on Spark.

Either one engine of Muntin, or one streaming query of Spark per window.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.functions import count, lit
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.spark_runs import (
    PARTITIONS,
    declare_stream,
    folder_bytes,
    join_sql,
    joined_by_spark,
)
from muntin.spark.api import SparkEngine
from muntin.spark.batch_results import BatchResults
from muntin.spark.sinks import Sink

_COUNT = "results"


@dataclass(frozen=True)
class Run:
    """One run: seconds at which batches ended, results by window, rows and bytes of final state."""

    ends: Sequence[float]
    results: Mapping[float, int]
    rows: int
    memory: int
    disk: int

    def seconds(self, warm_up: int) -> float:
        """Return the seconds of the batches after warm-up."""
        return self.ends[-1] - self.ends[warm_up - 1]

    @property
    def total(self) -> int:
        """All results."""
        return sum(self.results.values())


@dataclass
class CountingSink(Sink):
    """Counts results, each batch once."""

    batches: dict[int, int] = field(default_factory=dict)

    def write(self, results: BatchResults, batch: int) -> None:
        """Count."""
        self.batches[batch] = len(results)


def run_muntin(spark: SparkSession, data: Path, windows: Sequence[float], per_trigger: int) -> Run:
    """One engine with a query for each window."""
    with temporary_folder() as folder:
        engine = SparkEngine(spark, checkpoint=folder / "checkpoint", partitions=PARTITIONS)
        for name in "AB":
            engine.execute(declare_stream(name, data, per_trigger))
        sinks = {window: CountingSink() for window in windows}
        for place, (window, sink) in enumerate(sinks.items()):
            engine.query(join_sql(window), name=f"q{place}", sink=sink)
        engine.process_available()
        assert engine.streaming is not None, "it ran"
        told = engine.progress
        assert told is not None, "it had batches"
        return Run(
            _ends([engine.streaming]),
            {window: sum(sink.batches.values()) for window, sink in sinks.items()},
            told["muntin"]["rows_held"],
            told["muntin"]["bytes_held"],
            folder_bytes(folder / "checkpoint" / "muntin" / "state"),
        )


def run_spark(spark: SparkSession, data: Path, windows: Sequence[float], per_trigger: int) -> Run:
    """Return a streaming query of Spark's own for each window, all at once."""
    with temporary_folder() as folder:
        queries = {
            window: _start(spark, data, window, per_trigger, folder / str(window))
            for window in windows
        }
        try:
            for query in queries.values():
                query.awaitTermination()
        finally:
            for query in queries.values():
                query.stop()
        operators = [
            operator
            for query in queries.values()
            for operator in _with_rows(query)[-1].stateOperators
        ]
        return Run(
            _ends(queries.values()),
            {window: _observed(query) for window, query in queries.items()},
            sum(operator.numRowsTotal for operator in operators),
            sum(operator.memoryUsedBytes for operator in operators),
            folder_bytes(folder),
        )


def _start(
    spark: SparkSession, data: Path, window: float, per_trigger: int, checkpoint: Path
) -> StreamingQuery:
    counted = joined_by_spark(spark, data, window, per_trigger).observe(
        _COUNT, count(lit(1)).alias("rows")
    )
    return (
        counted.writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )


def _observed(query: StreamingQuery) -> int:
    return sum(
        int(told.observedMetrics[_COUNT]["rows"])
        for told in query.recentProgress
        if _COUNT in told.observedMetrics
    )


def _with_rows(query: StreamingQuery) -> list[Any]:
    """Return Spark's progress for batches with rows.

    The last batch only clears state and is left out.
    """
    return [told for told in query.recentProgress if told.numInputRows]


def _ends(queries: Iterable[StreamingQuery]) -> list[float]:
    """When all queries were done with each batch."""
    ended: dict[int, float] = {}
    for query in queries:
        for told in _with_rows(query):
            began = datetime.fromisoformat(told.timestamp).timestamp()
            ended[told.batchId] = max(
                ended.get(told.batchId, 0.0), began + told.durationMs["triggerExecution"] / 1_000
            )
    return [ended[batch] for batch in sorted(ended)]


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a folder that is removed."""
    folder = Path(tempfile.mkdtemp(prefix="muntin-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
