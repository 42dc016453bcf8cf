"""Merge many changes that may cancel out across partitions, one part of them per Spark task.

Partitions have split their changes by value (:func:`muntin.spark.partition.result_writer.split`),
so a part has all changes of its rows, and what is left of them is final. The task keeps no state
and may run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext

from muntin.expressions.duck import Duck
from muntin.spark.batch_results import Piece
from muntin.spark.exchange.merge_results import net_changes
from muntin.spark.exchange.messages import PartitionOutput
from muntin.spark.partition.partition import RESULTS
from muntin.spark.partition.result_writer import ResultPlan, split
from muntin.spark.partition.spool import Spool
from muntin.spark.partition.task import outputs_of


@dataclass(frozen=True)
class ChangesToMerge:
    """The changes of one query: those that were split, by part, and those that were too few."""

    name: str
    split: tuple[tuple[Piece, ...], ...]
    few: tuple[Piece, ...]
    inserts_only: bool


@dataclass(frozen=True)
class MergeTask:
    """Merges the changes of a batch, and writes what is left to targets or to the spool."""

    queries: tuple[ChangesToMerge, ...]
    plan: ResultPlan
    spool: Spool
    batch: int

    def __call__(self, ids: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Merge the part that has the number of the task; yield names and counts."""
        context = TaskContext.get()
        assert context is not None, "Spark calls this in a task"
        for _ in ids:
            pass
        part = context.partitionId()
        outputs = [
            PartitionOutput(RESULTS, query.name, self._merged(query, part))
            for query in self.queries
        ]
        changed = [output for output in outputs if len(output.table)]
        yield outputs_of(self.plan.send(changed, self.spool, self.batch, part))

    def _merged(self, query: ChangesToMerge, part: int) -> pa.Table:
        tables = [self.spool.take(*piece) for piece in query.split[part]]
        for piece in query.few:
            found = split(self.spool.take(*piece), len(query.split)).get(part)
            tables += [] if found is None else [found]
        if not tables:
            return pa.table({})
        return net_changes(tables, Duck(), inserts_only=query.inserts_only)
