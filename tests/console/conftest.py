"""A browser, and an engine whose console it shows.

These tests run with ``-m console`` only, after ``scripts/console.sh``: ``make test-console`` does
both.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import muntin

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page

    from muntin.console.server import Console

FOLDER = Path(__file__).resolve().parents[2] / ".console"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 60_000
"""Milliseconds for what should take none: machines that run tests are busy."""
SENSOR_JOIN = (
    "SELECT t.sensor, t.celsius, h.percent FROM temperature t, humidity h "
    "WHERE t.sensor = h.sensor WINDOW {} SECONDS"
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of this folder unless they are asked for."""
    if "console" not in str(config.getoption("markexpr")):
        left_out = [item for item in items if item.get_closest_marker("console")]
        items[:] = [item for item in items if not item.get_closest_marker("console")]
        config.hook.pytest_deselected(items=left_out)


@dataclass
class Feeder:
    """Pushes readings of two streams until stopped; ``rows`` per stream, ten times a second."""

    engine: muntin.Engine
    rows: int = 3
    slowest: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._push, daemon=True)
        self._thread.start()

    def _push(self) -> None:
        number = 0
        while not self._stop.wait(0.1):
            now = time.time_ns() // 1000
            for stream in ("temperature", "humidity"):
                readings = [((number + i) % 7, 20.0 + i % 9, now + i) for i in range(self.rows)]
                began = time.monotonic()
                self.engine.push(stream, readings)
                self.slowest = max(self.slowest, time.monotonic() - began)
            number += 1

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(30)


@dataclass
class Site:
    """A console that is open, with its engine and what feeds it."""

    engine: muntin.Engine
    console: Console
    feeder: Feeder


@pytest.fixture
def site() -> Iterator[Site]:
    engine = muntin.Engine()
    for name, value in (("temperature", "celsius"), ("humidity", "percent")):
        engine.stream(name, {"sensor": "bigint", value: "double", "ts": "timestamp"}, time="ts")
    engine.query(SENSOR_JOIN.format(2), name="short")
    engine.query(SENSOR_JOIN.format(8), name="long")
    engine.query(
        "SELECT t.sensor, COUNT(*) AS n FROM temperature t, humidity h "
        "WHERE t.sensor = h.sensor GROUP BY t.sensor WINDOW 2 SECONDS",
        name="counts",
    )
    engine.start()
    feeder = Feeder(engine)
    with engine.console("127.0.0.1:0") as console:
        yield Site(engine, console, feeder)
    feeder.stop()
    engine.stop()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    sys.path.insert(0, str(FOLDER / "python"))
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 (in .console)

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", headless=True, args=FLAGS
        )
        yield opened
        opened.close()


class Visit:
    """Pages of a test, with everything that they complained about."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[Any] = []
        self.complaints: list[str] = []
        self.requests: list[str] = []

    def open(self, url: str, *, width: int = 1280, scheme: Any = "light") -> Page:
        context = self._browser.new_context(
            color_scheme=scheme, viewport={"width": width, "height": 800}
        )
        context.set_default_timeout(PATIENCE)
        self._contexts.append(context)
        page = context.new_page()
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(url)
        page.wait_for_selector("main section")
        return page

    def _note(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.complaints.append(message.text)

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    opened = Visit(browser)
    yield opened
    opened.close()
    assert not opened.complaints
