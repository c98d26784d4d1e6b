"""Charts that are seen are drawn at once; the others in the idle time of the first view, without being rolled to."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from experiments.library import load_defaults
from tests.dashboard.studies_measured import measured

SPECIFICATION = {"name": "Many charts", "workload": "water", "sweep": {"hosts": [1, 2, 4]}, "repetitions": 2}
WATCH = """
window.drawnCharts = [];
window.isIdle = false;
const callback = window.requestIdleCallback.bind(window);
window.requestIdleCallback = (work, options) => callback(deadline => {
    window.isIdle = true;
    try { work(deadline); } finally { window.isIdle = false; }
}, options);
document.addEventListener("rankwire:drawn", e => {
    const { top, bottom } = e.target.getBoundingClientRect();
    window.drawnCharts.push([e.target.dataset.figure, bottom > 0 && top < innerHeight, window.isIdle]);
});
"""
"""Notes of every drawing: which figure, whether it was seen, whether the browser was idle."""
pytestmark = pytest.mark.timeout(120)


def test_what_is_seen_comes_first_and_the_rest_when_the_browser_is_idle(page: Page, page_errors: list[str]) -> None:
    experiment = measured(
        load_defaults(),
        SPECIFICATION,
        lambda parameters: {
            "elapsed_s": 8.0 / parameters["hosts"],
            "cpu_mean_rank_s": 1.0,
            "packets": 1000.0 * parameters["hosts"],
            "wire_bytes": 1e6 * parameters["hosts"],
        },
    )
    page.set_viewport_size({"width": 390, "height": 1400})
    page.add_init_script(WATCH)
    page.goto(experiment.get_absolute_url())
    panels = page.locator("[role=tabpanel]:not([hidden]) .plot")
    expect(panels.first).to_be_attached()
    for number in range(panels.count()):
        expect(panels.nth(number).locator(".main-svg").first).to_be_attached()
    assert page.evaluate("scrollY") == 0, "nobody rolled"
    first: dict[str, tuple[bool, bool]] = {}
    for figure, seen, idle in page.evaluate("window.drawnCharts"):
        first.setdefault(figure, (seen, idle))
    assert len(first) > 3
    assert any(seen for seen, _ in first.values()), "the window shows a chart"
    assert [figure for figure, (seen, idle) in first.items() if not seen and not idle] == []
    assert page_errors == []
