"""Legends do not overlap data, and logarithmic axes are labelled."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

STUDIES = ("guster-2007-water", "eadline-2006-hpl")
OVER = """() => [...document.querySelectorAll(".plot.js-plotly-plot")]
    .filter(plot => plot.offsetParent && plot.querySelector(".legend"))
    .filter(plot => {
        const box = selector => plot.querySelector(selector).getBoundingClientRect(), legend = box(".legend"), data = box(".nsewdrag");
        const isBeside = legend.left >= data.right - 1 || legend.right <= data.left + 1;
        return data.height < 80 || !(isBeside || legend.bottom <= data.top + 1 || legend.top >= data.bottom - 1);
    })
    .map(plot => plot.dataset.figure)"""
"""Return charts whose legend overlaps their data, or leaves no room."""
LABELLED_OVER = """() => [...document.querySelectorAll(".plot.js-plotly-plot")]
    .filter(plot => plot.offsetParent && plot.querySelector(".legend"))
    .filter(plot => {
        const legend = plot.querySelector(".legend").getBoundingClientRect();
        return [...plot.querySelectorAll(".annotation-text")].map(label => label.getBoundingClientRect()).some(label =>
            label.left < legend.right && label.right > legend.left && label.top < legend.bottom - 1 && label.bottom > legend.top + 1);
    })
    .map(plot => plot.dataset.figure)"""
"""Return charts whose labels overlap their legend."""
DRAWN = '() => [...document.querySelectorAll(".plot[data-figure]")].every(plot => !plot.offsetParent || plot.data)'
pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("width", [390, 1280, 1440])
def test_no_legend_overlaps_data(page: Page, width: int, page_errors: list[str]) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    for study in STUDIES:
        for tab in ("answer", "charts"):
            page.goto(f"/experiments/{study}/?tab={tab}")
            page.wait_for_function(DRAWN)  # those below the fold too, in their turn
            assert page.evaluate(OVER) == [], (study, tab)
            assert page.evaluate(LABELLED_OVER) == [], (study, tab)
    assert page_errors == []
