"""The dialog of one more round in a browser."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from experiments.models import Experiment
from tests.workers.simulated_rounds import run_to_end, submit


def test_a_refused_budget_leaves_the_dialog_open_with_its_text(page: Page, page_errors: list[str]) -> None:
    experiment = submit({"until": "0.5 %", "budget": {"trials": 9, "time": "10 min"}})
    run_to_end(experiment, sd=0.1)
    page.goto(Experiment.objects.get(pk=experiment.pk).get_absolute_url())
    page.get_by_role("button", name="Run one more round").first.click()
    dialog = page.get_by_role("dialog", name="Run one more round")
    time = dialog.get_by_label("Time of trials")
    time.fill("a while")
    dialog.get_by_role("button", name="Run one more round").click()
    page.wait_for_url(lambda url: url.endswith(experiment.get_absolute_url()))
    expect(time).to_have_value("a while")
    expect(time).to_have_attribute("aria-invalid", "true")
    expect(dialog.locator("#err-more-time")).not_to_be_empty()
    expect(dialog.locator("#err-more-trials")).to_be_empty()
    assert page_errors == []
