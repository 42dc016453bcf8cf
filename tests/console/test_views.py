"""The views in a real browser: they live, fit small screens, and can be used by everyone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.console.conftest import FOLDER, Site, Visit

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.console

VIEWS = [
    "#plan",
    "#queries",
    "#new",
    "#overload",
    "#orders",
    "#query=counts",
    "#query=counts&tab=answer",
    "#query=counts&tab=times",
    "#query=counts&tab=sql",
    "#query=counts&tab=plan",
]


def show(page: Page, view: str) -> None:
    page.evaluate("view => { location.hash = view }", view)
    ready = {"answer": "caption", "times": ".chart svg", "sql": "pre", "plan": "pre"}
    tab = view.partition("tab=")[2] if "tab=" in view else ""
    page.wait_for_selector(f"main section {ready.get(tab, 'h2')}")
    if view == "#query=counts":
        page.wait_for_selector("tr.insert")


def test_the_page_loads_and_its_numbers_move(site: Site, visit: Visit) -> None:
    page = visit.open(site.console.url)
    page.wait_for_selector(".graph svg .node.join .band")
    assert page.locator(".node.stream").count() == 2
    assert page.locator(".node.query").count() == 3
    assert "token" not in page.url
    rows = page.locator("table:has(caption:text-is('Streams')) tbody tr").first.locator("td").nth(1)
    before = rows.inner_text()
    page.wait_for_function(
        "([node, before]) => node.textContent !== before", arg=[rows.element_handle(), before]
    )
    assert all(url.startswith(site.console.address) for url in visit.requests), "works offline"


def test_results_show_inserts_and_retractions(site: Site, visit: Visit) -> None:
    page = visit.open(site.console.url)
    show(page, "#query=counts")
    page.wait_for_selector("tr.retract")
    line = "cell => getComputedStyle(cell).textDecorationLine"
    assert page.locator("tr.retract td").nth(2).evaluate(line) == "line-through"
    assert page.locator("tr.insert td").nth(2).evaluate(line) == "none"


def test_charts_have_percentiles_and_a_table_behind_them(site: Site, visit: Visit) -> None:
    page = visit.open(site.console.url)
    show(page, "#query=short&tab=times")
    page.wait_for_function("() => document.querySelectorAll('.chart path.line').length >= 4")
    charts, tables = page.locator(".chart"), page.locator(".chart details table")
    assert charts.count() == tables.count() == 2
    page.locator(".chart summary").first.click()
    heads = page.locator(".chart").first.locator("thead th").all_inner_texts()
    assert heads == ["time", "p50", "p95", "p99"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_view(site: Site, visit: Visit, scheme: str) -> None:
    page = visit.open(site.console.url, scheme=scheme)
    page.evaluate((FOLDER / "axe.min.js").read_text(encoding="utf-8"))
    found: dict[str, Any] = {}
    for view in VIEWS:
        show(page, view)
        violations = page.evaluate("async () => (await axe.run(document)).violations")
        for each in violations:
            found[f"{view} {each['id']}"] = [node["html"][:200] for node in each["nodes"][:3]]
    assert not found


def test_no_view_is_wider_than_a_small_screen(site: Site, visit: Visit) -> None:
    page = visit.open(site.console.url, width=390)
    for view in VIEWS:
        show(page, view)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390, view


def test_everything_is_reached_by_keys(site: Site, visit: Visit) -> None:
    page = visit.open(site.console.url)
    page.wait_for_selector(".graph svg")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("3")
    page.wait_for_selector("h2:text-is('Overload')")
    page.keyboard.press("1")
    page.wait_for_selector(".graph svg")
    page.locator(".graph a[aria-label='query counts']").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("h2:text-is('counts')")
    page.keyboard.press("n")
    page.wait_for_selector("#query-sql")


def test_an_update_keeps_focus_and_open_tables(site: Site, visit: Visit) -> None:
    page = visit.open(site.console.url)
    summary = page.locator("main details summary").first
    summary.click()
    summary.focus()
    rows = page.locator("table:has(caption:text-is('Streams')) tbody td").nth(1)
    before = rows.inner_text()
    page.wait_for_function(
        "([node, before]) => node.textContent !== before", arg=[rows.element_handle(), before]
    )
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    assert page.locator("main details").first.get_attribute("open") is not None


def test_the_theme_can_be_chosen_and_stays(site: Site, visit: Visit) -> None:
    page = visit.open(site.console.url)
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    page.click("#theme")
    assert page.inner_text("#theme") == "Theme: dark"
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
