"""Manifests: which partition batches are the state of the run after each batch.

A batch is complete when its manifest exists. The driver writes it after the sinks have the results
and before Spark commits the micro-batch. A micro-batch that Spark repeats although a manifest has
it was complete, so nothing of it is done again; without a manifest, every partition starts again
from the state of the manifest before it.

A manifest lists what changed: one added file per partition, and the batches that no window reaches
any more. Every so often one lists everything, so that a restart reads a bounded number of them.
Files are deleted only after the manifest that leaves them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from muntin.runtime.codec import decode, encode
from muntin.spark.partition import stored_batches
from muntin.spark.partition.stored_batches import StoredBatch
from muntin.spark.storage import Storage

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
    none of Spark's.
    """

    batch: int
    spark: int
    previous: int | None
    changes: tuple[PartitionChange, ...]


@dataclass
class CommittedState:
    """The stored batches of every partition after ``batch``, by batch number, oldest first.

    ``spark`` is the last micro-batch of Spark that is part of it.
    """

    batch: int = -1
    spark: int = -1
    partitions: dict[int, dict[int, StoredBatch]] = field(default_factory=dict)

    @property
    def version(self) -> int:
        """The last batch in which partitions had work, or -1; it is the same for all of them."""
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
        self.batch, self.spark = manifest.batch, manifest.spark
        return left_out

    def complete(self) -> Manifest:
        """Return a manifest that lists everything."""
        changes = [
            PartitionChange(partition, stored)
            for partition, batches in self.partitions.items()
            for stored in batches.values()
        ]
        return Manifest(self.batch, self.spark, None, tuple(changes))


class ManifestLog:
    """The manifests of a run; ``state`` is what the newest of them amounts to."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._since_complete = 0
        self.state = CommittedState()

    def last(self) -> int:
        """Return the last complete batch, or -1."""
        return max(self._numbers(), default=-1)

    def load(self, batch: int | None = None) -> CommittedState:
        """Read the state after a batch, by default the last complete one.

        Raises
        ------
        CheckpointError
            When a manifest is missing or damaged.
        """
        wanted: int | None = self.last() if batch is None else batch
        self.state = CommittedState()
        chain = []
        while wanted is not None and wanted >= 0:
            chain.append(self._read(wanted))
            wanted = chain[-1].previous
        for manifest in reversed(chain):
            self.state.apply(manifest)
        self._since_complete = len(chain)
        return self.state

    def commit(self, changes: Iterable[PartitionChange], spark: int | None = None) -> None:
        """Write the manifest of the next batch, then delete the files that it leaves out.

        ``spark`` is the micro-batch of Spark that it has the rows of. A manifest that cannot be
        written ends the run; the next start loads the state again.
        """
        batch = self.state.batch + 1
        previous = self.state.batch if batch else None
        spark = self.state.spark if spark is None else spark
        manifest = Manifest(batch, spark, previous, tuple(changes))
        left_out = self.state.apply(manifest)
        complete = previous is None or self._since_complete >= _CHANGES
        if complete:
            manifest = self.state.complete()
        self._storage.put(_name(batch), encode(manifest, _KIND))
        self._since_complete = 1 if complete else self._since_complete + 1
        self._storage.delete(left_out)
        if complete:
            self.sweep()

    def replace(self, stored: Mapping[int, StoredBatch]) -> None:
        """Write the manifest of a batch that replaces the files of all partitions."""
        self.state = CommittedState(self.state.batch + 1, self.state.spark)
        for partition, one in stored.items():
            self.state.partitions[partition] = {one.note.batch: one}
        self._storage.put(_name(self.state.batch), encode(self.state.complete(), _KIND))
        self._since_complete = 1
        self.sweep()

    def sweep(self) -> None:
        """Delete files that nothing refers to: old manifests, and batches of failed attempts."""
        listed = {
            stored.file for batches in self.state.partitions.values() for stored in batches.values()
        }
        files = (f"{stored_batches.FOLDER}/{name}" for name in self._batch_files())
        self._storage.delete(file for file in files if file not in listed)
        oldest = self.state.batch - self._since_complete
        self._storage.delete(_name(number) for number in self._numbers() if number <= oldest)

    def clear(self) -> None:
        """Delete everything: the run begins with batch 0."""
        self._storage.delete(_name(number) for number in self._numbers())
        self._storage.delete(f"{stored_batches.FOLDER}/{name}" for name in self._batch_files())
        self.state = CommittedState()
        self._since_complete = 0

    def _batch_files(self) -> list[str]:
        return self._storage.names(stored_batches.FOLDER)

    def _numbers(self) -> Iterator[int]:
        return (int(name) for name in self._storage.names(_FOLDER) if name.isdecimal())

    def _read(self, batch: int) -> Manifest:
        name = _name(batch)
        return decode(
            self._storage.get(name), _KIND, Manifest, f"{_FOLDER}/{batch} of the checkpoint"
        )


def _name(batch: int) -> str:
    return f"{_FOLDER}/{batch:012d}"


def stored_for(storage: Storage, batch: int, partition: int) -> tuple[StoredBatch, ...]:
    """Return what a partition is rebuilt from after a complete batch; nothing before the first."""
    return ManifestLog(storage).load(batch).stored(partition) if batch >= 0 else ()
