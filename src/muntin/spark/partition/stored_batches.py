"""The files of partition batches in the checkpoint: what a partition is rebuilt from.

A task writes the batch of its partition under a name that no other attempt uses. The file counts
once a manifest names it; see :mod:`muntin.spark.partition.manifests`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from muntin.runtime.codec import decode, encode
from muntin.runtime.frames import Buffer
from muntin.spark.exchange.messages import PartitionBatch
from muntin.spark.partition.retained_batches import RetainedBatch
from muntin.spark.storage import Storage

FOLDER = "state"
_KIND = "partition batch"


@dataclass(frozen=True)
class StoredBatch:
    """A file with a partition batch, and the note that is needed to replay it."""

    file: str
    note: RetainedBatch


def new_file(partition: int, batch: int) -> str:
    """Return a name for the file of a partition batch that no other attempt uses."""
    return f"{FOLDER}/{batch:012d}-{partition}-{uuid.uuid4().hex[:16]}"


def encode_batch(batch: PartitionBatch) -> bytes:
    """Return a partition batch as a frame."""
    return encode(batch, _KIND)


def decode_batch(frame: Buffer, where: str = "a partition batch") -> PartitionBatch:
    """Return the partition batch in a frame.

    Raises
    ------
    CheckpointError
        When the frame is damaged.
    """
    return decode(frame, _KIND, PartitionBatch, where)


def read_batches(
    storage: Storage, stored: Iterable[StoredBatch]
) -> Iterator[tuple[RetainedBatch, PartitionBatch]]:
    """Yield notes and batches, oldest first.

    Raises
    ------
    CheckpointError
        When a file is missing or damaged; the error names it.
    """
    for one in stored:
        yield one.note, decode_batch(storage.get(one.file), one.file)
