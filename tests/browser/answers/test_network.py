"""Network what-if: sliders predict without the server, with equal numbers."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from analysis import numbers, sensitivity
from analysis.sensitivity import Link
from dashboard.panels.network.model import link_effects
from experiments.models import Experiment, Project
from experiments.models.people.project import DEFAULT_PROJECT
from experiments.selectors.network import carried, network_study_of
from tests.dashboard.studies_measured import NETWORK, measured, needing

MOVE = """([id, value]) => {
    const slider = document.getElementById(id);
    slider.value = value;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    return Number(slider.value);
}"""
LET_GO = 'id => document.getElementById(id).dispatchEvent(new Event("change", { bubbles: true }))'


@pytest.fixture
def study(person) -> Experiment:
    return measured(Project.objects.get(slug=DEFAULT_PROJECT), NETWORK, needing)


def test_sliders_move_the_prediction_by_the_numbers_of_analysis(
    page: Page, study: Experiment, page_errors: list[str]
) -> None:
    fitted = network_study_of(study).fits[0]
    fit, here = carried(fitted.fit), fitted.here
    page.goto(f"/network/{study.slug}/")
    expect(page.locator("#c-curve .plot .main-svg").first).to_be_visible()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    for delay, rate in ((-3.5, 8.3), (-2, 10.0), (-6, 9.0)):
        delay = page.evaluate(MOVE, ["delay", delay])
        rate = page.evaluate(MOVE, ["rate", rate])
        link = Link(10**delay, 10**rate)
        predicted = sensitivity.predict(fit, link)
        against = sensitivity.gain(fit, link, here).speedup
        expect(page.locator("#elapsed")).to_have_text(numbers.amount(predicted.elapsed.value, "s", 3))
        expect(page.locator("#elapsed-interval")).to_have_text(numbers.interval(predicted.elapsed.interval, "s"))
        expect(page.locator("#against")).to_have_text(numbers.times(against.value))
        expect(page.locator("#against-interval")).to_have_text(numbers.interval(against.interval))
        assert page.locator("#beyond").is_visible() is not predicted.measured
        for row, effect in zip(page.locator("#bought tbody tr").all(), link_effects(fit, link), strict=True):
            cells = {name: row.locator(f"[data-of={name}]").inner_text() for name in effect if name != "words"}
            assert cells == {name: words for name, words in effect.items() if name != "words"}
        full = sensitivity.predict(fitted.fit, link).elapsed
        assert predicted.elapsed.value == pytest.approx(full.value, rel=0.01)
    assert not [url for url in requests if "/pulse/" not in url]
    shown = page.locator("#elapsed").inner_text()
    page.get_by_role("button", name="Save prediction").click()
    expect(page.locator("dd b").first).to_have_text(shown)  # prediction of the server for the same link
    assert page_errors == []


def test_the_sliders_stand_in_the_address_and_survive_a_refusal(
    page: Page, study: Experiment, page_errors: list[str]
) -> None:
    page.goto(f"/network/{study.slug}/")
    here = page.locator("#elapsed").inner_text()
    page.evaluate(MOVE, ["rate", 10.0])  # faster than the test-bed can certify
    page.evaluate(LET_GO, "rate")
    assert page.url.endswith("?rate=1.000e%2B10")
    page.evaluate(MOVE, ["delay", -3.0])
    page.evaluate(LET_GO, "delay")
    shown = page.locator("#elapsed").inner_text()
    assert shown != here
    page.goto(page.url)
    expect(page.locator("#elapsed")).to_have_text(shown)
    expect(page.locator("#rate-words")).to_have_text("10\u202fGbit/s")
    page.get_by_role("button", name="Build and check this network").click()
    expect(page.get_by_text("can be predicted, not built")).to_be_visible()
    expect(page.locator("#elapsed")).to_have_text(shown)
    expect(page.locator("#delay-words")).to_have_text("1\u202fms")
    assert page_errors == []
