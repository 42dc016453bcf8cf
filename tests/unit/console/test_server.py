"""The server: many connections, silent ones, its stop, and its address."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import pytest

from muntin.console import server
from muntin.console.address import Address
from muntin.console.server import MOST_CONNECTIONS, Console
from muntin.errors import InputError
from tests.console_client import Client, FakeSource


def test_a_thousand_connections_are_survived(client: Client) -> None:
    open_ones: list[socket.socket] = []
    try:
        for _ in range(1_000):
            connection = socket.create_connection(("127.0.0.1", client.port), 10)
            if len(open_ones) < 300:
                open_ones.append(connection)
            else:
                connection.close()
        held = client.console.app.hub.viewers
        assert not held
    finally:
        for each in open_ones:
            each.close()
    until = time.monotonic() + 20
    while True:
        try:
            assert client.get("/api/about").status == 200
            break
        except OSError:
            assert time.monotonic() < until
            time.sleep(0.1)


def test_connections_beyond_the_limit_are_closed(client: Client) -> None:
    connections = [
        socket.create_connection(("127.0.0.1", client.port), 10)
        for _ in range(MOST_CONNECTIONS + 20)
    ]
    closed = 0
    for each in connections[MOST_CONNECTIONS:]:
        each.settimeout(10)
        try:
            closed += each.recv(1) == b""
        except ConnectionError:
            closed += 1
    for each in connections:
        each.close()
    assert closed == 20


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\n"])
def test_a_request_that_does_not_arrive_is_given_up(
    monkeypatch: pytest.MonkeyPatch, source: FakeSource, sent: bytes
) -> None:
    monkeypatch.setattr(server, "_ARRIVAL", 0.3)
    with Console(source, "127.0.0.1:0") as console:
        connection = socket.create_connection(("127.0.0.1", Client(console).port), 10)
        connection.settimeout(10)
        connection.sendall(sent)
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""
        connection.close()


def test_a_stop_ends_events_and_the_thread_in_time(client: Client) -> None:
    events = client.events()
    next(events)
    began = time.monotonic()
    client.console.stop()
    assert time.monotonic() - began < 5
    assert not client.console.is_running
    assert [kind for kind, _ in events if kind not in {"snapshot", "history"}] == []
    with pytest.raises(OSError, match="refused"):
        client.get("/")
    client.console.stop()


def test_a_stop_does_not_wait_for_an_engine_that_does_not_answer(source: FakeSource) -> None:
    source.gate = threading.Event()
    with Console(source, "127.0.0.1:0") as console:
        events = Client(console).login().events()
        next(events)
        time.sleep(0.1)
        began = time.monotonic()
        console.stop()
        assert time.monotonic() - began < 5
        assert not console.is_running
    source.gate.set()


def test_a_taken_port_is_an_error_that_names_the_remedy(console: Console) -> None:
    port = Client(console).port
    with pytest.raises(InputError, match=f"cannot listen at 127.0.0.1:{port}: .*another port"):
        Console(FakeSource(), f"127.0.0.1:{port}")


def test_without_a_choice_a_taken_port_gives_way_to_a_free_one(console: Console) -> None:
    taken = Address("127.0.0.1", Client(console).port)
    with taken.listen(any_port=True) as other:
        assert other.getsockname()[1] != taken.port


def test_only_this_machine_is_listened_to_by_default(
    source: FakeSource, caplog: pytest.LogCaptureFixture
) -> None:
    with Console(source) as console:
        assert console.address.startswith("http://127.0.0.1:")
    assert caplog.text == ""
    with Console(source, "0.0.0.0:0"):
        assert "other machines can connect without encryption" in caplog.text


def test_its_representation_does_not_give_the_token_away(console: Console) -> None:
    assert "token" not in repr(console)
