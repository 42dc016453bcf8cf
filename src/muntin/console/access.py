"""Who may use a console: its token, the session in a cookie, and what requests must look like.

The address that is printed contains a token. A browser exchanges it for a session in a cookie that
scripts cannot read and other sites cannot send; programs send the token as ``Authorization:
Bearer``. Both have 256 random bits. Wrong ones are counted, and past a limit answered without a
look.

A page of another site could still make the browser send requests: by a name that it resolves to
this machine (the Host header tells), or from another port of this machine, which browsers take for
the same site (Origin and Sec-Fetch-Site tell).
"""

from __future__ import annotations

import ipaddress
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

_BURST = 10
_PER_SECOND = 0.5


@dataclass
class GuessLimit:
    """Counts wrong tokens: ``burst`` at once, then ``per_second`` more."""

    burst: float = _BURST
    per_second: float = _PER_SECOND
    clock: Callable[[], float] = time.monotonic
    _left: float = field(init=False)
    _seen: float = field(init=False)

    def __post_init__(self) -> None:
        self._left, self._seen = self.burst, self.clock()

    def _refill(self) -> None:
        now = self.clock()
        self._left = min(self.burst, self._left + (now - self._seen) * self.per_second)
        self._seen = now

    def is_open(self) -> bool:
        """Return whether another guess may be looked at."""
        self._refill()
        return self._left >= 1

    def note(self) -> None:
        """Count a wrong guess."""
        self._refill()
        self._left = max(self._left - 1, 0.0)

    def wait(self) -> int:
        """Return the seconds until another guess may be looked at."""
        return max(1, round((1 - self._left) / self.per_second))


class Access:
    """The token and the session of one console, for the port and the host that it listens at."""

    def __init__(self, host: str, port: int, limit: GuessLimit | None = None) -> None:
        self.token = secrets.token_urlsafe(32)
        self.limit = limit or GuessLimit()
        self._session = secrets.token_urlsafe(32)
        self._host = host.casefold()
        # Cookies are the same for all ports of a host, so the name tells consoles apart.
        self.cookie = f"muntin_console_{port}"

    def set_cookie(self) -> str:
        """Return the header that hands out the session."""
        return f"{self.cookie}={self._session}; HttpOnly; SameSite=Strict; Path=/"

    def is_token(self, given: str) -> bool:
        """Return whether a token is the right one; count it if it is not."""
        return self._is(self.token, given)

    def is_session(self, given: str) -> bool:
        """Return whether a session is the right one; count it if it is not."""
        return self._is(self._session, given)

    def _is(self, right: str, given: str) -> bool:
        if secrets.compare_digest(right.encode(), given.encode("utf-8", "replace")):
            return True
        self.limit.note()
        return False

    def knows_host(self, header: str | None) -> bool:
        """Return whether a Host header names this machine, and not what a site has made of it.

        An address is never the result of a name that resolves to here, ``localhost`` neither.
        """
        if not header:
            return False
        name = header[1:].partition("]")[0] if header.startswith("[") else header.partition(":")[0]
        if name.casefold() in {"localhost", self._host}:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def is_from_elsewhere(headers: Mapping[str, str], *, changes: bool) -> bool:
    """Return whether a page of another origin made a request.

    Requests that change something must come with an Origin, or from a program without any.

    >>> is_from_elsewhere({"host": "127.0.0.1:8321", "origin": "http://evil.example"}, changes=True)
    True
    """
    if headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        return True
    origin = headers.get("origin")
    if origin is None:
        return changes and "authorization" not in headers
    return origin != f"http://{headers.get('host', '')}"
