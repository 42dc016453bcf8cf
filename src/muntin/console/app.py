"""What the console answers: its page, events, and changes of queries.

Everything a user typed goes out as JSON, and the page shows it as text.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, TypeVar, cast

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from muntin.console.events import EventStream
from muntin.console.guard import TooLargeError
from muntin.console.hub import INTERVAL, BusyError, Hub
from muntin.console.rows import newest, plain, rows_of, shown
from muntin.console.source import ConsoleSource, TextPage, TextPages
from muntin.errors import MuntinError, SqlError

MOST_VIEWERS = 32
"""Browsers that get events at the same time."""
_MOST_ROWS = 500
_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}

Found = TypeVar("Found")


@dataclass(frozen=True)
class ConsoleOptions:
    """``read_only``: no query can be added or dropped; ``pages`` are served beside the console."""

    read_only: bool = False
    pages: TextPages = field(default_factory=dict)
    interval: float = INTERVAL


class ConsoleApp:
    """The routes of a console; one change of queries at a time."""

    def __init__(self, source: ConsoleSource, options: ConsoleOptions) -> None:
        self._source = source
        self._options = options
        self.hub = Hub(source, interval=options.interval)
        self._files = static_files()
        self._changing = asyncio.Lock()

    def starlette(self) -> Starlette:
        """Return the application."""
        routes = [
            Route("/", self._index),
            Route("/static/{name}", self._static),
            Route("/api/about", self._about),
            Route("/api/events", self._events),
            Route("/api/query", self._query),
            Route("/api/answer", self._answer),
            Route("/api/check", self._check, methods=["POST"]),
            Route("/api/add", self._add, methods=["POST"]),
            Route("/api/drop", self._drop, methods=["POST"]),
        ]
        routes += [Route(path, self._text(page)) for path, page in self._options.pages.items()]
        return Starlette(routes=routes, lifespan=self._lifespan)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        del app
        task = asyncio.create_task(self.hub.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    # -- pages -------------------------------------------------------------------------------------

    async def _index(self, request: Request) -> Response:
        del request
        return self._file("index.html")

    async def _static(self, request: Request) -> Response:
        return self._file(request.path_params["name"])

    def _file(self, name: str) -> Response:
        """Return a file that was read at the start: a name that is not among them is no path."""
        content = self._files.get(name)
        if content is None:
            return PlainTextResponse("There is no such page.\n", 404)
        return Response(content, media_type=_TYPES[name.rpartition(".")[2]])

    def _text(self, page: TextPage) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            del request
            try:
                content = await self.hub.ask(page.make)
            except BusyError:
                return PlainTextResponse("The engine has not answered in time.\n", 503)
            return Response(content, media_type=page.content_type)

        return answer

    # -- looking -----------------------------------------------------------------------------------

    async def _about(self, request: Request) -> Response:
        del request
        return await self._reply(
            lambda: {
                "kind": self._source.kind,
                "read_only": self._options.read_only,
                "relations": self._source.relations(),
            }
        )

    async def _events(self, request: Request) -> Response:
        if len(self.hub.viewers) >= MOST_VIEWERS:
            return _refused("too many browsers look at this engine", 503)
        stream = EventStream(self.hub, request.query_params.get("query"))
        return cast("Response", stream)

    async def _query(self, request: Request) -> Response:
        name = request.query_params.get("name", "")
        return await self._reply(lambda: self._source.details(name))

    async def _answer(self, request: Request) -> Response:
        name = request.query_params.get("name", "")

        def answer() -> dict[str, Any]:
            table = self._source.answer(name)
            return {
                "columns": table.column_names,
                "rows": rows_of(newest(table, _MOST_ROWS)),
                "count": len(table),
            }

        return await self._reply(answer)

    # -- changes -----------------------------------------------------------------------------------

    async def _check(self, request: Request) -> Response:
        return await self._change(request, self._mistakes)

    def _mistakes(self, sql: str, name: str | None) -> list[dict[str, Any]]:
        try:
            self._source.check(sql, name)
        except MuntinError as error:
            return [error_of(error)]
        return []

    async def _add(self, request: Request) -> Response:
        return await self._change(request, self._source.add)

    async def _drop(self, request: Request) -> Response:
        return await self._change(request, lambda _, name: self._source.drop(name or ""))

    async def _change(
        self, request: Request, change: Callable[[str, str | None], object]
    ) -> Response:
        """Answer a request that changes the engine, or would: ``sql`` and ``name`` as JSON."""
        if self._options.read_only:
            return _refused("this console is read-only", 403)
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return _refused("the request must be JSON", 415)
        try:
            given = json.loads(await request.body())
            sql, name = given.get("sql", ""), given.get("name")
        except TooLargeError:
            return _refused("the request is too long", 413)
        except (ValueError, AttributeError, RecursionError):
            return _refused("the request is not a JSON object", 400)
        if not isinstance(sql, str) or not isinstance(name, str | None):
            return _refused("sql and name must be text", 400)
        async with self._changing:
            return await self._reply(lambda: {"done": change(sql, name or None)})

    async def _reply(self, call: Callable[[], dict[str, Any]]) -> Response:
        """Answer with what the engine returns, or with its error."""
        try:
            return JSONResponse(plain(await self.hub.ask(call)))
        except MuntinError as error:
            return JSONResponse({"errors": [error_of(error)]}, 422)
        except BusyError:
            return _refused("the engine has not answered in time", 503)


def static_files() -> dict[str, bytes]:
    """Return the files of the page by name."""
    folder = resources.files("muntin.console") / "static"
    return {
        file.name: file.read_bytes()
        for file in folder.iterdir()
        if file.name.rpartition(".")[2] in _TYPES
    }


def error_of(error: MuntinError) -> dict[str, Any]:
    """Return an error for the page, with its place in the text if it has one."""
    found: dict[str, Any] = {"fact": error.fact, "hint": error.hint}
    if isinstance(error, SqlError):
        found |= {"line": error.place.line, "column": error.place.column}
    return found


def _refused(fact: str, status: int) -> Response:
    return JSONResponse({"errors": [{"fact": shown(fact), "hint": ""}]}, status)
