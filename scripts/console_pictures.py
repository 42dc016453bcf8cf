"""Draw the pictures of the web console in the documentation, from an engine over made-up sensors.

Run ``make test-console`` once before, which installs the browser:
``.venv/bin/python scripts/console_pictures.py``.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from pathlib import Path
from typing import Any

import muntin

ROOT = Path(__file__).resolve().parents[1]
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
JOIN = (
    "SELECT t.sensor, t.celsius, h.percent\nFROM temperature t, humidity h\n"
    "WHERE t.sensor = h.sensor\nWINDOW {} SECONDS"
)
COUNTS = (
    "SELECT t.sensor, COUNT(*) AS n, ROUND(AVG(t.celsius), 1) AS mean\n"
    "FROM temperature t, humidity h\nWHERE t.sensor = h.sensor\nGROUP BY t.sensor WINDOW 5 SECONDS"
)
SMOKE = (
    "SELECT t.sensor, s.density\nFROM temperature t, humidity h, smoke s\n"
    "WHERE t.sensor = h.sensor AND h.sensor = s.sensor AND s.density > 0.2\nWINDOW 3 SECONDS"
)
SENSORS = {"temperature": "celsius", "humidity": "percent", "smoke": "density"}


def make_engine() -> muntin.Engine:
    """Return an engine with three streams and queries over them."""
    engine = muntin.Engine()
    for stream, value in SENSORS.items():
        columns = {"sensor": "bigint", value: "double", "ts": "timestamp"}
        engine.stream(stream, columns, time="ts")
    for seconds in (2, 5, 10):
        engine.query(JOIN.format(seconds), name=f"muggy_{seconds}s")
    engine.query(COUNTS, name="per_sensor")
    engine.query(SMOKE, name="risks")
    return engine


def feed(engine: muntin.Engine, stop: threading.Event) -> None:
    """Push readings until stopped."""
    draw = random.Random(7)  # noqa: S311 (readings that anybody may guess)
    while not stop.wait(0.1):
        now = time.time_ns() // 1000
        for stream in SENSORS:
            most = 0.3 if stream == "smoke" else 40.0
            rows = [(draw.randrange(20), round(draw.random() * most, 2), now + i) for i in range(6)]
            engine.push(stream, rows)


def draw(page: Any, view: str, name: str) -> None:
    """Write a picture of a view, once it has been live for a while."""
    page.evaluate("view => { location.hash = view }", view)
    time.sleep(12)
    path = ROOT / "docs" / f"{name}.png"
    page.screenshot(path=str(path))
    print(path, f"{path.stat().st_size:,} bytes")


def main() -> None:
    """Draw the plan on a wide light screen, and results on a small dark one."""
    sys.path.insert(0, str(ROOT / ".console" / "python"))
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 (in .console)

    engine, stop = make_engine(), threading.Event()
    engine.start()
    threading.Thread(target=feed, args=(engine, stop), daemon=True).start()
    pictures = (
        ("light", 1280, 760, "#plan", "console-plan"),
        ("dark", 390, 760, "#query=per_sensor", "console-results"),
    )
    with engine.console("127.0.0.1:0") as console, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        for scheme, width, height, view, name in pictures:
            size = {"width": width, "height": height}
            page = browser.new_context(color_scheme=scheme, viewport=size).new_page()
            page.goto(console.url)
            page.wait_for_selector("main section")
            draw(page, view, name)
        browser.close()
    stop.set()
    engine.stop()


if __name__ == "__main__":
    main()
