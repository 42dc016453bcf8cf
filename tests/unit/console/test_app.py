"""What the console answers to those who may ask."""

from __future__ import annotations

import pytest

from muntin.console.app import ConsoleOptions
from muntin.console.server import Console
from tests.console_client import Client, FakeSource


def test_a_query_is_checked_added_shown_and_dropped(client: Client, source: FakeSource) -> None:
    wrong = {"sql": "SELECT\n  wrong", "name": "new"}
    error = {
        "fact": "there is no column wrong of new", "hint": "Look again", "line": 2, "column": 3,
    }  # fmt: skip
    assert client.post("/api/check", wrong).data == {"done": [error]}
    assert client.post("/api/add", wrong).data == {"errors": [error]}
    right = {"sql": "SELECT 2", "name": "new"}
    assert client.post("/api/check", right).data == {"done": []}
    assert "new" not in source.queries
    assert client.post("/api/add", right).data == {"done": "new"}
    assert client.get("/api/query?name=new").data == {"name": "new", "sql": "SELECT 2"}
    assert client.get("/api/answer?name=new").data == {
        "columns": ["text"], "rows": [["SELECT 2"]], "count": 1,
    }  # fmt: skip
    assert client.post("/api/drop", {"name": "new"}).status == 200
    assert client.post("/api/drop", {"name": "new"}).status == 422
    assert list(source.queries) == ["pairs"]


@pytest.mark.parametrize("body", ["[]", "{", '{"sql": 1}', '{"name": {}}', "[" * 20_000, "\x00"])
def test_malformed_requests_are_refused_and_change_nothing(
    client: Client, source: FakeSource, body: str
) -> None:
    headers = {"content-type": "application/json", "origin": client.origin}
    assert client.send("POST", "/api/add", body, headers).status == 400
    assert list(source.queries) == ["pairs"]


def test_a_read_only_console_shows_but_changes_nothing(source: FakeSource) -> None:
    with Console(source, "127.0.0.1:0", ConsoleOptions(read_only=True)) as console:
        client = Client(console).login()
        assert client.get("/api/about").data["read_only"] is True
        for path in ("/api/check", "/api/add", "/api/drop"):
            assert client.post(path, {"sql": "SELECT 2", "name": "pairs"}).status == 403
        assert client.get("/api/query?name=pairs").status == 200
    assert source.queries == {"pairs": "SELECT 1"}


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "GET", "OPTIONS"])
def test_only_posts_change(client: Client, method: str) -> None:
    assert client.send(method, "/api/drop", None, {"origin": client.origin}).status == 405
