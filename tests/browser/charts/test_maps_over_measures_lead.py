"""Cells of maps over time lead to the packets of their step, those of the network what-if to its answer, diamonds to what was published."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Locator, Page, expect

from experiments.library import load_defaults
from tests.browser.accessibility import violations
from tests.dashboard.studies_measured import NETWORK, measured, needing

CELL = """(plot, [row, column]) => {
    const {xaxis, yaxis} = plot._fullLayout, box = plot.getBoundingClientRect(), trace = plot.data[0];
    const over = (axis, names, at) => axis.type === "category" ? axis.l2p(at) : axis.d2p(names[at]);
    return [box.left + xaxis._offset + over(xaxis, trace.x, column), box.top + yaxis._offset + over(yaxis, trace.y, row)];
}"""
POINT = """(plot, curve) => {
    const {xaxis, yaxis} = plot._fullLayout, box = plot.getBoundingClientRect(), trace = plot.data[curve];
    return [box.left + xaxis._offset + xaxis.d2p(trace.x[0]), box.top + yaxis._offset + yaxis.d2p(trace.y[0])];
}"""
pytestmark = pytest.mark.timeout(180)


def ready(page: Page, figure: str) -> Locator:
    page.wait_for_load_state("networkidle")  # what comes later moves the chart
    plot = page.locator(f".plot[data-figure={figure}]")
    plot.scroll_into_view_if_needed()
    expect(plot).to_have_attribute("tabindex", "0")
    return plot


def click(page: Page, plot: Locator, place: list[float]) -> None:
    page.mouse.move(*place)
    expect(plot.locator(".marks .here")).to_have_count(1)
    page.mouse.down()
    page.mouse.up()


def test_a_cell_of_the_network_map_puts_the_sliders_on_its_link(
    page: Page, person: User, page_errors: list[str]
) -> None:
    study = measured(load_defaults(), NETWORK, needing)
    page.goto(f"/network/{study.slug}/")
    plot = ready(page, "figure-map-0")
    plot.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".marked-bar").get_by_role("status")).to_have_text(re.compile(r"Rate .*one-way delay .*×"))
    assert violations(page) == []
    click(page, plot, plot.evaluate(CELL, [20, 20]))
    page.wait_for_url(re.compile(r"\?rate=.*&delay=.*#sliders$"))
    heat = page.evaluate("JSON.parse(document.getElementById('figure-map-0').textContent).data[0]")
    expect(page.locator("#delay-words")).to_have_text(re.compile(rf"^{heat['x'][20]:.3g}\sms|\sµs$"))
    curve = ready(page, "figure-curve-0")
    dots = next(i for i, trace in enumerate(curve.evaluate("plot => plot.data")) if trace.get("of"))
    click(page, curve, curve.evaluate(POINT, dots))
    page.wait_for_url(re.compile(f"/trials/\\?experiment={study.slug}&configuration="))
    assert page_errors == []
