"""A console of a fake engine, and a client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from muntin.console.app import ConsoleOptions
from muntin.console.server import Console
from muntin.console.source import TextPage
from tests.console_client import Client, FakeSource


@pytest.fixture
def source() -> FakeSource:
    return FakeSource()


@pytest.fixture
def console(source: FakeSource) -> Iterator[Console]:
    pages = {"/metrics": TextPage("text/plain; version=0.0.4", lambda: "up 1\n")}
    with Console(source, "127.0.0.1:0", ConsoleOptions(pages=pages, interval=0.05)) as opened:
        yield opened


@pytest.fixture
def client(console: Console) -> Client:
    return Client(console).login()
