"""A partition that can be rebuilt from the batches that its windows reach.

Each of these batches is retained with a note of the state of the partition before it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from muntin.spark.exchange.deployment import Deployment
from muntin.spark.exchange.messages import PartitionBatch, PartitionOutput
from muntin.spark.exchange.partition_metrics import PartitionMetrics, Rebuilt
from muntin.spark.partition.partition import OnRelease, Partition
from muntin.spark.partition.partition_clock import CameBefore, PartitionClock
from muntin.spark.partition.retained_batches import RetainedBatch, RetainedBatches

FEW = 20_000
"""Rows beyond twice those in the windows that may be retained before a snapshot is taken."""
MANY = 256
"""Batches that may be retained, where they expire by age, before a snapshot is considered."""


@dataclass(frozen=True)
class Applied:
    """The effects of a batch: outputs, the note to retain with it, and metrics.

    ``gone`` are batches that need not be retained any more. If there is a ``snapshot``, the note
    belongs to it, and it is retained instead of the batch.
    """

    outputs: list[PartitionOutput]
    note: RetainedBatch
    gone: list[int]
    stats: PartitionMetrics
    snapshot: PartitionBatch | None = None


class RecoverablePartition:
    """A partition and its retained batches; ``version`` is the last batch that was applied."""

    def __init__(self, deployment: Deployment, number: int) -> None:
        self.number = number
        self._deployment = deployment
        self._partition = Partition(deployment, number)
        self._retained = RetainedBatches()
        self._rebuilt: Rebuilt | None = None
        self.version = -1

    @classmethod
    def rebuilt(
        cls,
        deployment: Deployment,
        number: int,
        kept: Iterable[tuple[RetainedBatch, PartitionBatch]],
    ) -> RecoverablePartition:
        """Return the partition as it was after the last retained batch: replay all of them."""
        began = time.time()
        partition = cls(deployment, number)
        last: RetainedBatch | None = None
        for place, (note, batch) in enumerate(kept):
            if note.since is not None:
                assert place == 0, "a snapshot replaces everything before it"
                partition._partition.load(batch, note.before, note.since)
            else:
                if place == 0:
                    partition._partition.restore(note.before)
                partition._partition.replay(batch)
            partition._retained.keep(note)
            partition.version = batch.batch
            last = note
        if last is not None:
            partition._partition.dataflows.load_limits(last.after)
            partition._rebuilt = Rebuilt(partition.rows(), began, time.time())
        return partition

    def extend(self, deployment: Deployment) -> bool:
        """Take a deployment with further changes; return False if it is not an extension."""
        known = len(self._deployment.changes)
        if replace(deployment, changes=deployment.changes[:known]) != self._deployment:
            return False
        self._deployment = deployment
        self._partition.dataflows.extend(deployment)
        return True

    def apply(self, batch: PartitionBatch, on_release: OnRelease | None = None) -> Applied:
        """Apply the next batch; ``on_release`` gets results as soon as they are computed."""
        self._retained.add(
            batch, self._partition.clock(), self._deployment.streams, self._partition.reached()
        )
        outputs = self._partition.apply(batch, on_release)
        outputs += self._partition.answers(batch.controls)
        self._retained.allow(self._partition.dataflows.limits())
        self.version = batch.batch
        stats, self._rebuilt = replace(self._partition.metrics(), rebuilt=self._rebuilt), None
        gone = self._retained.expire(self._partition.reached(), self._partition.dataflows.reach)
        snapshot = self._compact(gone)
        return Applied(outputs, self._retained.kept[-1], gone, stats, snapshot)

    def _compact(self, gone: list[int]) -> PartitionBatch | None:
        """Replace all batches by a snapshot when less than half of their rows are still held.

        Batches never expire by age where a partitioned window reads a stream, since it may hold a
        single old row of one of them, or where a limited join retracts its matches. Elsewhere they
        expire while rows arrive; but batches without rows, which queries that come and go have,
        pile up behind the last rows. At least as many rows as the snapshot has have come since the
        last one, so the cost is O(1) per row.

        A limited join of three sources and more continues from the snapshot too: the partial
        matches that it has left out are found there, and make later matches.
        """
        endless = any(reach.forever for reach in self._partition.dataflows.reach.values())
        if not (endless or len(self._retained.kept) > MANY):
            return None
        if self._retained.weight <= 2 * self.rows() + FEW:
            return None
        (snapshot, since), clock = self._partition.snapshot(self.version), self._partition.clock()
        gone += self._retained.replace_all(snapshot, since, clock, self._deployment.streams)
        if any(len(matches) > 2 for matches in snapshot.made.values()):  # a line for each source
            self._partition = Partition(self._deployment, self.number)
            self._partition.load(snapshot, clock, since)
        return snapshot

    def snapshot(self) -> tuple[PartitionBatch, CameBefore]:
        """Return the rows that windows reach, and how many of them came before each query."""
        self._partition.dataflows.trim()
        return self._partition.snapshot(self.version)

    def release(self) -> None:
        """Release the rows that only queries hold which later changes of the deployment drop."""
        self._partition.dataflows.release()

    def clock(self) -> PartitionClock:
        """Return the progress of event time."""
        return self._partition.clock()

    def held(self, dataflow: str, stream: str) -> pa.Table:
        """Return the rows of a stream that a dataflow holds and this partition owns."""
        return self._partition.held(dataflow, stream)

    def rows(self) -> int:
        """Return the number of rows that it holds."""
        return self._partition.dataflows.rows_held()
