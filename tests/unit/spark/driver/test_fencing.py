"""Whatever a driver does after it has lost or released its checkpoint, nothing is lost by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from muntin.runtime.frames import CheckpointError
from muntin.spark.driver.lease import Lease
from muntin.spark.partition.manifests import ManifestLog, PartitionChange
from muntin.spark.partition.partition_clock import PartitionClock
from muntin.spark.partition.retained_batches import RetainedBatch
from muntin.spark.partition.stored_batches import StoredBatch
from muntin.spark.storage import LocalStorage, Storage


def change(storage: Storage, batch: int, writer: str, *gone: int) -> PartitionChange:
    """Write the file of a partition batch and return the change that names it."""
    file = f"state/{batch:03d}-{writer}"
    storage.put(file, b"rows")
    note = RetainedBatch(batch, PartitionClock({}, 0), {})
    return PartitionChange(0, StoredBatch(file, note), gone)


def started(storage: Storage) -> tuple[Lease, ManifestLog]:
    """Return the lease and the manifests of a driver that has begun."""
    lease = Lease(storage, "checkpoint")
    log = ManifestLog(storage, lease)
    lease.acquire()
    lease.begin(log.load().batch)
    return lease, log


def test_a_batch_that_outlives_the_release_completes_nothing_and_deletes_nothing(
    tmp_path: Path,
) -> None:
    storage = LocalStorage(tmp_path)
    lease, log = started(storage)
    for batch in range(3):
        log.commit([change(storage, batch, "it")])
    late = change(storage, 3, "it", 0, 1)
    before = storage.tree()
    lease.release()
    with pytest.raises(CheckpointError, match="still running when its engine released"):
        log.commit([late])
    with pytest.raises(CheckpointError, match="still running when its engine released"):
        log.clear()
    assert storage.tree() == before
    lease.acquire()
    with pytest.raises(CheckpointError, match="still running when its engine released"):
        log.sweep()
    assert {*before} <= {*storage.tree()}, "another lease of the same engine changes nothing"
    assert log.load().batch == 2
    assert all(storage.find(stored.file) for stored in log.state.stored(0))
    lease.release()
