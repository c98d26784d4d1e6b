"""Pages on paper: no navigation, whole charts, dark text on white."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from experiments.models import Experiment
from tests.browser.pages.paper import PAPER_PX, put_on_paper, take_back

WIDTHS = """() => [...document.querySelectorAll(".js-plotly-plot")].filter(plot => plot.getClientRects().length).map(plot => ({
    chart: plot.querySelector(".main-svg").getBoundingClientRect().width,
    right: plot.querySelector(".main-svg").getBoundingClientRect().right,
    panel: plot.closest(".panel").getBoundingClientRect().width,
    room: plot.getBoundingClientRect().width,
    apart: getComputedStyle(plot.closest(".panel")).breakInside}))"""
DARK_ON_WHITE = "() => [getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_experiment_keeps_its_answer_and_whole_charts(
    page: Page, finished: Experiment, page_errors: list[str], scheme: str
) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.goto(finished.get_absolute_url())
    expect(page.locator("#c-where-time-goes .main-svg").first).to_be_visible()
    put_on_paper(page)
    for gone in (".bezel", ".subnav", ".acts", "#c-where-time-goes .tools", ".skip-link"):
        expect(page.locator(gone).first).to_be_hidden()
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator("#dx").first).to_be_visible()
    charts = page.evaluate(WIDTHS)
    assert charts
    for chart in charts:
        assert chart["right"] <= PAPER_PX
        assert 0.8 * chart["panel"] <= chart["chart"] <= chart["room"] + 1, "neither cut nor lost in its panel"
        assert chart["apart"] == "avoid", "no chart is broken between two sheets"
    assert page.evaluate(DARK_ON_WHITE) == ["rgb(23, 33, 43)", "rgb(255, 255, 255)"]
    take_back(page)
    page.wait_for_function(
        "() => { const plot = document.querySelector('#c-where-time-goes .js-plotly-plot');"
        " return Math.abs(plot.querySelector('.main-svg').getBoundingClientRect().width - plot.clientWidth) < 2; }"
    )
    assert page.pdf(format="A4").startswith(b"%PDF-")  # it dispatches the print events itself
    page.wait_for_function("scheme => document.documentElement.dataset.bsTheme === scheme", arg=scheme)
    assert page_errors == []
