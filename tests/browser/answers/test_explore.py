"""Explorer, comparison and history in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from experiments.library import load_defaults
from experiments.models import Cluster, Experiment, Trial, TrialResult
from experiments.specification import parse
from tests.dashboard.laboratory import specification, values_of


@pytest.fixture
def measured(person) -> Experiment:
    """Three sizes over two MTUs, twelve repetitions, six with a slower kernel."""
    changes = {"sweep": {"hosts": [1, 2, 4], "link.mtu": [1500, 9000]}, "repetitions": 12, "order": "interleaved"}
    experiment = Experiment.submit(parse(specification(**changes)), project=load_defaults(), owner=person)
    cluster = Cluster.objects.get(slug="testbed")
    while (trial := Trial.claim_next(cluster, "tests:1:1")) is not None:
        trial.start_running(command=["mpirun"], conditions={})
        trial.start_analysing()
        later = trial.repetition > 6
        values = values_of(trial)
        values["elapsed_s"] *= 1.3 if later else 1.0
        environment = {"kernel": {"release": "6.8.0-47" if later else "6.8.0-45"}}
        trial.finish(TrialResult({"all": values}, {}, "good", environment=environment))
    return experiment


def test_it_explores_selects_and_compares(page: Page, measured: Experiment, page_errors: list[str]) -> None:
    page.goto("/explore/?project=default")
    expect(page.locator("#answer")).to_contain_text("6 configurations match")
    page.select_option("#f-colour", "link.mtu")
    expect(page.locator(".legendtext")).to_have_count(2)
    assert "colour=link.mtu" in page.url
    page.locator("#folded").click()
    page.fill("#f-where", "hosts = 2")
    expect(page.locator("#answer")).to_contain_text("2 configurations match")
    expect(page.locator("#folded")).to_have_text("Filters (2)")
    page.keyboard.press("Escape")
    for box in page.locator("#answer input[name=of]").all():
        box.check()
    page.get_by_role("button", name="Compare selected").click()
    expect(page.get_by_role("heading", name="Comparison of 2")).to_be_visible()
    expect(page.locator(".differs").first).to_contain_text("9\u202f000")
    expect(page.locator(".plot .main-svg").first).to_be_visible()
    page.get_by_role("link", name="Make baseline").click()
    assert "baseline=" in page.url
    assert page_errors == []


def test_a_point_lists_its_trials_and_is_marked_in_the_other_panel(
    page: Page, measured: Experiment, page_errors: list[str]
) -> None:
    page.goto("/explore/?project=default&colour=&facet=link.mtu&statistic=median")
    first, second = page.locator("#c-pivot-0 .plot"), page.locator("#c-pivot-1 .plot")
    expect(second.locator(".main-svg").first).to_be_visible()
    expect(first).to_have_attribute("tabindex", "0")
    expect(second).to_have_attribute("tabindex", "0")
    first.focus()
    for key in ("Home", "ArrowRight"):
        page.keyboard.press(key)
    expect(page.locator(".marked-bar")).to_contain_text("Hosts 2")
    expect(second.locator(".marks circle")).to_have_count(1)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/trials/\?counted=elapsed_s"))
    expect(page.locator("#f-where")).to_have_value("link.mtu = 1500, hosts = 2")
    expect(page.locator("table[data-rows] tbody tr")).to_have_count(12)
    page.go_back()
    page.wait_for_load_state("networkidle")
    first.scroll_into_view_if_needed()
    expect(second).to_have_attribute("tabindex", "0")
    at = """plot => {
        const trace = plot.data.find(d => d.of), {xaxis, yaxis} = plot._fullLayout, box = plot.getBoundingClientRect();
        return [box.left + xaxis._offset + xaxis.d2p(trace.x[2]), box.top + yaxis._offset + yaxis.d2p(trace.y[2])];
    }"""
    page.mouse.move(*first.evaluate(at))
    expect(first.locator(".marks circle.here")).to_have_count(1)
    page.mouse.down()
    page.mouse.up()
    page.wait_for_url(re.compile(r"/trials/\?counted=elapsed_s.*hosts\+%3D\+4$"))
    assert page_errors == []
