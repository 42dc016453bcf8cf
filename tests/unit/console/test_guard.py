"""Who gets in, and what every response says."""

from __future__ import annotations

import contextlib
import http.client

import pytest

from muntin.console.guard import LONGEST_BODY
from muntin.console.server import Console
from tests.console_client import EVIL, Client, FakeSource

PATHS = ["/", "/static/main.js", "/api/about", "/api/events", "/api/query?name=pairs", "/metrics"]


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_answered_without_the_token(console: Console, path: str) -> None:
    reply = Client(console).get(path)
    assert reply.status == 401
    assert "pairs" not in reply.text


@pytest.mark.parametrize("path", [path for path in PATHS if path != "/api/events"])
def test_a_session_opens_every_page_and_hides_from_scripts_and_sites(
    console: Console, path: str
) -> None:
    client = Client(console)
    reply = client.get(f"/?token={console.url.partition('=')[2]}")
    assert reply.headers["location"] == "/", "the token leaves the address bar"
    assert {"HttpOnly", "SameSite=Strict"} <= set(reply.headers["set-cookie"].split("; "))
    assert console.url.partition("=")[2] not in reply.headers["set-cookie"]
    assert client.login().get(path).status == 200


def test_programs_send_the_token_as_bearer(console: Console) -> None:
    token = console.url.partition("=")[2]
    client = Client(console)
    assert client.get("/metrics", authorization=f"Bearer {token}").text == "up 1\n"
    assert client.get("/metrics", authorization="Bearer wrong").status == 401


@pytest.mark.parametrize("path", ["/", "/static/main.js", "/nowhere", "/?token=x"])
def test_every_response_has_the_strict_policy(client: Client, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy, "nothing comes from elsewhere"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_a_name_that_resolves_to_this_machine_is_refused(client: Client, host: str) -> None:
    assert client.get("/api/about", host=host).status == 421


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9000", "[::1]:9000"])
def test_a_forwarded_port_works(client: Client, host: str) -> None:
    assert client.get("/api/about", host=host).status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:1", "null"])
def test_changes_from_another_origin_are_refused(
    client: Client, source: FakeSource, origin: str
) -> None:
    assert client.post("/api/drop", {"name": "pairs"}, origin=origin).status == 403
    assert client.get("/api/about", origin=origin).status == 403
    assert list(source.queries) == ["pairs"]


def test_changes_without_an_origin_need_the_token(console: Console, client: Client) -> None:
    headers = {"content-type": "application/json"}
    body = '{"name": "pairs"}'
    assert client.send("POST", "/api/drop", body, headers).status == 403
    headers["authorization"] = f"Bearer {console.url.partition('=')[2]}"
    assert Client(console).send("POST", "/api/drop", body, headers).status == 200


def test_pages_of_the_same_site_but_another_port_are_refused(client: Client) -> None:
    assert client.get("/api/about", sec_fetch_site="same-site").status == 403
    assert client.get("/api/about", sec_fetch_site="same-origin").status == 200


def test_forms_cannot_change_anything(client: Client, source: FakeSource) -> None:
    kind = "application/x-www-form-urlencoded"
    assert client.post("/api/drop", {"name": "pairs"}, content_type=kind).status == 415
    assert list(source.queries) == ["pairs"]


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/%2e%2e/app.py",
        "/static//etc/passwd",
        "/static/....//app.py",
        "/static/main.js%00.html",
    ],
)
def test_no_path_leads_out_of_the_page(client: Client, path: str) -> None:
    reply = client.get(path)
    assert reply.status == 404
    assert "import" not in reply.text


def test_long_messages_are_refused(client: Client) -> None:
    assert client.post("/api/add", {"sql": "x" * LONGEST_BODY}).status == 413
    lying = client.send("POST", "/api/add", "x", {"content-length": "x", "origin": client.origin})
    assert lying.status in {400, 413}


def test_long_messages_in_pieces_are_refused(client: Client) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=20)
    headers = {
        "cookie": client.cookie,
        "origin": client.origin,
        "content-type": "application/json",
        "transfer-encoding": "chunked",
    }
    pieces = (b"x" * 8192 for _ in range(2 + LONGEST_BODY // 8192))
    connection.request("POST", "/api/add", pieces, headers, encode_chunked=True)
    with contextlib.closing(connection), contextlib.closing(connection.getresponse()) as response:
        assert response.status == 413


def test_guessing_tokens_is_slowed_down_while_sessions_continue(console: Console) -> None:
    client = Client(console).login()
    guesser = Client(console)
    statuses = [guesser.get(f"/?token={number}").status for number in range(40)]
    assert statuses[0] == 401
    assert statuses.count(401) < 20
    assert statuses[-1] == 429
    token = console.url.partition("=")[2]
    assert guesser.get(f"/?token={token}").status == 429, "no guess is looked at any more"
    assert guesser.get("/metrics", authorization=f"Bearer {token}").status == 429
    assert client.get("/api/about").status == 200


def test_text_of_users_goes_out_as_json_only(client: Client, source: FakeSource) -> None:
    source.queries[EVIL] = EVIL
    reply = client.post("/api/add", {"sql": f"wrong {EVIL}", "name": EVIL})
    assert reply.headers["content-type"] == "application/json"
    assert reply.status == 422
    assert EVIL in reply.data["errors"][0]["fact"]
    assert EVIL not in client.get(f"/{EVIL.replace(' ', '%20')}").text
