"""Whatever a driver does after it has lost or released its checkpoint, nothing is lost by it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from muntin.runtime.frames import CheckpointError
from muntin.spark.driver import lease as module
from muntin.spark.driver.control_queue import ControlQueue
from muntin.spark.driver.lease import Lease, LeaseTiming
from muntin.spark.driver.suspended_queries import SuspendedQueries
from muntin.spark.partition.global_stage_log import StageLog
from muntin.spark.partition.manifests import ManifestLog, PartitionChange
from muntin.spark.partition.partition_clock import PartitionClock
from muntin.spark.partition.retained_batches import RetainedBatch
from muntin.spark.partition.stored_batches import StoredBatch
from muntin.spark.storage import LocalStorage, Storage
from muntin.spark.storage.fence import Fence, FencedStorage, VersionedStorage

NEVER = LeaseTiming(renewal=3600.0, patience=0.0, poll=0.0)
"""Every holder counts as dead after one look."""


def change(storage: Storage, batch: int, writer: str, *gone: int) -> PartitionChange:
    """Write the file of a partition batch and return the change that names it."""
    file = f"state/{batch:03d}-{writer}"
    storage.put(file, b"rows")
    note = RetainedBatch(batch, PartitionClock({}, 0), {})
    return PartitionChange(0, StoredBatch(file, note), gone)


def started(storage: Storage, timing: LeaseTiming | None = None) -> tuple[Lease, ManifestLog]:
    """Return the lease and the manifests of a driver that has begun."""
    lease = Lease(storage, "checkpoint", timing)
    log = ManifestLog(storage, lease)
    lease.acquire()
    lease.begin(log.load().batch)
    return lease, log


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every claim look like one of another machine whose holder is dead."""
    numbers = iter(range(1_000_000))
    monkeypatch.setattr(module, "_machine", lambda: f"machine {next(numbers)}")


@pytest.mark.usefixtures("impatient")
def test_a_driver_that_begins_late_revokes_nothing_that_a_later_one_has_accepted(
    tmp_path: Path,
) -> None:
    storage = LocalStorage(tmp_path)
    first, first_log = started(storage, NEVER)
    first_log.commit([change(storage, 0, "first")])
    second = Lease(storage, "checkpoint", NEVER)
    second.acquire()
    found = ManifestLog(storage, second).load().batch  # it is paused before it records that
    under_way = ManifestLog(storage, Unchecked(first))
    under_way.load()
    under_way.commit([change(storage, 1, "first", 0)])
    third, third_log = started(storage, NEVER)
    assert third_log.state.batch == 1
    second.begin(found)
    for lease in (second, first, third):
        lease.release()
    _, log = started(storage, NEVER)
    assert log.state.batch == 1
    assert [stored.file for stored in log.state.stored(0)] == ["state/001-first"]
    assert storage.find("state/001-first")


@pytest.mark.usefixtures("impatient")
def test_a_claim_remembers_the_drivers_after_which_batches_were_completed(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    tokens, began = [], []
    for commits in (0, 2, 0, 0, 1):
        lease, log = started(storage, NEVER)
        tokens.append(lease.token)
        began.append(log.state.batch)
        for _ in range(commits):
            log.commit([change(storage, log.state.batch + 1, lease.token)])
        lease.release()
    assert began == [-1, -1, 1, 1, 1]
    last, _ = started(storage, NEVER)
    assert last.starts() == {tokens[1]: -1, tokens[4]: 1, last.token: 2}
    last.release()


class Unchecked(Fence):
    """The lease of a driver that was paused between a check and a write."""

    def __init__(self, lease: Lease) -> None:
        self._of = lease

    @property
    def token(self) -> str:
        return self._of.token


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


class Holder(Fence):
    """A driver that never looks whether it was replaced."""

    def __init__(self, number: int, starts: dict[int, int] | None = None) -> None:
        self._number = number
        self._starts = starts or {}

    @property
    def token(self) -> str:
        return f"{self._number:08d}-x"

    def starts(self) -> dict[str, int]:
        return {f"{number:08d}-x": after for number, after in self._starts.items()}


def test_controls_and_suspensions_of_a_replaced_driver_are_ignored(tmp_path: Path) -> None:
    before, after, last = (
        VersionedStorage(LocalStorage(tmp_path), Holder(number)) for number in (4, 5, 6)
    )
    queue, suspended = ControlQueue(after), SuspendedQueries(after)
    queue.load()
    suspended.load()
    replaced = ControlQueue(before)
    replaced.send_moment(99)
    replaced.plan(7, has_rows=False)
    replaced.advance(98)
    SuspendedQueries(before).add(0, "q", "it ran out of memory in the replaced driver")
    assert not found(last)
    queue.advance(50)
    queue.complete(queue.plan(7, has_rows=False))
    replaced.plan(8, has_rows=False)
    assert not found(last), "nor after the controls of the later driver are deleted"


def test_controls_and_suspensions_that_a_driver_finds_stay_in_force(tmp_path: Path) -> None:
    first, second, last = (
        VersionedStorage(LocalStorage(tmp_path), Holder(number)) for number in (4, 5, 6)
    )
    queue = ControlQueue(first)
    queue.advance(50)
    planned = queue.plan(7, has_rows=False)
    SuspendedQueries(first).add(0, "q", "it divides by zero")
    again = queue
    for storage in (second, last):
        again, suspended = ControlQueue(storage), SuspendedQueries(storage)
        again.load()
        suspended.load()
        assert again.plan(7, has_rows=False) == planned
        assert suspended.reasons == {0: "it divides by zero"}
    again.complete(planned)
    assert not ControlQueue(last).interrupted(7)


def found(storage: VersionedStorage) -> list[object]:
    """Return the controls and suspensions that a driver would begin with."""
    copy = ControlQueue(storage)
    copy.load()
    suspended = SuspendedQueries(storage)
    suspended.load()
    storage.inner.delete([f"{name}@{storage.fence.token}" for name in storage.names()])
    waiting = [copy.interrupted(7), copy.interrupted(8), *suspended.reasons]
    return [one for one in [*waiting, *([copy] if copy.urgent.is_set() else [])] if one is not None]


def test_entries_of_a_global_stage_by_a_replaced_driver_are_ignored(tmp_path: Path) -> None:
    rows = pa.table({"v": [1]})
    first, second, last = (
        VersionedStorage(LocalStorage(tmp_path), Holder(number, starts)).below("global/0-2")
        for number, starts in ((4, {4: -1}), (5, {4: -1, 5: 6}), (6, {4: -1, 5: 6, 6: 7}))
    )
    log = StageLog(first)
    log.write(6, [rows], None, whole=True)
    StageLog(second).load(7)
    log.write(7, [rows], None, whole=False)  # batch 7 of the second driver has no changes
    assert [entry.batch for entry in StageLog(last).load(8)] == [6]
    log = StageLog(last)
    log.load(8)
    log.write(8, [rows], None, whole=False)
    assert [entry.batch for entry in log.load(9)] == [6, 8]
    log.prune(8)
    assert LocalStorage(tmp_path).tree() == ["global/0-2/000000000008.changes@00000006-x"]


class TakenOver(Fence):
    """A fence whose later holder begins to write a file while it is checked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def check(self) -> None:
        (self._folder / "later.part").touch()


def test_a_sweep_deletes_no_file_that_a_later_driver_is_writing(tmp_path: Path) -> None:
    (tmp_path / "earlier.part").touch()
    for kind in (FencedStorage, VersionedStorage):
        kind(LocalStorage(tmp_path), TakenOver(tmp_path)).sweep()
        assert [path.name for path in tmp_path.iterdir()] == ["later.part"]
        (tmp_path / "later.part").rename(tmp_path / "earlier.part")


def test_a_start_asks_for_a_claim_that_disappears_only_once_per_poll(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = LocalStorage(tmp_path)
    storage.put("lease/00000003-a", b"claim")
    asked: list[str] = []

    def gone(_: LocalStorage, name: str) -> None:
        asked.append(name)

    monkeypatch.setattr(LocalStorage, "find", gone)
    with pytest.raises(CheckpointError, match="in use by another engine"):
        Lease(storage, "here", LeaseTiming(renewal=60.0, patience=0.3, poll=0.1)).acquire()
    assert 2 <= len(asked) <= 5
