"""Live events: snapshots and results, whoever reads them, and however slowly."""

from __future__ import annotations

import socket
import time
from itertools import islice

import pyarrow as pa

from muntin.console.app import MOST_VIEWERS
from tests.console_client import Client, FakeSource


def wait_until(done: object, seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not done():  # type: ignore[operator]
        assert time.monotonic() < until, "waited too long"
        time.sleep(0.01)


def test_snapshots_come_by_themselves_and_history_comes_first(client: Client) -> None:
    events = list(islice(client.events(), 5))
    assert [kind for kind, _ in events[:2]] == ["history", "snapshot"]
    counts = [data["streams"][0]["rows_in"] for kind, data in events if kind == "snapshot"]
    assert counts == sorted(set(counts)), "each is newer than the one before"
    kind, data = next(iter(client.events()))
    assert kind == "history"
    assert [point["streams"]["A"] for point in data["points"]][: len(counts)]


def test_the_engine_is_looked_at_only_while_a_browser_is_there(
    client: Client, source: FakeSource
) -> None:
    time.sleep(0.3)
    assert source.looked == 0
    events = client.events()
    list(islice(events, 3))
    events.close()
    wait_until(lambda: not client.console.app.hub.viewers)
    time.sleep(0.2)
    looked = source.looked
    time.sleep(0.3)
    assert source.looked == looked > 0


def test_results_of_one_query_come_as_they_are_made(client: Client, source: FakeSource) -> None:
    events = client.events("/api/events?query=pairs")
    next(events)
    wait_until(lambda: source.taps)
    source.taps[0](pa.table({"_op": ["+", "-"], "k": [1, None]}))
    data = next(data for kind, data in events if kind == "results")
    assert data == {
        "query": "pairs",
        "columns": ["_op", "k"],
        "rows": [["+", "1"], ["-", None]],
        "count": 2,
        "left_out": 0,
    }
    events.close()
    wait_until(lambda: not source.taps)


def test_results_of_a_missing_query_are_an_obstacle_not_a_failure(client: Client) -> None:
    data = next(data for kind, data in client.events("/api/events?query=x") if kind == "obstacle")
    assert data == {"query": "x", "text": "there is no query 'x'. Check the name"}


def test_a_browser_that_does_not_read_costs_a_bounded_buffer_and_delays_nobody(
    client: Client, source: FakeSource
) -> None:
    slow = socket.create_connection(("127.0.0.1", client.port), 10)
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    request = f"GET /api/events?query=pairs HTTP/1.1\r\nHost: localhost\r\nCookie: {client.cookie}"
    slow.sendall(f"{request}\r\n\r\n".encode())
    wait_until(lambda: source.taps)
    offer = source.taps[0]
    (viewer,) = client.console.app.hub.viewers
    rows = pa.table({"_op": ["+"] * 500, "text": ["x" * 200] * 500})
    began = time.monotonic()
    for _ in range(2_000):
        offer(rows)
    assert time.monotonic() - began < 10, "the engine does not wait"
    assert len(viewer.results) <= 1_000
    counts = [data["missed"] for kind, data in islice(client.events(), 6) if kind == "snapshot"]
    assert counts == [0] * len(counts), "another browser misses nothing"
    slow.close()
    wait_until(lambda: not source.taps)


def test_browsers_beyond_the_limit_are_turned_away(client: Client) -> None:
    streams = [client.events() for _ in range(MOST_VIEWERS)]
    for each in streams:
        next(each)
    assert client.get("/api/events").status == 503
    for each in streams:
        each.close()
