"""The manifests of a run: which files are the state after each batch, whatever was interrupted."""

from __future__ import annotations

from pathlib import Path

import pytest

from muntin.runtime.frames import CheckpointError
from muntin.spark.partition import manifests
from muntin.spark.partition.manifests import NONE, ManifestLog, PartitionChange, stored_for
from muntin.spark.partition.partition_clock import PartitionClock
from muntin.spark.partition.retained_batches import RetainedBatch
from muntin.spark.partition.stored_batches import StoredBatch
from muntin.spark.storage import LocalStorage, Storage
from tests.unit.spark.faulty_storage import Faults, FaultyStorage


def change(storage: Storage, partition: int, batch: int, *gone: int) -> PartitionChange:
    """Write the file of a partition batch and return the change that names it."""
    file = f"state/{batch}-{partition}"
    storage.put(file, b"rows")
    note = RetainedBatch(batch, PartitionClock({"A": batch}, 0), {(0, "A"): (1, batch, batch)})
    return PartitionChange(partition, StoredBatch(file, note), gone)


def files(storage: Storage) -> list[str]:
    return storage.names("state")


def test_a_restart_finds_the_state_after_the_last_complete_batch(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    log = ManifestLog(storage)
    assert (log.last(), log.load().version) == (-1, -1)
    log.commit([change(storage, 0, 0), change(storage, 1, 0)])
    log.commit([change(storage, 0, 1), change(storage, 1, 1, 0)])
    log.commit([])
    change(storage, 0, 3)  # its batch was interrupted
    again = ManifestLog(storage)
    state = again.load()
    assert (again.last(), state.batch, state.version) == (2, 2, 1)
    assert [stored.file for stored in state.stored(0)] == ["state/0-0", "state/1-0"]
    assert [stored.file for stored in state.stored(1)] == ["state/1-1"]
    assert state.stored(0)[1].note.before.newest == {"A": 1}
    assert stored_for(storage, (2, ""), 0) == state.stored(0)
    assert stored_for(storage, NONE, 0) == ()
    again.sweep()
    assert files(storage) == ["0-0", "1-0", "1-1"], "what was interrupted is gone"


def test_files_are_deleted_only_after_the_manifest_that_leaves_them_out(tmp_path: Path) -> None:
    faults = Faults()
    storage = FaultyStorage(LocalStorage(tmp_path), faults)
    log = ManifestLog(storage)
    log.commit([change(storage, 0, 0)])
    following = change(storage, 0, 1, 0)
    faults.full.append(f"batches/{1:012d}")
    with pytest.raises(CheckpointError, match="No space left on device"):
        log.commit([following])
    assert "0-0" in files(storage)
    faults.full.clear()
    again = ManifestLog(storage)
    assert [stored.file for stored in again.load().stored(0)] == ["state/0-0"]
    again.commit([following])
    assert files(storage) == ["1-0"]


@pytest.mark.parametrize("complete", [True, False])
def test_a_manifest_that_cannot_be_written_leaves_the_state_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, complete: bool
) -> None:
    monkeypatch.setattr(manifests, "_CHANGES", 1 if complete else 32)
    faults = Faults()
    storage = FaultyStorage(LocalStorage(tmp_path), faults)
    log = ManifestLog(storage)
    log.commit([change(storage, 0, 0)])
    faults.full.append("batches")
    with pytest.raises(CheckpointError, match="No space left on device"):
        log.commit([change(storage, 0, 1, 0)])
    with pytest.raises(AssertionError, match="its own manifest"):
        log.replace({})
    assert log.state == ManifestLog(storage).load()
    faults.full.clear()
    log.commit([change(storage, 0, 1, 0)])
    log.commit([change(storage, 0, 2)])
    state = ManifestLog(storage).load()
    assert (state.batch, state) == (2, log.state)
    assert files(storage) == ["1-0", "2-0"]


def test_a_restart_reads_a_bounded_number_of_manifests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifests, "_CHANGES", 4)
    storage = LocalStorage(tmp_path)
    log = ManifestLog(storage)
    for batch in range(30):
        log.commit([change(storage, 0, batch, *([batch - 3] if batch > 2 else []))])
        again = ManifestLog(storage)
        assert again.load() == log.state
        assert len(storage.names("batches")) <= 5
        assert len(files(storage)) == min(batch + 1, 3)
        if batch % 7 == 0:
            log = again


def test_an_empty_manifest_was_never_complete(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    log = ManifestLog(storage)
    log.commit([change(storage, 0, 0)])
    storage.put("batches/000000000001", b"")  # an interrupted put in an object store
    again = ManifestLog(storage)
    assert (again.last(), again.load().batch) == (0, 0)
    again.commit([change(storage, 0, 1)])
    assert ManifestLog(storage).load().batch == 1


def test_a_missing_or_damaged_manifest_is_named(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    log = ManifestLog(storage)
    for batch in range(3):
        log.commit([change(storage, 0, batch)])
    whole = bytes(storage.get(f"batches/{1:012d}"))
    storage.put(f"batches/{1:012d}", whole[:-1])
    with pytest.raises(CheckpointError, match=r"batches/1 of the checkpoint is damaged"):
        ManifestLog(storage).load()
    storage.delete([f"batches/{1:012d}"])
    with pytest.raises(CheckpointError, match=rf"batches/{1:012d} is missing"):
        ManifestLog(storage).load()


def test_a_manifest_says_which_of_sparks_batches_the_state_has(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    log = ManifestLog(storage)
    assert log.state.spark == -1
    log.commit([change(storage, 0, 0)])
    assert ManifestLog(storage).load().spark == -1, "a batch without rows is none of Spark's"
    log.commit([change(storage, 0, 1)], 0)
    log.commit([change(storage, 0, 2)])
    state = ManifestLog(storage).load()
    assert (state.batch, state.spark) == (2, 0)


def test_a_new_run_begins_with_nothing(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    log = ManifestLog(storage)
    log.commit([change(storage, 0, 0)])
    log.clear()
    assert (files(storage), storage.names("batches"), log.state.batch) == ([], [], -1)
