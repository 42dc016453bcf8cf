"""The gate of the console: every request passes it, and every response gets its headers.

In this order: the Host header, the origin, the session or the token, the size. What is refused gets
a short text that repeats nothing of the request.
"""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muntin.console.access import Access, is_from_elsewhere

LONGEST_BODY = 64 * 1024
"""Bytes of a request's body; a query is text that somebody typed."""

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_LOGIN = (
    "This console needs the address that the program printed when it started, with the token.\n"
    "If you followed a link to here, load the page again.\n"
)


class TooLargeError(Exception):
    """A body longer than :data:`LONGEST_BODY`; raised to who reads it."""


class Guard:
    """Passes requests on to an application if they may."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        assert scope["type"] == "http", "the server has no WebSockets"

        async def guarded_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, guarded_send)
            return
        await self._app(scope, _limited(receive), guarded_send)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the response to a request that may not pass, or that logs in."""
        headers, method = Headers(scope=scope), scope["method"]
        if not self._access.knows_host(headers.get("host")):
            return PlainTextResponse("The Host header names another host.\n", 421)
        if scope["path"] == "/" and method == "GET" and scope["query_string"]:
            return self._login(scope["query_string"])
        if is_from_elsewhere(headers, changes=method not in {"GET", "HEAD"}):
            return PlainTextResponse("The request comes from another origin.\n", 403)
        if not self._is_known(headers):
            return self._too_many() or PlainTextResponse(_LOGIN, 401)
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > LONGEST_BODY:
            return PlainTextResponse("The request is too long.\n", 413)
        return None

    def _login(self, query: bytes) -> Response:
        """Exchange the token of an address for a session."""
        given = parse_qs(query.decode("latin-1"), max_num_fields=5).get("token", [""])[0]
        limited = self._too_many()
        if limited is not None:
            return limited
        if not self._access.is_token(given):
            return PlainTextResponse(_LOGIN, 401)
        response = RedirectResponse("/", 303)
        response.headers["set-cookie"] = self._access.set_cookie()
        return response

    def _is_known(self, headers: Headers) -> bool:
        access = self._access
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.casefold() == "bearer":
            return access.limit.is_open() and access.is_token(token.strip())
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(access.cookie)
        except CookieError:
            return False
        return found is not None and access.is_session(found.value)

    def _too_many(self) -> Response | None:
        limit = self._access.limit
        if limit.is_open():
            return None
        response = PlainTextResponse("Too many wrong tokens; wait a little.\n", 429)
        response.headers["retry-after"] = str(limit.wait())
        return response


def _limited(receive: Receive) -> Receive:
    """Return a source of messages that raises when their bodies are too long together."""
    taken = 0

    async def limited() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > LONGEST_BODY:
            raise TooLargeError
        return message

    return limited
