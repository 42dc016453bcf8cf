"""The server of a console: a thread with an event loop, and a stop with a deadline."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from muntin.console.access import Access
from muntin.console.address import DEFAULT, read_address
from muntin.console.app import ConsoleApp, ConsoleOptions
from muntin.console.guard import Guard
from muntin.console.source import ConsoleSource
from muntin.errors import RunError

_log = logging.getLogger("muntin")

MOST_CONNECTIONS = 128
"""Open connections; more are closed at once, so that they cannot use up the process's files."""
_ARRIVAL = 10.0
"""Seconds in which a request has to arrive."""
_START = 10.0

# uvicorn's own messages would go to stderr where a program has no handlers.
logging.getLogger("uvicorn").addHandler(logging.NullHandler())


class _Protocol(H11Protocol):
    """HTTP with a limit on connections, and on the time that a request may take to arrive."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
            return
        self._late = self.loop.call_later(_ARRIVAL, transport.abort)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state not in {h11.IDLE, h11.SEND_BODY}:
            self._cancel()
        elif self._late is None:
            self._late = self.loop.call_later(_ARRIVAL, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel()
        super().connection_lost(exc)

    def _cancel(self) -> None:
        timer, self._late = self._late, None
        if timer is not None:
            timer.cancel()


class _Server(uvicorn.Server):
    """A server that says when it answers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answers = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.answers.set()


class Console:
    """A console that runs, until :meth:`stop` or the end of the process.

    ``url`` is its address with the token: whoever has it may use the console.
    """

    def __init__(
        self,
        source: ConsoleSource,
        address: str | None = None,
        options: ConsoleOptions | None = None,
    ) -> None:
        chosen = read_address(DEFAULT if address is None else address)
        self._listening = chosen.listen(any_port=address is None)
        port = self._listening.getsockname()[1]
        self._access = Access(chosen.host, port)
        self.app = ConsoleApp(source, options or ConsoleOptions())
        host = f"[{chosen.host}]" if ":" in chosen.host else chosen.host
        self.address = f"http://{host}:{port}/"
        self.url = f"{self.address}?token={self._access.token}"
        if not chosen.is_loopback:
            _log.warning(
                "the console listens at %s, where other machines can connect without encryption",
                chosen.host,
            )
        config = uvicorn.Config(
            Guard(self.app.starlette(), self._access),
            http=_Protocol,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            h11_max_incomplete_event_size=16 * 1024,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=1,
            backlog=256,
        )
        self._server = _Server(config)
        self._thread = threading.Thread(target=self._run, name="muntin-console", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread.start()
        if not self._server.answers.wait(_START) or not self._server.started:
            self.stop()
            raise RunError(
                "the console has not started in time",
                hint="The log has the reason, if there is one",
            )

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except (Exception, SystemExit):  # noqa: BLE001 (logged; uvicorn exits where it cannot start)
            _log.exception("the console has failed; the engine continues")
        finally:
            self._listening.close()
            self._server.answers.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._server.serve(sockets=[self._listening])

    @property
    def is_running(self) -> bool:
        """Return whether it answers."""
        return self._thread.is_alive()

    def stop(self, timeout: float = 5.0) -> None:
        """Close all connections and end the thread, within ``timeout`` seconds."""
        self._server.should_exit = True
        with suppress(RuntimeError):  # the loop has ended
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self.app.hub.close)
        self._thread.join(timeout)
        if self._thread.is_alive():
            _log.warning("the console has not stopped within %g seconds", timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Console({self.address!r})"

    def _repr_html_(self) -> str:
        return f'<a href="{self.url}" target="_blank" rel="noopener">{self.address}</a>'
