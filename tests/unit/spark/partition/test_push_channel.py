"""The channel from a partition to the driver: authenticated, ordered, without endless waits."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pyarrow as pa
import pytest

from muntin.errors import RunError
from muntin.spark.exchange.marks import Mark
from muntin.spark.partition import push_channel as releasing
from muntin.spark.partition.push_channel import Address, PushConnection, PushReceiver, PushTarget

HOST = "127.0.0.1"
Came = list[tuple[str, Mark, list[int]]]


class Desk:
    """A driver and the results it received."""

    def __init__(self) -> None:
        self.came: Came = []
        self.receiver = PushReceiver(HOST, HOST, self._take)

    def _take(self, query: str, mark: Mark, results: pa.Table) -> None:
        self.came.append((query, mark, results.column("v").to_pylist()))

    def target(self, partition: int = 0) -> PushTarget:
        return PushTarget(self.receiver.address, partition, frozenset({"q"}))


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()
    with closing(desk.receiver):
        yield desk


def table(*values: int) -> pa.Table:
    return pa.table({"v": pa.array(values, pa.int64())})


def test_results_arrive_before_the_batch_ends_and_completely_when_it_does(desk: Desk) -> None:
    connection_to_driver = PushConnection()
    releases = connection_to_driver.begin(desk.target(partition=2), 7, 99.5)
    releases("q", table(1, 2))
    until = time.monotonic() + 10
    while not desk.came:
        assert time.monotonic() < until
        time.sleep(0.001)
    assert desk.came == [("q", Mark(7, 2, 0), [1, 2])], "the share goes on"
    releases("nobody's", table(9))
    releases("q", table())
    releases("q", table(3))
    assert releases.end() == 0
    assert desk.came[1:] == [("q", Mark(7, 2, 2), [3])]
    assert desk.came[0][1].arrived == 99.5
    following = connection_to_driver.begin(desk.target(partition=2), 8, 0.0)
    following("q", table(4))
    assert following.end() == 0
    assert desk.came[2:] == [("q", Mark(8, 2, 0), [4])]
    serving = [
        thread for thread in threading.enumerate() if thread.name == "muntin-receiver-partition"
    ]
    assert len(serving) == 1, "one connection serves all shares"


def test_many_small_pieces_are_not_held_back(desk: Desk) -> None:
    """With Nagle's algorithm every second piece would wait 40 ms for an acknowledgment."""
    releases = PushConnection().begin(desk.target(), 0, 0.0)
    began = time.monotonic()
    for value in range(200):
        releases("q", table(value))
    assert releases.end() == 0
    assert time.monotonic() - began < 4
    assert [values[0] for _, _, values in desk.came] == list(range(200))


def test_an_absent_driver_is_not_waited_for_and_retried_later(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection_to_driver = PushConnection()
    with socket.create_server((HOST, 0)) as gone:
        port = gone.getsockname()[1]
    nowhere = replace(desk.target(), address=Address(HOST, port, b"key"))
    releases = connection_to_driver.begin(nowhere, 0, 0.0)
    releases("q", table(1, 2, 3))
    assert releases.end() == 3, "results that did not come are counted"
    tried: list[Address] = []
    monkeypatch.setattr(PushConnection, "_connect", lambda _, address: tried.append(address))
    connection_to_driver.begin(nowhere, 1, 0.0)
    assert tried == []
    connection_to_driver.begin(desk.target(), 1, 0.0)
    assert tried == [desk.receiver.address], "another driver is tried at once"


def test_a_silent_driver_costs_one_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(releasing, "_PATIENCE", 0.2)
    with socket.create_server((HOST, 0)) as silent:
        began = time.monotonic()
        releases = PushConnection().begin(
            PushTarget(Address(HOST, silent.getsockname()[1], b"key"), 0, frozenset({"q"})), 0, 0.0
        )
        releases("q", table(1))
        assert releases.end() == 1
        assert time.monotonic() - began < 5


def test_a_driver_that_stops_reading_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(releasing, "_PATIENCE", 0.3)
    stuck = threading.Event()
    receiver = PushReceiver(HOST, HOST, lambda *_: assert_wait(stuck))
    with closing(receiver):
        releases = PushConnection().begin(PushTarget(receiver.address, 0, frozenset({"q"})), 0, 0.0)
        began = time.monotonic()
        rows = table(*range(100_000)).set_column(
            0, "v", pa.array(range(0, 100_000 * 7919, 7919), pa.int64())
        )
        for _ in range(40):
            releases("q", rows)
        assert releases.end() == 4_000_000
        assert time.monotonic() - began < 20
        stuck.set()


def assert_wait(event: threading.Event) -> None:
    assert event.wait(60)


def test_after_the_driver_disconnects_the_next_batch_connects_again(
    desk: Desk,
) -> None:
    connection_to_driver = PushConnection()
    other = Desk()
    first = connection_to_driver.begin(other.target(), 0, 0.0)
    other.receiver.close()
    until = time.monotonic() + 10
    while connection_to_driver.connected:
        assert time.monotonic() < until
        first("q", table(1))
    assert first.end() > 0
    second = connection_to_driver.begin(desk.target(), 1, 0.0)
    second("q", table(2))
    assert second.end() == 0
    assert desk.came == [("q", Mark(1, 0, 0), [2])]


def test_unauthenticated_clients_get_nothing_and_disturb_nothing(desk: Desk) -> None:
    address = desk.receiver.address
    assert b"key" not in repr(address).encode()
    assert str(address.key) not in repr(address)
    wrong = PushConnection().begin(
        PushTarget(replace(address, key=b"guessed"), 0, frozenset({"q"})), 0, 0.0
    )
    wrong("q", table(666))
    assert wrong.end() == 1
    with (
        socket.create_connection((HOST, address.port)) as silent,
        socket.create_connection((HOST, address.port)) as noisy,
    ):
        noisy.sendall(b"GET / HTTP/1.1\r\n\r\n" * 50)
        silent.settimeout(5)
        assert silent.recv(4), "it is asked for the key"
        right = PushConnection().begin(desk.target(), 0, 0.0)
        right("q", table(1))
        assert right.end() == 0
    assert desk.came == [("q", Mark(0, 0, 0), [1])]


def test_a_foreign_address_is_reported() -> None:
    with pytest.raises(
        RunError,
        match=r"the driver cannot listen for results at 192\.0\.2\.1: .*spark\.driver\.bindAddress",
    ):
        PushReceiver("192.0.2.1", "192.0.2.1", lambda *_: None)
