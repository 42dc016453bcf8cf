"""The console of an engine in process."""

from __future__ import annotations

import time

import pytest

import muntin
from muntin.errors import CatalogError, SqlError
from tests.console_client import Client

JOIN = "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 MINUTE"


def engine_with_query() -> muntin.Engine:
    engine = muntin.Engine()
    for name in "AB":
        engine.stream(name, {"k": "bigint", "ts": "timestamp"}, time="ts")
    engine.query(JOIN, name="pairs")
    return engine


def push(engine: muntin.Engine, second: int) -> None:
    for name in "AB":
        engine.push(name, [(second, f"2026-01-01 00:00:{second:02}")])
    engine.advance(f"2026-01-01 00:00:{second:02}")


def test_a_snapshot_counts_and_shows_response_times_since_the_last() -> None:
    engine = engine_with_query()
    with engine.console("127.0.0.1:0") as console:
        source = console.app.hub.source
        push(engine, 1)
        first = source.snapshot()
        push(engine, 2)
        push(engine, 3)
        second = source.snapshot()
        third = source.snapshot()
    counts = [each["queries"][0]["rows_out"] for each in (first, second, third)]
    assert counts == [1, 3, 3]
    responses = [each["queries"][0]["response"] for each in (first, second, third)]
    assert [each and each["count"] for each in responses] == [1, 2, None]
    assert [each["name"] for each in second["streams"]] == ["A", "B"]
    assert second["streams"][0]["watermark"] == "2026-01-01 00:00:03"
    assert second["queries"][0]["windows"][0]["seconds"] == 60


@pytest.mark.parametrize("background", [False, True])
def test_a_browser_that_looks_takes_nothing_away_from_polls(*, background: bool) -> None:
    engine = engine_with_query()
    if background:
        engine.start()
    with engine.console("127.0.0.1:0") as console:
        client = Client(console).login()
        events = client.events("/api/events?query=pairs")
        next(events)
        until = time.monotonic() + 20
        while not engine._registry._taps.get("pairs"):
            assert time.monotonic() < until
            time.sleep(0.01)
        push(engine, 1)
        data = next(data for kind, data in events if kind == "results")
        assert data["rows"] == [["+", "2026-01-01 00:00:01", "1"]]
        events.close()
    engine.stop()
    assert engine.handle("pairs").poll().column("k").to_pylist() == [1]


def test_a_check_changes_nothing_and_finds_what_adding_finds() -> None:
    engine = engine_with_query()
    with engine.console("127.0.0.1:0") as console:
        source = console.app.hub.source
        source.check("SELECT k FROM A WINDOW 1 MINUTE", "other")
        with pytest.raises(SqlError, match="line 2, column 3"):
            source.check("SELECT\n  x FROM A WINDOW 1 MINUTE", None)
        with pytest.raises(CatalogError, match="the name pairs is taken"):
            source.check("SELECT k FROM A WINDOW 1 MINUTE", "pairs")
        with pytest.raises(SqlError, match="DROP is not part of a query"):
            source.check("DROP QUERY pairs", None)
        assert [query.name for query in engine.queries()] == ["pairs"]


def test_queries_are_added_and_dropped_over_the_network() -> None:
    engine = engine_with_query()
    with engine.console("127.0.0.1:0") as console:
        client = Client(console).login()
        added = client.post("/api/add", {"sql": "SELECT k FROM A WINDOW 1 MINUTE"})
        assert added.data == {"done": "q1"}
        push(engine, 1)
        assert client.get("/api/answer?name=q1").data["rows"] == [["1"]]
        details = client.get("/api/query?name=q1").data
        assert details["sql"] == "SELECT k FROM A WINDOW 1 MINUTE"
        assert details["explain"].startswith("query q1")
        assert client.post("/api/drop", {"name": "q1"}).status == 200
    assert [query.name for query in engine.queries()] == ["pairs"]


def test_a_suspended_query_is_shown_with_its_reason() -> None:
    engine = engine_with_query()

    def fail(_: object) -> object:
        raise ValueError("out of order")

    engine.function("f", fail, {"x": "bigint"}, "bigint")
    engine.query("SELECT f(k) AS y FROM A WINDOW 1 MINUTE", name="broken")
    push(engine, 1)
    with engine.console("127.0.0.1:0") as console:
        found = {each["name"]: each for each in console.app.hub.source.snapshot()["queries"]}
    assert "out of order" in found["broken"]["suspended"]
    assert found["pairs"]["suspended"] is None


def test_two_consoles_of_one_engine_do_not_share_sessions() -> None:
    engine = engine_with_query()
    with engine.console() as one, engine.console() as other:
        client = Client(one).login()
        assert Client(other, client.cookie).get("/api/about").status == 401


def test_metrics_are_served_to_who_has_the_token() -> None:
    engine = engine_with_query()
    push(engine, 1)
    with engine.console("127.0.0.1:0") as console:
        token = console.url.partition("=")[2]
        client = Client(console)
        assert client.get("/metrics").status == 401
        reply = client.get("/metrics", authorization=f"Bearer {token}")
    assert 'muntin_query_results_total{query="pairs"} 1' in reply.text.splitlines()
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
