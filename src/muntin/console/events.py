"""Server-sent events to one browser, with a deadline for every piece that it has to take."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.types import Receive, Scope, Send

from muntin.console.hub import Hub, Viewer

_PATIENCE = 30.0
"""Seconds in which a browser has to take a piece; after that its connection is closed."""
_HEARTBEAT = 10.0
"""Seconds after which something is sent, so that a connection that has gone is noticed."""


class EventStream:
    """The response to a browser that looks: events until it leaves."""

    def __init__(self, hub: Hub, query: str | None) -> None:
        self._hub = hub
        self._viewer = Viewer(query)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the browser disconnects or does not take them."""
        del scope
        hub, viewer = self._hub, self._viewer
        hub.join(viewer)
        tasks = [
            asyncio.ensure_future(each)
            for each in (_left(receive), hub.closed.wait(), self._send(send))
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            hub.leave(viewer)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if hub.closed.is_set():
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send(self, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async for piece in self._pieces():
            async with asyncio.timeout(_PATIENCE):
                await send({"type": "http.response.body", "body": piece, "more_body": True})

    async def _pieces(self) -> AsyncIterator[bytes]:
        hub = self._hub
        yield b"retry: 2000\n\n"
        yield piece_of("history", {"points": list(hub.history)})
        if hub.latest is not None:
            yield piece_of("snapshot", {**hub.latest, "missed": 0})
        obstacle = await self._viewer.begin(hub)
        if obstacle:
            yield piece_of("obstacle", {"query": self._viewer.query, "text": obstacle})
        while True:
            events = await self._viewer.next(_HEARTBEAT)
            yield b"".join(piece_of(*event) for event in events) or b": nothing new\n\n"


def piece_of(event: str, data: dict[str, Any]) -> bytes:
    r"""Return an event as it is sent.

    >>> piece_of("results", {"rows": []})
    b'event: results\ndata: {"rows":[]}\n\n'
    """
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return f"event: {event}\ndata: {text}\n\n".encode()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
