"""The outputs of a batch as the driver gets them: by kind and name, mostly names and counts.

Changes that may cancel out across partitions are merged in the driver if they are few. Many of them
were split by value, and a second Spark job merges the parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession

from muntin.spark.batch_results import BatchResults, Piece
from muntin.spark.exchange.deployment import PlacedQuery
from muntin.spark.partition.merge_task import ChangesToMerge, MergeTask
from muntin.spark.partition.partition import RESULTS
from muntin.spark.partition.result_writer import WRITTEN, ResultPlan, changes_kind
from muntin.spark.partition.spool import Spool
from muntin.spark.partition.task import OUTPUT
from muntin.spark.result_target import ResultTarget
from muntin.spark.storage import storage_at

BatchOutputs: TypeAlias = dict[tuple[str, str], list[Row]]
"""The outputs of a batch by kind and name."""

MERGED = "merged"
"""The kind of outputs of a second job that are results."""


def collect(outputs: DataFrame) -> BatchOutputs:
    """Return the outputs of a batch; this runs the job."""
    found: BatchOutputs = {}
    for row in outputs.collect():
        found.setdefault((row["kind"], row["name"]), []).append(row)
    return found


@dataclass
class ResultPlanner:
    """Decides who writes the results of each query, and merges those of several partitions."""

    spool: Spool
    parts: int = 1
    _merged: dict[str, ResultTarget | None] = field(default_factory=dict)
    """Queries whose changes may be merged by a second job, with their targets."""

    @property
    def _task_spool(self) -> Spool:
        """Return the spool as tasks get it, without the lease of this driver."""
        return Spool(storage_at(self.spool.storage.place))

    def plan(self, queries: Iterable[tuple[PlacedQuery, ResultTarget | None]]) -> ResultPlan:
        """Return the plan for the partitions, of queries with the targets of their sinks."""
        self._merged, targets = {}, {}
        for placed, target in queries:
            if placed.distribution.last is not None:
                continue
            if not placed.is_final:
                self._merged[placed.query.name] = target
            elif target is not None:
                targets[placed.query.name] = target
        return ResultPlan(targets, tuple(self._merged), self.parts)

    def merge(
        self, found: BatchOutputs, inserts_only: Mapping[str, bool], batch: int, spark: SparkSession
    ) -> None:
        """Merge in a second job the changes that partitions split, and put what is left in place.

        ``inserts_only`` says by query whether that is what it wants.
        """
        many = []
        for name in self._merged:
            split = tuple(
                tuple(map(piece_of, found.get((changes_kind(part), name), ())))
                for part in range(self.parts)
            )
            if any(split):
                few = tuple(map(piece_of, found.get((RESULTS, name), ())))
                many.append(ChangesToMerge(name, split, few, inserts_only[name]))
                found[MERGED, name] = []
        if not many:
            return
        targets = {name: target for name, target in self._merged.items() if target is not None}
        task = MergeTask(tuple(many), ResultPlan(targets), self._task_spool, batch)
        parts = spark.range(0, self.parts, 1, self.parts)
        for (kind, name), rows in collect(parts.mapInArrow(task.__call__, OUTPUT)).items():
            found[WRITTEN if kind == WRITTEN else MERGED, name] = rows

    def results(
        self, found: BatchOutputs, placed: PlacedQuery, schema: pa.Schema
    ) -> BatchResults | None:
        """Return the results of a query as executors wrote them; None if the driver merges them."""
        name = placed.query.name
        if not placed.is_final and (MERGED, name) not in found:
            return None
        pieces = found.get((RESULTS if placed.is_final else MERGED, name), [])
        files = found.get((WRITTEN, name), [])
        return BatchResults(
            schema,
            sum(row["rows"] for row in (*files, *pieces)),
            tuple(row["file"] for row in files),
            tuple(map(piece_of, pieces)),
            self._task_spool.take,
        )


def written_files(found: BatchOutputs, name: str) -> list[str]:
    """Return the files that executors wrote for the sink of a query."""
    return [row["file"] for row in found.get((WRITTEN, name), [])]


def piece_of(row: Row) -> Piece:
    """Return the rows of an output as they were sent."""
    return bytes(row["blob"]), row["file"]
