"""Charts of many trials: what their figures write in runs is drawn dot by dot, and each row of the table can be marked."""

from __future__ import annotations

from itertools import count

from playwright.sync_api import expect

from experiments.library import load_defaults
from tests.dashboard.studies_measured import measured

SPECIFICATION = {"name": "Many", "workload": "water", "sweep": {"hosts": [1, 2]}, "repetitions": 40}
DOTS = """panel => {
    const dots = panel.querySelector(".plot").data.find(trace => trace.name.endsWith("trials"));
    return [dots.x.length, dots.y.length, dots.of.length, dots.trials.length, [...new Set(dots.x)].length, [...new Set(dots.of)].length];
}"""


def test_every_trial_is_a_dot_that_knows_its_configuration(page, person, page_errors):
    turn = count()
    experiment = measured(
        load_defaults(), SPECIFICATION, lambda p: {"elapsed_s": 8.0 / p["hosts"] + 0.001 * next(turn), "packets": 1.0}
    )
    page.goto(experiment.get_absolute_url())
    panel = page.locator("#c-time")
    expect(panel.locator(".scatterlayer .trace").first).to_be_visible()
    assert panel.evaluate(DOTS) == [80, 80, 80, 80, 2, 2]
    assert page.locator("#figure-time").text_content().count('"runs"') == 1
    page.get_by_role("tab", name="Configurations").click()
    row = page.locator("#table tbody tr").first
    button = row.get_by_role("button", name="Mark 1 host in all charts")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(row).to_have_class("marked")
    page.evaluate("document.body.dispatchEvent(new CustomEvent('htmx:afterSettle', { bubbles: true }))")
    expect(page.locator("#table [data-mark]")).to_have_count(2)
    assert page_errors == []
