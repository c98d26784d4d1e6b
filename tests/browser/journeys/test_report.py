"""Journey: create a report of an experiment, and read it without an account."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.accessibility import violations
from tests.browser.journeys.hands import Hands

pytestmark = pytest.mark.timeout(300)


def test_a_report_is_shared_by_a_link(
    hands: Hands,
    fast: str,
    open_window: Callable[[], Page],
    as_the_guide_says: Callable[[str, Hands], None],
) -> None:
    page = hands.page
    page.goto(f"/experiments/{fast}/")
    hands.press("More actions")
    hands.press("Create report")
    page.wait_for_url("**/reports/*/edit/")
    hands.type("Title", "What the exchange takes")
    hands.press("Save as a new version")
    page.wait_for_url("**/reports/*/")
    hands.press("Share report")
    hands.press("Create link")
    address = page.locator("code.key").inner_text()
    assert violations(page) == []
    stranger = open_window()
    stranger.goto(address)
    expect(stranger.get_by_role("heading", level=1)).to_contain_text("What the exchange takes")
    expect(stranger.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    assert violations(stranger) == []
    stranger.goto(f"/experiments/{fast}/edit/")
    assert stranger.get_by_label("Password").is_visible() or stranger.get_by_role("heading", level=1).inner_text()
    as_the_guide_says("Make a report and share it", hands)
