"""Points of charts are links, and one configuration is marked everywhere."""

from __future__ import annotations

import re
from itertools import count
from time import monotonic

import pytest
from playwright.sync_api import Locator, Page, expect

from experiments.library import load_defaults
from experiments.models import Experiment
from tests.browser.accessibility import violations
from tests.dashboard.studies_measured import measured

SPECIFICATION = {
    "name": "Marked",
    "workload": "water",
    "deciding": "elapsed_s",
    "sweep": {"hosts": [1, 2, 4]},
    "repetitions": 2,
}
PLACE = """(plot, [name, at]) => {
    const trace = plot.data.find(d => d.name === name), {xaxis, yaxis} = plot._fullLayout, box = plot.getBoundingClientRect();
    return [box.left + xaxis._offset + xaxis.d2p(trace.x[at]), box.top + yaxis._offset + yaxis.d2p(trace.y[at])];
}"""
COLUMN = """bar => {
    const {xaxis} = bar.closest(".plot")._fullLayout, middle = bar.x.baseVal.value + bar.width.baseVal.value / 2 - xaxis._offset;
    return String(xaxis._categories[Math.round(xaxis.p2l(middle))]);
}"""
"""The size whose bars are marked."""
pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def experiment(person) -> Experiment:
    """Three sizes, two trials each."""
    turn = count()
    return measured(
        load_defaults(),
        SPECIFICATION,
        lambda parameters: {
            "elapsed_s": 8.0 / parameters["hosts"] + 0.5 * (next(turn) % 2),
            "cpu_mean_rank_s": 1.0,
            "packets": 1000.0 * parameters["hosts"],
        },
    )


def chart(page: Page, element: str) -> Locator:
    """Open a page and return one of its charts after all parts have loaded."""
    page.wait_for_load_state("networkidle")
    plot = page.locator(f"#c-{element} .plot")
    expect(plot.locator(".main-svg").first).to_be_attached()
    return plot


def over(page: Page, plot: Locator, series: str, at: int) -> None:
    """Move the pointer over a point, again if the chart moves."""
    deadline = monotonic() + 20
    while True:
        plot.scroll_into_view_if_needed()
        page.mouse.move(*plot.evaluate(PLACE, [series, at]))
        try:
            return expect(plot.locator(".marks circle.here")).to_have_count(1, timeout=1000)
        except AssertionError:
            if monotonic() > deadline:
                raise


def test_a_point_is_marked_in_all_charts_and_leads_to_its_trials(page, experiment, page_errors):
    page.goto(experiment.get_absolute_url())
    time, speed_up = chart(page, "time"), chart(page, "speedup")
    over(page, time, "Elapsed", 1)
    expect(speed_up.locator(".marks circle")).not_to_have_count(0)
    bar = chart(page, "where-time-goes").locator(".marks rect")
    expect(bar).to_have_count(1)
    assert bar.evaluate(COLUMN) == "2"
    configuration = experiment.configurations.get(hosts=2)
    page.mouse.down()
    page.mouse.up()
    page.wait_for_url(re.compile(f"/trials/\\?experiment={experiment.slug}&configuration={configuration.hash}"))
    expect(page.locator("table[data-rows] tbody tr")).to_have_count(2)
    page.go_back()
    time = chart(page, "time")
    over(page, time, "Elapsed, trials", 0)
    page.mouse.down()
    page.mouse.up()
    page.wait_for_url(re.compile(r"/trials/\d+/$"))
    assert page_errors == []


def test_it_walks_marks_opens_and_clears_with_the_keyboard_alone(page, experiment, page_errors):
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto(experiment.get_absolute_url())
    time, speed_up, bar = chart(page, "time"), chart(page, "speedup"), page.locator(".marked-bar")
    time.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(bar.get_by_role("status")).to_contain_text("Time (s)")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    expect(bar.get_by_role("status")).to_contain_text("Marked: ")
    expect(speed_up.locator(".marks circle")).not_to_have_count(0)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.keyboard.press("Escape")
    expect(bar).to_be_hidden()
    expect(speed_up.locator(".marks circle")).to_have_count(0)
    time.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/trials/"))
    assert page_errors == []
