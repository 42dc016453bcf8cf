"""A client whose request waits for that of another one does not kill the state server."""

from __future__ import annotations

import os
import threading
import time

import pytest

from muntin.spark.partition import state_client
from muntin.spark.partition.state_client import StateClient
from muntin.spark.partition.wire import receive_answer, send
from tests.unit.spark.partition.test_state_server import (
    SHARES,
    not_again,
    request,
    run,
    told,
    told_in_process,
)

__all__ = ["run"]
pytestmark = pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")


def test_a_waiting_client_gets_signs_of_life(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client = StateClient(run, 0, os.getpid())
    client.apply(request(-1, SHARES[0]))
    monkeypatch.setattr(state_client, "_PATIENCE", 3.0)
    with state_client._reached(client._socket, 5) as own:
        other = state_client._proved(own, client._key.read_bytes(), 5)
    with other:
        first = request(0, SHARES[1], not_again)
        send(other, ("apply", first.order))  # its frame is still on its way
        time.sleep(0.5)
        found = []
        second = threading.Thread(
            target=lambda: found.append(client.apply(request(1, SHARES[2], not_again)))
        )
        second.start()
        second.join(6.0)
        assert second.is_alive(), "it waits for its turn"
        other.send_bytes(first.frame)
        assert receive_answer(other, 10)[0] == "applied"
        second.join(20)
    assert told(found[0]) == told_in_process()[2]


def test_a_new_connection_does_not_kill_a_busy_server(
    run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = StateClient(run, 0, os.getpid())
    client.apply(request(-1, SHARES[0]))
    other = state_client._open.pop(client._socket)
    monkeypatch.setattr(state_client, "_BUSY", 3.0)
    with other:
        first = request(0, SHARES[1], not_again)
        send(other, ("apply", first.order))  # its frame is still on its way
        time.sleep(0.5)
        found = []
        second = threading.Thread(
            target=lambda: found.append(client.apply(request(1, SHARES[2], not_again)))
        )
        second.start()
        second.join(6.0)
        assert second.is_alive(), "it waits for its turn"
        other.send_bytes(first.frame)
        assert receive_answer(other, 10)[0] == "applied"
        second.join(20)
    assert told(found[0]) == told_in_process()[2]
