"""A partition that can be built again: the shares that its windows reach, each with a note of where the partition was before it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from muntin.runtime.codec import decode, encode
from muntin.spark.exchange.deployment import Deployment
from muntin.spark.exchange.messages import Output, PartitionBatch
from muntin.spark.exchange.partition_metrics import PartitionMetrics, Rebuilt
from muntin.spark.partition.partition import OnRelease, Partition
from muntin.spark.partition.retained_batches import RetainedBatch, RetainedBatches
from muntin.spark.partition.spool import Sent

Memory: TypeAlias = bytes
"""A batch that is kept, with its note, as it is in the state store."""

FEW = 20_000
"""So many rows more than twice those in the windows may always be kept."""

_KIND = "share"


@dataclass(frozen=True)
class _Remembered:
    note: RetainedBatch
    batch: PartitionBatch


def remembered(note: RetainedBatch, batch: PartitionBatch) -> Memory:
    """Return a batch and its note as a frame."""
    return encode(_Remembered(note, batch), _KIND)


def recalled(memory: Memory) -> tuple[RetainedBatch, PartitionBatch]:
    """Return the batch and the note in a frame.

    Raises
    ------
    CheckpointError
        When the frame is damaged.
    """
    kept = decode(memory, _KIND, _Remembered, "a batch in the state store of the checkpoint")
    return kept.note, kept.batch


@dataclass(frozen=True)
class Applied:
    """What came of a batch: the outputs, the note to keep with it, batches that need not be kept any more, and what was counted.

    If there is a ``snapshot``, the note belongs to it, and it is kept instead of the batch.
    """

    outputs: list[Output]
    note: RetainedBatch
    gone: list[int]
    stats: PartitionMetrics
    snapshot: PartitionBatch | None = None


@dataclass(frozen=True)
class Answer:
    """What came of a batch as it travels: outputs sent instead of outputs, the rest as in :class:`Applied`."""

    sent: list[Sent]
    note: RetainedBatch
    gone: list[int]
    stats: PartitionMetrics
    snapshot: PartitionBatch | None


class RecoverablePartition:
    """A partition with its ledger; ``version`` is the last batch that was applied."""

    def __init__(self, deployment: Deployment, number: int) -> None:
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
        """The partition as it was after the last of the shares that are kept: all of them repeated, without results."""
        began = time.time()
        partition = cls(deployment, number)
        last: RetainedBatch | None = None
        for place, (note, batch) in enumerate(kept):
            if note.since is not None:
                assert place == 0, "a snapshot stands for all that was before it"
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
        """Take a program that is this one with further changes; whether it is."""
        known = len(self._deployment.changes)
        if replace(deployment, changes=deployment.changes[:known]) != self._deployment:
            return False
        self._deployment = deployment
        self._partition.dataflows.extend(deployment)
        return True

    def apply(self, batch: PartitionBatch, on_release: OnRelease | None = None) -> Applied:
        """Apply the next batch; ``on_release`` gets results as soon as they are made."""
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
        """A snapshot in the place of all shares, when windows per partition hold less than half of what is kept.

        Shares never go by age where such a window reads a stream, since it may hold a single old row of them. As many rows have
        come since the last snapshot as this one has, so it costs O(1) a row in all.
        """
        endless = any(reach.forever for reach in self._partition.dataflows.reach.values())
        if not endless or self._retained.weight <= 2 * self.rows() + FEW:
            return None
        snapshot, since = self._partition.snapshot(self.version)
        gone += self._retained.replace_all(
            snapshot, since, self._partition.clock(), self._deployment.streams
        )
        return snapshot

    def held(self, lane: str, stream: str) -> pa.Table:
        """The rows of a stream that a lane holds, as far as they are at home here."""
        return self._partition.held(lane, stream)

    def rows(self) -> int:
        """Rows that it holds."""
        return self._partition.dataflows.rows_held()
