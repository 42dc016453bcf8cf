"""A partition that can be built again: the shares that its windows reach, each with a note of where the partition was before it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from muntin.engine.engine import OnRelease
from muntin.spark.exchange.codec import decode, encode
from muntin.spark.exchange.deployment import Deployment
from muntin.spark.exchange.messages import Output, PartitionBatch
from muntin.spark.exchange.partition_metrics import PartitionMetrics, Rebuilt
from muntin.spark.partition.partition import Kept, Ledger, Partition
from muntin.spark.partition.spool import Sent

Memory: TypeAlias = bytes
"""A share that is kept, with its note, as it is in the state store."""

FEW = 20_000
"""So many rows more than twice those in the windows may always be kept."""

_KIND = "share"


@dataclass(frozen=True)
class _Remembered:
    note: Kept
    share: PartitionBatch


def remembered(note: Kept, share: PartitionBatch) -> Memory:
    """Return a share and its note as a frame."""
    return encode(_Remembered(note, share), _KIND)


def recalled(memory: Memory) -> tuple[Kept, PartitionBatch]:
    """Return the share and the note in a frame.

    Raises
    ------
    CheckpointError
        When the frame is damaged.
    """
    kept = decode(memory, _KIND, _Remembered, "a share in the state store of the checkpoint")
    return kept.note, kept.share


@dataclass(frozen=True)
class Applied:
    """What came of a share: the outputs, the note to keep with it, batches that need not be kept any more, and what was counted.

    If there is a ``snapshot``, the note belongs to it, and it is kept instead of the share.
    """

    outputs: list[Output]
    note: Kept
    gone: list[int]
    stats: PartitionMetrics
    snapshot: PartitionBatch | None = None


@dataclass(frozen=True)
class Answer:
    """What came of a share as it travels: outputs sent instead of outputs, the rest as in :class:`Applied`."""

    sent: list[Sent]
    note: Kept
    gone: list[int]
    stats: PartitionMetrics
    snapshot: PartitionBatch | None


class KeptPartition:
    """A partition with its ledger; ``version`` is the last batch that was applied."""

    def __init__(self, program: Deployment, number: int) -> None:
        self._program = program
        self._partition = Partition(program, number)
        self._ledger = Ledger()
        self._rebuilt: Rebuilt | None = None
        self.version = -1

    @classmethod
    def rebuilt(
        cls, program: Deployment, number: int, kept: Iterable[tuple[Kept, PartitionBatch]]
    ) -> KeptPartition:
        """The partition as it was after the last of the shares that are kept: all of them repeated, without results."""
        began = time.time()
        partition = cls(program, number)
        last: Kept | None = None
        for place, (note, share) in enumerate(kept):
            if note.since is not None:
                assert place == 0, "a snapshot stands for all that was before it"
                partition._partition.load(share, note.before, note.since)
            else:
                if place == 0:
                    partition._partition.restore(note.before)
                partition._partition.repeat(share)
            partition._ledger.keep(note)
            partition.version = share.batch
            last = note
        if last is not None:
            partition._partition.load_limits(last.after)
            partition._rebuilt = Rebuilt(partition.rows(), began, time.time())
        return partition

    def extend(self, program: Deployment) -> bool:
        """Take a program that is this one with further changes; whether it is."""
        known = len(self._program.changes)
        if replace(program, changes=program.changes[:known]) != self._program:
            return False
        self._program = program
        self._partition.extend(program)
        return True

    def apply(self, share: PartitionBatch, on_release: OnRelease | None = None) -> Applied:
        """Apply the next share; ``on_release`` gets results as soon as they are made."""
        self._ledger.add(
            share, self._partition.clock(), self._program.streams, self._partition.reached()
        )
        outputs = self._partition.apply(share, on_release)
        outputs += self._partition.answers(share.controls)
        self._ledger.allow(self._partition.limits())
        self.version = share.batch
        stats, self._rebuilt = replace(self._partition.stats(), rebuilt=self._rebuilt), None
        gone = self._ledger.expire(self._partition.reached(), self._partition.reach)
        snapshot = self._compact(gone)
        return Applied(outputs, self._ledger.kept[-1], gone, stats, snapshot)

    def _compact(self, gone: list[int]) -> PartitionBatch | None:
        """A snapshot in the place of all shares, when windows per partition hold less than half of what is kept.

        Shares never go by age where such a window reads a stream, since it may hold a single old row of them. As many rows have
        come since the last snapshot as this one has, so it costs O(1) a row in all.
        """
        endless = any(reach.forever for reach in self._partition.reach.values())
        if not endless or self._ledger.weight <= 2 * self.rows() + FEW:
            return None
        snapshot, since = self._partition.snapshot(self.version)
        gone += self._ledger.replace_all(
            snapshot, since, self._partition.clock(), self._program.streams
        )
        return snapshot

    def held(self, lane: str, stream: str) -> pa.Table:
        """The rows of a stream that a lane holds, as far as they are at home here."""
        return self._partition.held(lane, stream)

    def rows(self) -> int:
        """Rows that it holds."""
        return self._partition.rows()
