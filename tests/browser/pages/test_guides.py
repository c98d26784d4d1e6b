"""Guides on a phone: tables show all of their columns."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

CUT_OFF = """width => [...document.querySelectorAll(".guide article td")]
    .filter(cell => cell.getBoundingClientRect().right > width || cell.scrollWidth > cell.clientWidth + 1)
    .map(cell => cell.textContent.trim().slice(0, 60))"""


@pytest.mark.parametrize("guide", ["settings", "choose-a-launcher", "metrics", "add-a-cluster"])
def test_no_cell_of_a_table_is_cut_off(page: Page, guide: str, page_errors: list[str]) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"/help/{guide}/")
    assert page.evaluate(CUT_OFF, 390) == []
    assert page.locator(".guide article td").first.is_visible()
    assert page_errors == []


@pytest.mark.parametrize(("guide", "named"), [("metrics", True), ("states", False), ("terms", False)])
def test_names_of_columns_are_lines_of_their_own(page: Page, guide: str, named: bool) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"/help/{guide}/")
    names = page.evaluate(
        """() => [...document.querySelectorAll(".guide article td")].map(cell => getComputedStyle(cell, "::before"))
            .filter(style => style.content !== "none" && style.display !== "none").map(style => style.display)"""
    )
    assert set(names) == ({"block"} if named else set())
