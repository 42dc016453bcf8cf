"""Manifests: which partition batches are the state of the run after each batch.

A batch is complete when its manifest exists. The driver writes it after the sinks have the results
and before Spark commits the micro-batch. A micro-batch that Spark repeats although a manifest has
it was complete, so nothing of it is done again; without a manifest, every partition starts again
from the state of the manifest before it.

A manifest lists what changed: one added file per partition, and the batches that no window reaches
any more. Every so often one lists everything, so that a restart reads a bounded number of them.
Files are deleted only after the manifest that leaves them out.

Another driver may have taken over without this one noticing. So a manifest has the token of its
driver, in its name too, and is never overwritten by another one. A driver records after which batch
it begins; a reader ignores manifests of earlier drivers behind that batch, and of two manifests of
one batch takes the one with the greater token. See :mod:`muntin.spark.driver.lease`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from muntin.runtime.codec import decode, encode
from muntin.runtime.frames import CheckpointError
from muntin.spark.partition import stored_batches
from muntin.spark.partition.stored_batches import StoredBatch
from muntin.spark.storage import Storage
from muntin.spark.storage.fence import Fence, counts, split_version, versioned

_FOLDER = "batches"
_KIND = "manifest"
_CHANGES = 32
"""Manifests between two that list everything."""


@dataclass(frozen=True)
class PartitionChange:
    """What a batch changed in the durable state of a partition; ``gone`` are batches."""

    partition: int
    added: StoredBatch
    gone: tuple[int, ...] = ()


@dataclass(frozen=True)
class Manifest:
    """The changes since batch ``previous``; since the beginning if that is None.

    ``spark`` is the last micro-batch of Spark that is part of the state; batches without rows are
    none of Spark's. ``token`` is that of the driver, ``previous_token`` that of the driver of batch
    ``previous``.
    """

    batch: int
    spark: int
    previous: int | None
    changes: tuple[PartitionChange, ...]
    token: str = ""
    previous_token: str = ""


@dataclass
class CommittedState:
    """The stored batches of every partition after ``batch``, by batch number, oldest first.

    ``spark`` is the last micro-batch of Spark that is part of it, ``token`` that of the driver that
    completed the batch.
    """

    batch: int = -1
    spark: int = -1
    token: str = ""
    partitions: dict[int, dict[int, StoredBatch]] = field(default_factory=dict)

    @property
    def version(self) -> int:
        """Return the last batch in which partitions had work, or -1; the same for all of them."""
        return max((max(stored) for stored in self.partitions.values()), default=-1)

    def stored(self, partition: int) -> tuple[StoredBatch, ...]:
        """Return the stored batches of a partition, oldest first."""
        return tuple(self.partitions.get(partition, {}).values())

    def apply(self, manifest: Manifest) -> list[str]:
        """Take the changes of the next manifest; return the files that it leaves out."""
        left_out = []
        for change in manifest.changes:
            stored = self.partitions.setdefault(change.partition, {})
            left_out += [stored.pop(batch).file for batch in change.gone]
            stored[change.added.note.batch] = change.added
        self.batch, self.spark, self.token = manifest.batch, manifest.spark, manifest.token
        return left_out

    def after(self, manifest: Manifest) -> CommittedState:
        """Return the state after the next manifest; this one stays as it is."""
        partitions = {number: dict(stored) for number, stored in self.partitions.items()}
        following = replace(self, partitions=partitions)
        following.apply(manifest)
        return following

    def complete(self) -> Manifest:
        """Return a manifest that lists everything."""
        changes = [
            PartitionChange(partition, stored)
            for partition, batches in self.partitions.items()
            for stored in batches.values()
        ]
        return Manifest(self.batch, self.spark, None, tuple(changes), self.token)


Completed: TypeAlias = tuple[int, str]
"""A complete batch and the token of the driver that completed it."""

NONE: Completed = (-1, "")


class ManifestLog:
    """The manifests of a run; ``state`` is what the newest of them amounts to."""

    def __init__(self, storage: Storage, fence: Fence | None = None) -> None:
        self._storage = storage
        self._fence = Fence() if fence is None else fence
        self._since_complete = 0
        self._token = self._fence.token
        """The token under which ``state`` was read; without it, nothing is written or deleted."""
        self.state = CommittedState()

    def last(self) -> int:
        """Return the last complete batch, or -1."""
        return self._newest()[0]

    def _newest(self) -> Completed:
        """Return the last complete batch, without those of drivers that were replaced before it.

        An empty file is what an interrupted ``put`` may leave in an object store. It was never
        complete, so nothing is based on it.
        """
        starts = self._fence.starts()
        for batch, token in sorted(self._completed(), reverse=True):
            if counts(batch, token, starts) and self._storage.start_of(_name(batch, token), 1):
                return batch, token
        return NONE

    def load(self, completed: Completed | None = None) -> CommittedState:
        """Read the state after a batch, by default the last complete one.

        Raises
        ------
        CheckpointError
            When a manifest is missing or damaged.
        """
        wanted: int | None
        self._token = self._fence.token
        wanted, token = self._newest() if completed is None else completed
        self.state = CommittedState()
        chain = []
        while wanted is not None and wanted >= 0:
            chain.append(self._read(wanted, token))
            wanted, token = chain[-1].previous, chain[-1].previous_token
        for manifest in reversed(chain):
            self.state.apply(manifest)
        self._since_complete = len(chain)
        return self.state

    def commit(self, changes: Iterable[PartitionChange], spark: int | None = None) -> None:
        """Write the manifest of the next batch, then delete the files that it leaves out.

        ``spark`` is the micro-batch of Spark that it has the rows of. A manifest that cannot be
        written leaves the state as it was and ends the run; the next start loads it again.
        """
        batch = self.state.batch + 1
        previous = self.state.batch if batch else None
        spark = self.state.spark if spark is None else spark
        manifest = Manifest(
            batch, spark, previous, tuple(changes), self._fence.token, self.state.token
        )
        complete = previous is None or self._since_complete >= _CHANGES
        self._put(self.state.after(manifest).complete() if complete else manifest)
        left_out = self.state.apply(manifest)
        self._since_complete = 1 if complete else self._since_complete + 1
        self._storage.delete(left_out)
        if complete:
            self.sweep()

    def _put(self, manifest: Manifest) -> None:
        """Write a manifest; it counts for every later driver when this returns.

        The first check avoids useless work. The second is what makes the batch complete: no later
        driver had claimed the checkpoint when the manifest was there, so each of them finds it.
        """
        self._check()
        self._storage.put(_name(manifest.batch, manifest.token), encode(manifest, _KIND))
        self._check()

    def _check(self) -> None:
        """Raise if a later driver exists, or if the lease was released since the state was read.

        A batch may outlive its run, inside a sink. Without a lease nobody would notice who has
        changed the checkpoint meanwhile.
        """
        if self._fence.token != self._token:
            raise CheckpointError(
                "a batch was still running when its engine released the checkpoint",
                hint="Nothing is lost: the next start runs the batch again",
            )
        self._fence.check()

    def replace(self, stored: Mapping[int, StoredBatch]) -> None:
        """Write another manifest of the last complete batch: the same state in other files.

        It counts because its token is newer.
        """
        assert self._fence.token > self.state.token, "no driver replaces its own manifest"
        state = CommittedState(self.state.batch, self.state.spark, self._fence.token)
        for partition, one in stored.items():
            state.partitions[partition] = {one.note.batch: one}
        self._put(state.complete())
        self.state = state
        self._since_complete = 1
        self.sweep()

    def sweep(self) -> None:
        """Delete files that nothing refers to: old manifests, and batches of failed attempts."""
        listed = {
            stored.file for batches in self.state.partitions.values() for stored in batches.values()
        }
        files = [f"{stored_batches.FOLDER}/{name}" for name in self._batch_files()]
        oldest = self.state.batch - self._since_complete
        old = [_name(batch, token) for batch, token in self._completed() if batch <= oldest]
        self._delete([*(file for file in files if file not in listed), *old])

    def clear(self) -> None:
        """Delete everything: the run begins with batch 0."""
        manifests = [_name(batch, token) for batch, token in self._completed()]
        files = [f"{stored_batches.FOLDER}/{name}" for name in self._batch_files()]
        self._delete([*manifests, *files])
        self.state = CommittedState()
        self._since_complete = 0

    def _delete(self, listed: list[str]) -> None:
        """Delete files; the check after they were listed spares those of later drivers."""
        if listed:
            self._check()
            self._storage.delete(listed)

    def _batch_files(self) -> list[str]:
        return self._storage.names(stored_batches.FOLDER)

    def _completed(self) -> list[Completed]:
        """Return the batches and tokens of all manifests."""
        names = map(split_version, self._storage.names(_FOLDER))
        return [(int(batch), token) for batch, token in names if batch.isdecimal()]

    def _read(self, batch: int, token: str) -> Manifest:
        content = self._storage.get(_name(batch, token))
        return decode(content, _KIND, Manifest, f"{_FOLDER}/{batch} of the checkpoint")


def _name(batch: int, token: str) -> str:
    return versioned(f"{_FOLDER}/{batch:012d}", token)


def stored_for(storage: Storage, after: Completed, partition: int) -> tuple[StoredBatch, ...]:
    """Return what a partition is rebuilt from after a complete batch; nothing before the first."""
    return ManifestLog(storage).load(after).stored(partition) if after[0] >= 0 else ()
