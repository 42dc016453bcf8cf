"""The address that a console listens at."""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass

from muntin.errors import InputError

_HOST, _PORT = "127.0.0.1", 8321
DEFAULT = f"{_HOST}:{_PORT}"
"""The address without a choice; where the port is taken, any free one."""

_MOST = 65_535


@dataclass(frozen=True)
class Address:
    """A host and a port; port 0: any free one."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Return whether only this machine can connect."""
        if self.host.casefold() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def listen(self, *, any_port: bool = False) -> socket.socket:
        """Return a socket that listens there; with ``any_port``, at a free port if it is taken."""
        try:
            family, *_, place = socket.getaddrinfo(
                self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
        except (OSError, UnicodeError) as error:
            raise InputError(
                f"the console cannot listen at {self.host!r}: the name is unknown",
                hint="Write HOST:PORT, such as 127.0.0.1:8321",
            ) from error
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(place)
        except OSError as error:
            listening.close()
            if any_port and self.port:
                return Address(self.host, 0).listen()
            raise InputError(
                f"the console cannot listen at {self.host}:{self.port}: {error.strerror}",
                hint="Choose another port; port 0 takes any free one",
            ) from error
        listening.setblocking(False)
        return listening


def read_address(text: object) -> Address:
    """Return the address in a text ``HOST:PORT``, ``:PORT``, ``PORT`` or ``HOST``.

    >>> read_address("localhost:9000")
    Address(host='localhost', port=9000)
    >>> read_address("[::1]:9000"), read_address("9000")
    (Address(host='::1', port=9000), Address(host='127.0.0.1', port=9000))
    """
    if not isinstance(text, str) or not text.strip():
        raise _invalid(text)
    given = text.strip()
    if given.isdigit():
        given = f":{given}"
    if given.startswith("["):
        host, bracket, rest = given[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise _invalid(text)
        port = rest[1:]
    else:
        host, _, port = given.partition(":")
    if port and not (port.isascii() and port.isdigit() and int(port) <= _MOST):
        raise _invalid(text)
    return Address(host or _HOST, int(port) if port else _PORT)


def is_address(text: str) -> bool:
    """Return whether a text is meant as an address, also if it is wrong, and not as a file.

    >>> is_address("localhost:9000"), is_address("9000"), is_address("app.sql")
    (True, True, False)
    """
    return re.fullmatch(r"\d+|[^/]*:[^/]*", text) is not None


def _invalid(text: object) -> InputError:
    return InputError(
        f"the console cannot listen at {text!r}", hint="Write HOST:PORT, such as 127.0.0.1:8321"
    )
