"""A source of a console without an engine, and a client that can do what browsers cannot."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from muntin.console.server import Console
from muntin.errors import CatalogError, Place, SqlError

EVIL = "<img src=x onerror=\"document.title='hacked'\">"


@dataclass
class FakeSource:
    """Streams and queries that a test can change."""

    kind: str = "process"
    queries: dict[str, str] = field(default_factory=lambda: {"pairs": "SELECT 1"})
    taps: list[Callable[[pa.Table], None]] = field(default_factory=list)
    looked: int = 0
    gate: threading.Event | None = None

    def snapshot(self) -> dict[str, Any]:
        self.looked += 1
        if self.gate is not None:
            self.gate.wait(10)
        queries: list[dict[str, Any]] = [
            {"name": name, "rows_out": self.looked, "response": None, "windows": []}
            for name in self.queries
        ]
        return {
            "watermark": None,
            "streams": [{"name": "A", "rows_in": self.looked}],
            "queries": queries,
        }

    def plans(self) -> list[dict[str, Any]]:
        return []

    def details(self, name: str) -> dict[str, Any]:
        return {"name": name, "sql": self._sql(name)}

    def relations(self) -> list[dict[str, Any]]:
        return []

    def check(self, sql: str, name: str | None) -> None:
        if "wrong" in sql:
            fact = f"there is no column wrong of {name}"
            raise SqlError(fact, place=Place(2, 3), hint="Look again")

    def add(self, sql: str, name: str | None) -> str:
        self.check(sql, name)
        self.queries[name or "q1"] = sql
        return name or "q1"

    def drop(self, name: str) -> None:
        self._sql(name)
        del self.queries[name]

    def answer(self, name: str) -> pa.Table:
        return pa.table({"text": [self._sql(name)]})

    def tap(self, name: str, on_results: Callable[[pa.Table], None]) -> Callable[[], None]:
        self._sql(name)
        self.taps.append(on_results)
        return lambda: self.taps.remove(on_results)

    def _sql(self, name: str) -> str:
        if name not in self.queries:
            raise CatalogError(f"there is no query {name!r}", hint="Check the name")
        return self.queries[name]


@dataclass
class Reply:
    """A response that was read."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def data(self) -> Any:
        return json.loads(self.text)


@dataclass
class Client:
    """Sends requests to a console, with the session of its cookie once it has logged in."""

    console: Console
    cookie: str = ""

    @property
    def port(self) -> int:
        port = urlsplit(self.console.url).port
        assert port is not None
        return port

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def login(self) -> Client:
        reply = self.get(self.console.url.removeprefix(f"{self.origin}"))
        assert reply.status == 303, reply
        self.cookie = reply.headers["set-cookie"].partition(";")[0]
        return self

    def get(self, path: str, **headers: str) -> Reply:
        return self.send("GET", path, None, headers)

    def post(self, path: str, data: object, **headers: str) -> Reply:
        given = {"content-type": "application/json", "origin": self.origin, **headers}
        return self.send("POST", path, json.dumps(data), given)

    def send(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body, self._with_cookie(headers))
            response = connection.getresponse()
            named = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, named, response.read().decode())
        finally:
            connection.close()

    def events(self, path: str = "/api/events") -> Generator[tuple[str, Any]]:
        """Yield events with their data, until closed."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request("GET", path, None, self._with_cookie({}))
        response = connection.getresponse()
        try:
            assert response.status == 200, response.read()
            kind = ""
            while line := response.readline().decode().strip("\n"):
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    yield kind, json.loads(line.removeprefix("data: "))
                    response.readline()
                else:
                    response.readline()
        finally:
            response.close()
            connection.close()

    def _with_cookie(self, headers: dict[str, str]) -> dict[str, str]:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return {"cookie": self.cookie, **given} if self.cookie else given
