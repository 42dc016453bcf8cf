"""A storage on a real S3 server keeps the contract, also when requests fail, stall or are slow."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest

from muntin.runtime.frames import CheckpointError
from muntin.spark.driver import lease
from muntin.spark.driver.lease import Lease, LeaseTiming
from muntin.spark.partition.manifests import ManifestLog
from muntin.spark.storage import Location, Storage, storage_at
from tests.connectors.conftest import Store
from tests.connectors.proxy import Proxy, Trouble
from tests.unit.spark.storage_contract import AtomicStorageContract

pytestmark = [pytest.mark.connectors]


def at(store: Store) -> Storage:
    """Return a storage in a new folder of a store."""
    folder = f"{store.url}/{uuid.uuid4().hex}"
    return storage_at(Location(folder, tuple(store.settings().items())))


class TestS3(AtomicStorageContract):
    @pytest.fixture
    def storage(self, store: Store) -> Storage:
        return at(store)


@pytest.fixture
def proxied(store: Store) -> Iterator[tuple[Storage, Trouble]]:
    trouble = Trouble()
    with Proxy(store.endpoint, trouble) as proxy:
        yield at(replace(store, endpoint=proxy.endpoint)), trouble
        proxy.shutdown()


def test_requests_that_fail_or_are_slow_are_tried_again(
    proxied: tuple[Storage, Trouble],
) -> None:
    storage, trouble = proxied
    trouble.next[:] = ["busy", "busy"]
    storage.put("state/file", b"content")
    trouble.next[:] = ["drop", "busy", 1.0]
    assert bytes(storage.get("state/file")) == b"content"
    trouble.next[:] = ["busy", "drop"]
    assert storage.names("state") == ["file"]
    trouble.next[:] = ["busy", "busy"]
    storage.delete(["state/file"])
    assert storage.tree() == []


def test_a_store_that_stays_away_is_an_error_within_the_timeouts(
    proxied: tuple[Storage, Trouble],
) -> None:
    storage, trouble = proxied
    trouble.next[:] = ["busy"] * 100
    began = time.monotonic()
    with pytest.raises(CheckpointError, match=r"s3a://.*/file cannot be written: .*credentials"):
        storage.put("file", b"content")
    trouble.next[:] = [20.0] * 100
    with pytest.raises(CheckpointError, match="cannot be listed"):
        storage.names("state")
    assert time.monotonic() - began < 120
    trouble.next.clear()
    assert storage.names() == []


def test_a_driver_of_another_machine_is_refused_or_takes_over_and_the_old_one_finds_out(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = iter(range(1_000))
    monkeypatch.setattr(lease, "_machine", lambda: f"machine {next(numbers)}")
    storage, quick = at(store), LeaseTiming(renewal=0.1, patience=20.0, poll=0.05)
    alive = Lease(storage, "here", quick)
    alive.acquire()
    with pytest.raises(CheckpointError, match=r"in use by another engine \(process \d+ on"):
        Lease(storage, "here", quick).acquire()
    alive.release()
    paused = LeaseTiming(renewal=60.0, patience=1.0, poll=0.05)
    first, second = Lease(storage, "here", paused), Lease(storage, "here", paused)
    first.acquire()
    log = ManifestLog(storage, first)
    first.begin(log.load().batch)
    log.commit([])
    began = time.monotonic()
    second.acquire()
    assert time.monotonic() - began >= paused.patience
    again = ManifestLog(storage, second)
    second.begin(again.load().batch)
    with pytest.raises(CheckpointError, match="was taken over by another engine"):
        log.commit([])
    again.commit([])
    second.release()
    assert ManifestLog(storage, Lease(storage, "here")).load().batch == 1
