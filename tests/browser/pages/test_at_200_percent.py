"""A window of 1280 px at 200 % zoom: nothing is lost against 100 %, and no page has to be scrolled sideways."""

from __future__ import annotations

from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect

from experiments.models import Experiment

TOLD: Final = """() => [...document.querySelectorAll("h1, h2, h3, h4, th, dt, label, legend, button, a, summary, .chip, .verdict, .note")]
    .filter(e => e.checkVisibility({ visibilityProperty: true }) && !e.closest("svg, .visually-hidden, .skip-link, .cards thead"))
    .map(e => (e.getAttribute("aria-label") || e.textContent).replace(/\\s+/g, ""))
    .filter(words => words)"""
"""Without the headings of tables that become cards: what stands in a card says itself what it is."""
CUT: Final = """() => [...document.querySelectorAll("h1, h2, h3, dt, dd, label, button, .chip, .verdict, .note, .btn")]
    .filter(e => e.checkVisibility() && !e.closest(".visually-hidden") && e.clientWidth && e.scrollWidth > e.clientWidth + 1)
    .filter(e => ["hidden", "clip"].includes(getComputedStyle(e).overflowX)).map(e => e.outerHTML.slice(0, 120))"""
PAGES: Final = (
    "/",
    "/experiments/",
    "/trials/",
    "/workloads/",
    "/clusters/",
    "/explore/",
    "/help/terms/",
    "/experiments/new/",
    "{experiment}",
    "{experiment}?tab=configurations",
    "{trial}",
    "{trial}#environment",
    "/compare/?of=e:{slug},e:guster-2007-water",
)


@pytest.fixture
def zoomed(browser: Browser, page: Page) -> Page:
    """The same person before a window of 1280 x 900 at 200 %: half as many pixels of style, each of four dots."""
    context = browser.new_context(
        base_url=page.url if page.url.startswith("http") else None,
        viewport={"width": 640, "height": 450},
        device_scale_factor=2,
        storage_state=page.context.storage_state(),
    )
    page.context.on("close", lambda: context.close())
    return context.new_page()


@pytest.mark.timeout(180)
def test_nothing_is_lost_or_out_of_sight(page: Page, zoomed: Page, live_server, finished: Experiment) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    trial = finished.trials.latest("pk")
    names = {"experiment": finished.get_absolute_url(), "trial": trial.get_absolute_url(), "slug": finished.slug}
    lost, wide, cut = {}, {}, {}
    for each in PAGES:
        address = live_server.url + each.format(**names)
        for window in (page, zoomed):
            window.goto(address)
            expect(window.locator("main h1").first).to_be_visible()
            window.wait_for_load_state("networkidle")  # what a page loads later stands in both windows, or in neither
        whole = set(page.evaluate(TOLD))
        zoomed.get_by_role("button", name="Menu").click()  # places of the header lie behind it
        if missing := whole - set(zoomed.evaluate(TOLD)):
            lost[each] = sorted(missing)
        zoomed.get_by_role("button", name="Menu").click()
        if (width := zoomed.evaluate("document.documentElement.scrollWidth")) > 640:
            wide[each] = width
        if found := zoomed.evaluate(CUT):
            cut[each] = found
    assert (lost, wide, cut) == ({}, {}, {})
