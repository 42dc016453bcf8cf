"""A query is typed, corrected, added, watched and dropped; and nothing makes the page freeze."""

from __future__ import annotations

import time

import pytest

import muntin
from tests.console.conftest import Site, Visit
from tests.console_client import EVIL

pytestmark = pytest.mark.console

GAPS = """() => {
  let last = performance.now();
  window.longest = 0;
  const frame = (now) => {
    window.longest = Math.max(window.longest, now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}"""


def test_a_query_is_mistyped_corrected_added_watched_and_dropped(site: Site, visit: Visit) -> None:
    page = visit.open(site.console.url)
    page.click("#nav a:text-is('Queries')")
    page.click("a:text-is('New query')")
    page.fill("#query-name", "warm")
    page.fill("#query-sql", "SELECT sensor,\n  celcius FROM temperature\nWINDOW 5 SECONDS")
    page.wait_for_selector("#query-errors li")
    message = page.inner_text("#query-errors")
    assert "Line 2, column 3" in message
    assert "Did you mean 'celsius'?" in message
    assert page.locator("#query-marks .wrong").all_inner_texts() == ["celcius"]
    page.fill("#query-sql", "SELECT sensor,\n  celsius FROM temperature\nWINDOW 5 SECONDS")
    page.wait_for_selector("#query-errors .right")
    assert page.locator("#query-marks .wrong").count() == 0
    page.click("button:text-is('Add query')")
    page.wait_for_selector("h2:text-is('warm')")
    page.wait_for_selector("tr.insert")
    assert [query.name for query in site.engine.queries()][-1] == "warm"
    page.click("button:text-is('Drop query')")
    page.click("dialog button:text-is('Cancel')")
    assert [query.name for query in site.engine.queries()][-1] == "warm"
    page.click("button:text-is('Drop query')")
    page.click("dialog button:text-is('Drop')")
    page.wait_for_function("() => location.hash === '#queries'")
    assert "warm" not in [query.name for query in site.engine.queries()]
    page.wait_for_function(
        "() => ![...document.querySelectorAll('main th')].some(each => each.textContent === 'warm')"
    )


def test_a_query_that_cannot_be_added_says_why(site: Site, visit: Visit) -> None:
    page = visit.open(f"{site.console.url}")
    page.keyboard.press("n")
    page.fill("#query-name", "short")
    page.fill("#query-sql", "SELECT sensor FROM temperature WINDOW 5 SECONDS")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#query-errors li")
    assert "the name short is taken" in page.inner_text("#query-errors")
    assert len(site.engine.queries()) == 3
    visit.complaints.clear()  # Chromium notes the status of the refusal


def test_a_thousand_results_per_second_freeze_neither_page_nor_engine(
    site: Site, visit: Visit
) -> None:
    site.engine.query("SELECT sensor, celsius FROM temperature WINDOW 1 SECOND", name="all")
    page = visit.open(f"{site.console.url}")
    page.evaluate("location.hash = '#query=all'")
    page.wait_for_selector("tr.insert")
    site.feeder.rows = 100
    page.evaluate(GAPS)
    began = time.monotonic()
    before = site.engine.handle("all").stats()["rows_out"]
    page.wait_for_timeout(15_000)
    after = site.engine.handle("all").stats()["rows_out"]
    assert isinstance(before, int)
    assert isinstance(after, int)
    rate = (after - before) / (time.monotonic() - began)
    assert rate > 300, "the machine is busy, but the engine is not held up"
    assert page.evaluate("longest") < 5_000
    assert page.locator(".results tbody tr").count() <= 200
    page.click("nav.tabs a:text-is('SQL')")
    page.wait_for_selector("main pre")


def test_markup_in_names_and_data_stays_text(visit: Visit) -> None:
    engine = muntin.Engine()
    engine.stream("A", {"text": "varchar", "ts": "timestamp"}, time="ts")
    engine.query("SELECT text FROM A WINDOW 1 MINUTE", name=EVIL)
    with engine.console("127.0.0.1:0") as console:
        page = visit.open(console.url)
        page.click(f"main table a:text-is({EVIL!r})")
        page.wait_for_selector("nav.tabs")
        until = time.monotonic() + 60
        while not page.locator("tr.insert").count():
            engine.push("A", [(EVIL, time.time_ns() // 1000)])
            page.wait_for_timeout(500)
            assert time.monotonic() < until
        assert EVIL in page.inner_text(".results")
        assert page.locator("main img").count() == 0
        assert page.title() == "Muntin console"


def test_a_read_only_console_has_no_buttons_that_change(site: Site, visit: Visit) -> None:
    with site.engine.console("127.0.0.1:0", read_only=True) as console:
        page = visit.open(console.url)
        page.evaluate("location.hash = '#query=short'")
        page.wait_for_selector("tr.insert")
        assert page.locator("button:text-is('Drop query')").count() == 0
        page.evaluate("location.hash = '#queries'")
        page.wait_for_selector("h2:text-is('Queries')")
        assert page.locator("a:text-is('New query')").count() == 0
        assert "read-only" in page.inner_text("#status")


def test_a_page_reconnects_by_itself(site: Site, visit: Visit) -> None:
    page = visit.open(site.console.url)
    page.wait_for_selector("#status .live")
    page.context.set_offline(True)
    site.console.app.hub.close()
    page.wait_for_selector("#status .gone")
    site.console.app.hub.closed.clear()
    page.context.set_offline(False)
    page.wait_for_selector("#status .live")
    visit.complaints.clear()  # Chromium notes the lost connection
