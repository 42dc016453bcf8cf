"""One driver at a time has a checkpoint, and one that was replaced finds out before it matters."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muntin.runtime.codec import decode, encode
from muntin.runtime.frames import CheckpointError
from muntin.spark.driver import lease as module
from muntin.spark.driver.lease import Claim, Holder, Lease, LeaseTiming
from muntin.spark.partition.manifests import ManifestLog, PartitionChange
from muntin.spark.partition.partition_clock import PartitionClock
from muntin.spark.partition.retained_batches import RetainedBatch
from muntin.spark.partition.stored_batches import StoredBatch
from muntin.spark.storage import LocalStorage, Storage
from tests.unit.spark.faulty_storage import Faults, FaultyStorage

QUICK = LeaseTiming(renewal=0.02, patience=0.3, poll=0.01)
SLEEPY = LeaseTiming(renewal=60.0, patience=0.2, poll=0.01)
"""A holder that does not renew in time, as one that is paused."""


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every claim look like one of another machine."""
    numbers = iter(range(1_000_000))
    monkeypatch.setattr(module, "_machine", lambda: f"machine {next(numbers)}")


def claims(storage: Storage) -> list[Claim]:
    return [
        decode(storage.get(f"lease/{name}"), "lease", Claim, name)
        for name in storage.names("lease")
    ]


def change(storage: Storage, batch: int, writer: str = "") -> PartitionChange:
    """Write the file of a partition batch and return the change that names it."""
    file = f"state/{batch:03d}-{writer}"
    storage.put(file, b"rows")
    return PartitionChange(0, StoredBatch(file, RetainedBatch(batch, PartitionClock({}, 0), {})))


class Driver:
    """A driver that commits one batch after the other."""

    def __init__(self, storage: Storage, name: str, timing: LeaseTiming = QUICK) -> None:
        self.storage = storage
        self.name = name
        self.lease = Lease(storage, "checkpoint", timing)
        self.manifests = ManifestLog(storage, self.lease)

    def start(self) -> Driver:
        self.lease.acquire()
        self.lease.begin(self.manifests.load().batch)
        return self

    def commit(self) -> int:
        batch = self.manifests.state.batch + 1
        self.manifests.commit([change(self.storage, batch, self.name)], batch)
        return batch


def test_a_second_engine_of_the_process_is_refused_until_the_first_releases(
    storage: LocalStorage,
) -> None:
    first, second = Lease(storage, "here"), Lease(storage, "here")
    first.acquire()
    token = first.token
    first.acquire()
    assert first.token == token
    with pytest.raises(
        CheckpointError,
        match=rf"here is in use by another engine \(process {os.getpid()} on .*Stop that one",
    ):
        second.acquire()
    first.release()
    first.release()
    second.acquire()
    assert second.token > token
    second.begin(-1)
    assert [claim.token for claim in claims(storage)] == [second.token], "others are obsolete"
    second.release()
    assert claims(storage)[0].released


def test_an_engine_that_was_forgotten_does_not_keep_its_checkpoint(storage: LocalStorage) -> None:
    forgotten = Lease(storage, "here", QUICK)
    forgotten.acquire()
    del forgotten
    gc.collect()
    Lease(storage, "here").acquire()


def test_a_dead_process_of_this_machine_is_replaced_at_once(storage: LocalStorage) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        holder = replace(module.Holder.this(), pid=process.pid)
        alive = Claim("00000007-a", replace(holder, started=module._started(process.pid) or ""))
        storage.put("lease/00000007-a", encode(alive, "lease"))
        with pytest.raises(CheckpointError, match=rf"process {process.pid} on"):
            Lease(storage, "here").acquire()
        process.kill()
        process.wait()
    began = time.monotonic()
    lease = Lease(storage, "here")
    lease.acquire()
    assert time.monotonic() - began < 1
    assert lease.token.startswith("00000008-")
    lease.release()
    reused = replace(alive, token="00000009-a", holder=replace(holder, pid=1, started="-1"))
    storage.put("lease/00000009-a", encode(reused, "lease"))
    lease.acquire()
    assert lease.token.startswith("00000010-"), "another process has its number by now"
    lease.release()


@pytest.mark.usefixtures("remote")
def test_a_remote_engine_is_refused_while_the_holder_renews(storage: LocalStorage) -> None:
    first = Lease(storage, "here", QUICK)
    first.acquire()
    with pytest.raises(CheckpointError, match="in use by another engine"):
        Lease(storage, "here", QUICK).acquire()
    first.release()
    Lease(storage, "here", QUICK).acquire()


@pytest.mark.usefixtures("remote")
def test_a_remote_holder_without_renewals_is_replaced_after_the_patience(
    storage: LocalStorage, caplog: pytest.LogCaptureFixture
) -> None:
    first = Driver(storage, "first", SLEEPY).start()
    first.commit()
    began = time.monotonic()
    second = Driver(storage, "second", SLEEPY).start()
    assert SLEEPY.patience <= time.monotonic() - began < 5
    assert "no sign of life for 0.2 seconds" in caplog.text
    assert second.manifests.state.batch == 0
    with pytest.raises(CheckpointError, match=r"was taken over by another engine \(process \d+ on"):
        first.commit()
    assert second.commit() == 1
    with pytest.raises(CheckpointError, match="was taken over"):
        first.lease.check()


@pytest.mark.usefixtures("remote")
def test_a_claim_that_cannot_be_read_is_watched_like_any_other(storage: LocalStorage) -> None:
    storage.put("lease/00000003-a", b"half a cl")
    began = time.monotonic()
    lease = Lease(storage, "here", QUICK)
    lease.acquire()
    assert time.monotonic() - began >= QUICK.patience
    assert lease.token.startswith("00000004-")
    lease.release()


@pytest.mark.usefixtures("remote")
def test_a_manifest_that_arrives_after_the_takeover_is_ignored_forever(
    storage: LocalStorage,
) -> None:
    first = Driver(storage, "first", SLEEPY).start()
    first.commit()
    stalled = ManifestLog(storage, Unchecked(first.lease))
    stalled.load()
    second = Driver(storage, "second", SLEEPY).start()
    stalled.commit([change(storage, 1, "first")], 1)
    assert ManifestLog(storage, Lease(storage, "here")).load().batch == 0
    second.commit()
    third = Driver(storage, "third", SLEEPY).start()
    assert [stored.file for stored in third.manifests.state.stored(0)] == [
        "state/000-first",
        "state/001-second",
    ]
    assert third.commit() == 2


class Unchecked(Lease):
    """A lease whose holder was paused between the check and the write."""

    def __init__(self, lease: Lease) -> None:
        super().__init__(lease._storage, "")
        self._of = lease

    @property
    def token(self) -> str:
        return self._of.token

    def check(self) -> None:
        pass


def test_of_engines_that_start_together_one_goes_on(storage: LocalStorage) -> None:
    leases = [Lease(storage, "here") for _ in range(6)]
    started: list[Lease] = []
    refused: list[str] = []
    together = threading.Barrier(len(leases))

    def start(lease: Lease) -> None:
        together.wait(20)
        try:
            lease.acquire()
            started.append(lease)
        except CheckpointError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=start, args=[lease]) for lease in leases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(started) <= 1
    assert len(refused) >= len(leases) - 1
    assert [text for text in refused if "in use by another engine" not in text] == []
    if not started:
        started.append(Lease(storage, "here"))
        started[0].acquire()
    started[0].check()
    started[0].release()


def test_a_claim_that_is_withdrawn_meanwhile_lets_no_two_engines_start(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    withdrawing = Claim("00000001-a", Holder.this())
    storage.put(f"lease/{withdrawing.token}", encode(withdrawing, "lease"))
    other, put = Lease(storage, "here"), LocalStorage.put

    def slow_put(*arguments: Any, **more: Any) -> None:
        monkeypatch.setattr(LocalStorage, "put", put)
        storage.delete([f"lease/{withdrawing.token}"])
        other.acquire()
        put(*arguments, **more)

    monkeypatch.setattr(LocalStorage, "put", slow_put)
    late = Lease(storage, "here")
    with pytest.raises(CheckpointError, match="in use by another engine"):
        late.acquire()
    assert [claim.token for claim in claims(storage)] == [other.token]
    other.check()
    other.release()


def test_a_rival_that_is_about_to_withdraw_does_not_end_the_holder(storage: LocalStorage) -> None:
    driver = Driver(storage, "it").start()
    rival = replace(claims(storage)[0], token=driver.lease.token[:9] + "g")
    storage.put(f"lease/{rival.token}", encode(rival, "lease"))
    assert rival.token > driver.lease.token
    driver.commit()
    storage.delete([f"lease/{rival.token}"])
    storage.put("lease/00000002-0", encode(rival, "lease"))
    with pytest.raises(CheckpointError, match="was taken over"):
        driver.commit()


# -- storage that fails ----------------------------------------------------------------------------


def test_a_claim_that_cannot_be_written_is_reported_and_blocks_nobody(
    storage: LocalStorage,
) -> None:
    faults = Faults(full=["lease"])
    with pytest.raises(CheckpointError, match="No space left"):
        Lease(FaultyStorage(storage, faults), "here").acquire()
    Lease(storage, "here").acquire()


def test_a_claim_that_was_half_written_blocks_nobody_for_longer_than_the_patience(
    storage: LocalStorage,
) -> None:
    for faults in (Faults(torn=["lease"]), Faults(unsure=["lease"])):
        with pytest.raises(CheckpointError):
            Lease(FaultyStorage(storage, faults), "here", QUICK).acquire()
        lease = Lease(storage, "here", QUICK)
        lease.acquire()
        lease.release()


def test_renewals_that_fail_for_a_while_are_logged_and_go_on(
    storage: LocalStorage, caplog: pytest.LogCaptureFixture
) -> None:
    faults = Faults()
    lease = Lease(FaultyStorage(storage, faults), "here", QUICK)
    lease.acquire()
    faults.full.append("lease")
    time.sleep(0.2)
    faults.full.clear()
    before = claims(storage)[0].renewals
    until = time.monotonic() + 20
    while claims(storage)[0].renewals <= before:
        assert time.monotonic() < until
        time.sleep(0.02)
    lease.check()
    lease.release()
    assert caplog.text.count("could not be renewed") == 1


def test_a_lease_that_cannot_be_checked_ends_the_run_before_the_manifest(
    storage: LocalStorage,
) -> None:
    faults = Faults()
    driver = Driver(FaultyStorage(storage, faults), "it").start()
    driver.commit()
    faults.gone.append("lease")
    with pytest.raises(CheckpointError, match="cannot be read"):
        driver.commit()
    assert ManifestLog(storage).last() == 0


@pytest.mark.parametrize("kind", ["torn", "unsure", "full"])
def test_a_manifest_that_fails_is_complete_or_named_at_the_next_start(
    storage: LocalStorage, kind: str
) -> None:
    faults = Faults()
    driver = Driver(FaultyStorage(storage, faults), "first").start()
    driver.commit()
    getattr(faults, kind).append("batches")
    with pytest.raises(CheckpointError):
        driver.commit()
    driver.lease.release()
    again = Driver(storage, "again")
    if kind == "torn":
        with pytest.raises(CheckpointError, match=r"batches/1 of the checkpoint is damaged"):
            again.start()
    else:
        again.start()
        assert again.manifests.state.batch == (1 if kind == "unsure" else 0)
        assert "000-first" in storage.names("state"), "nothing that is needed was deleted"
        again.commit()
    again.lease.release()


@pytest.mark.usefixtures("remote")
def test_a_replaced_driver_with_stale_listings_does_no_harm(storage: LocalStorage) -> None:
    faults = Faults()
    first = Driver(FaultyStorage(storage, faults), "first", SLEEPY).start()
    first.commit()
    faults.stale += ["lease", "batches", "state"]
    first.lease.check()
    second = Driver(storage, "second", SLEEPY).start()
    first.commit()
    first.commit()
    second.commit()
    faults.stale.clear()
    with pytest.raises(CheckpointError, match="was taken over"):
        first.commit()
    third = Driver(storage, "third", SLEEPY).start()
    files = [stored.file for stored in third.manifests.state.stored(0)]
    assert files == ["state/000-first", "state/001-second"]


def test_slow_storage_only_takes_longer(storage: LocalStorage) -> None:
    faults = Faults(slow=0.01)
    driver = Driver(FaultyStorage(storage, faults), "it").start()
    assert [driver.commit() for _ in range(3)] == [0, 1, 2]
    driver.lease.release()
    assert ManifestLog(storage).last() == 2


def test_a_manifest_lists_claims_twice_and_on_a_local_disk_in_no_time(
    storage: LocalStorage,
) -> None:
    faults = Faults()
    driver = Driver(FaultyStorage(storage, faults), "it", LeaseTiming()).start()
    driver.commit()
    faults.listings = 0
    driver.commit()
    assert faults.listings == 2
    began = time.perf_counter()
    for _ in range(200):
        driver.lease.check()
    assert (time.perf_counter() - began) / 200 < 0.001
    driver.lease.release()
