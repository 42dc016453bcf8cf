"""Live views refresh themselves, and end at the deadline or with their query."""

from __future__ import annotations

import sys
import threading
import time
import types
import xml.etree.ElementTree as ET
from collections.abc import Callable
from itertools import pairwise

import pytest

import muntin
from muntin.engine.live_html import POINTS, Point, chart_svg
from muntin.engine.live_view import LiveView

SECOND = 1_000_000
LONG = 60.0
"""Seconds in which even a busy machine does what is waited for."""


class Screen:
    """Stands for a notebook: keeps everything that was shown, and when."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.at: list[float] = []
        self._changed = threading.Condition()

    def display(self, html: str) -> Callable[[str], None]:
        self.update(html)
        return self.update

    def update(self, html: str) -> None:
        ET.fromstring(f"<div>{html}</div>")  # well-formed
        with self._changed:
            self.shown.append(html)
            self.at.append(time.monotonic())
            self._changed.notify_all()

    def wait_for(self, text: str) -> str:
        """Return the last thing shown once it contains a text."""
        with self._changed:
            assert self._changed.wait_for(lambda: text in self.shown[-1], LONG), self.shown[-1]
            return self.shown[-1]


def new_engine() -> tuple[muntin.Engine, muntin.StandingQuery]:
    engine = muntin.Engine(clock=None)
    engine.stream("A", {"k": "bigint", "s": "varchar", "ts": "timestamp"}, time="ts")
    query = engine.query("SELECT k, s FROM A WINDOW 1 MINUTE EMIT CHANGES", name="<q>")
    return engine, query


def test_a_table_follows_the_answer_until_it_is_stopped() -> None:
    engine, query = new_engine()
    screen = Screen()
    view = query.live(LONG, 0.1, view="table", display=screen.display)
    engine.push("A", [(1, "<b>", 0)])
    engine.advance(1)
    assert "&lt;b&gt;" in screen.wait_for("&lt;b&gt;")
    assert "&lt;q&gt;" in screen.shown[0]
    engine.push("A", [(number, "x", SECOND) for number in range(25)])
    engine.advance(SECOND)
    screen.wait_for("6 more rows")
    assert view.is_running
    view.stop()
    assert view.wait(0)
    assert "stopped" in screen.shown[-1]
    assert len(query.poll()) == 26, "a view takes no results away"


def test_a_chart_shows_results_per_second() -> None:
    engine, query = new_engine()
    screen = Screen()
    view = query.live(LONG, 0.1, display=screen.display)
    assert "no results yet" in screen.shown[0]
    screen.wait_for("<polyline")
    engine.push("A", [(number, "x", 0) for number in range(1_000)])
    engine.advance(1)
    screen.wait_for(">1000<")
    view.stop()
    assert "at most 0 results" not in screen.shown[-1]


def test_a_view_ends_when_its_query_is_dropped() -> None:
    engine, query = new_engine()
    screen = Screen()
    view = query.live(LONG, 0.1, display=screen.display)
    engine.drop("<q>")
    assert view.wait(LONG)
    assert "ended: there is no query" in screen.shown[-1]


def test_a_view_ends_at_its_deadline() -> None:
    _, query = new_engine()
    screen = Screen()
    view = query.live(0.3, 0.1, display=screen.display)
    assert view.wait(LONG)
    assert "ended after 0.3 seconds" in screen.shown[-1]
    assert screen.at[-1] - screen.at[0] >= 0.25


def test_a_view_ends_when_its_query_is_suspended() -> None:
    engine, _ = new_engine()

    def failing(values: object) -> object:
        raise ValueError(values)

    engine.function("f", failing, {"x": "bigint"}, "bigint")
    query = engine.query("SELECT f(k) AS k FROM A WINDOW 1 SECOND", name="f")
    screen = Screen()
    view = query.live(LONG, 0.1, display=screen.display)
    engine.push("A", [(1, "x", 0)])
    engine.advance(SECOND)
    assert view.wait(LONG)
    assert "ValueError" in screen.shown[-1]


def test_updates_are_no_more_frequent_than_asked_for() -> None:
    _, query = new_engine()
    screen = Screen()
    view = query.live(LONG, 0.2, display=screen.display)
    until = time.monotonic() + LONG
    while len(screen.at) < 6:
        assert time.monotonic() < until
        time.sleep(0.05)
    view.stop()
    pauses = [after - before for before, after in pairwise(screen.at[1:-1])]
    assert len(pauses) >= 3
    assert min(pauses) > 0.19


def test_a_notebook_that_is_gone_ends_the_view() -> None:
    _, query = new_engine()

    def display(_: str) -> Callable[[str], None]:
        def update(_: str) -> None:
            raise OSError("the kernel has died")

        return update

    view = query.live(LONG, 0.1, display=display)
    assert view.wait(LONG)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seconds": -1}, "seconds cannot be -1"),
        ({"seconds": float("inf")}, "seconds cannot be inf"),
        ({"refresh": 0.01}, "refresh cannot be 0.01"),
        ({"view": "film"}, "It is 'chart' or 'table'"),
    ],
)
def test_options_are_checked(options: dict[str, object], message: str) -> None:
    _, query = new_engine()
    with pytest.raises(muntin.InputError, match=message):
        query.live(**options)  # type: ignore[arg-type]


def fake_ipython(monkeypatch: pytest.MonkeyPatch, *, runs: bool) -> list[str]:
    """Install a module in the place of IPython.display, and return what it shows."""
    shown: list[str] = []
    module = types.ModuleType("IPython.display")

    class Handle:
        def update(self, html: str) -> None:
            shown.append(html)

    def display(html: str, *, display_id: bool) -> Handle | None:
        assert display_id
        shown.append(html)
        return Handle() if runs else None

    module.HTML = str  # type: ignore[attr-defined]
    module.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return shown


def test_a_notebook_shows_the_view_and_its_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = fake_ipython(monkeypatch, runs=True)
    _, query = new_engine()
    view: LiveView = query.live(0.3, 0.1)
    assert view.wait(LONG)
    assert len(shown) >= 2
    assert "ended after" in shown[-1]


def test_without_a_notebook_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    _, query = new_engine()
    fake_ipython(monkeypatch, runs=False)
    with pytest.raises(muntin.MuntinError, match="no notebook runs"):
        query.live()
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    with pytest.raises(muntin.MuntinError, match="IPython is not installed"):
        query.live()
    assert not [each for each in threading.enumerate() if each.name == "muntin-live-<q>"]


def test_a_chart_stays_small_and_inside_its_frame() -> None:
    svg = chart_svg([Point(at, at % 7) for at in range(POINTS)])
    line = next(part.get("points") for part in ET.fromstring(svg) if part.tag.endswith("polyline"))
    assert line is not None
    places = [tuple(map(float, pair.split(","))) for pair in line.split()]
    assert len(places) == POINTS
    assert all(0 <= across <= 640 and 24 <= up <= 136 for across, up in places)
    assert len(svg) < 8_000
