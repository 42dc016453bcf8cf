from __future__ import annotations

import pytest

from muntin.console.address import Address, read_address
from muntin.errors import InputError


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:80", "127.0.0.1", 80),
        (":0", "127.0.0.1", 0),
        ("localhost", "localhost", 8321),
        ("[::1]", "::1", 8321),
    ],
)
def test_parts_may_be_left_out(text: str, host: str, port: int) -> None:
    assert read_address(text) == Address(host, port)


@pytest.mark.parametrize("text", ["", "a:b", "a:70000", "[::1", "[::1]x", None, 80, "a:-1", "a:²"])
def test_what_is_no_address_is_refused(text: object) -> None:
    with pytest.raises(InputError, match="Write HOST:PORT"):
        read_address(text)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "LocalHost"])
def test_loopback_is_known(host: str) -> None:
    assert Address(host, 1).is_loopback
    assert not Address("0.0.0.0", 1).is_loopback
    assert not Address("example.org", 1).is_loopback


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(InputError, match="the name is unknown"):
        Address("name.invalid", 1).listen()
