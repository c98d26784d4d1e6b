"""The diagnosis and its controls."""

import pytest
from playwright.sync_api import expect

from experiments.models import Cluster, Experiment, Project, Trial, TrialResult
from experiments.models.people.project import DEFAULT_PROJECT
from experiments.specification import parse

ELAPSED = {1: 10.0, 2: 5.5, 4: 4.4}


MODELLED = {hosts: 1.0 + 9.0 / hosts for hosts in (1, 2, 3, 4, 6, 8)}
"""As Amdahl's law has it: sizes enough for a model to predict one that it has not seen."""


@pytest.fixture
def falling(person, empty_redis) -> Experiment:
    """Three sizes, still falling at the largest, so that trials are suggested."""
    return finished(person, ELAPSED)


def finished(person: object, times: dict[int, float]) -> Experiment:
    spec = parse({"name": "Falling", "workload": "water", "sweep": {"hosts": list(times)}, "repetitions": 3})
    experiment = Experiment.submit(spec, project=Project.objects.get(slug=DEFAULT_PROJECT), owner=person)
    while trial := Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1"):
        trial.start_running(command=["mpirun", "lmp"], conditions={"cores": 2})
        trial.start_analysing()
        elapsed = times[trial.configuration.hosts] * (1.02 if trial.repetition == 2 else 0.99)
        values = {"elapsed_s": elapsed, "cpu_mean_rank_s": 0.8 * elapsed, "packets": 1000.0 * trial.configuration.hosts}
        trial.finish(TrialResult({"all": values}, {}, "good"))
    return experiment


def test_it_arrives_after_the_page_with_the_models_of_the_charts(page, person, empty_redis, page_errors):
    page.goto(finished(person, MODELLED).get_absolute_url())
    expect(page.locator("#diagnosis")).to_have_attribute("aria-busy", "false")
    expect(page.locator("#diagnosis .verdict")).to_contain_text("hosts")
    panel = page.locator("#c-speedup")
    expect(panel.locator(".legend")).to_contain_text("chosen")
    page.locator("#diagnosis .ev").first.click()
    assert page.evaluate("location.hash") == "#change-by-part"
    time = page.locator("#c-where-time-goes")
    time.get_by_role("button", name="Table").click()
    expect(time.locator("caption")).to_contain_text("(s)")
    time.get_by_role("button", name="Share").click()
    expect(time.locator("caption")).to_contain_text("Share")
    expect(time.locator("table")).to_have_count(1)
    assert page_errors == []


def test_its_parts_are_tabs_with_addresses(page, falling, page_errors):
    page.goto(falling.get_absolute_url())
    page.get_by_role("tab", name="Configurations").click()
    expect(page.locator("#table")).to_be_visible()
    expect(page.locator("#answer")).to_be_hidden()
    assert page.url.endswith("?tab=configurations")
    page.reload()
    expect(page.locator("#table")).to_be_visible()
    page.keyboard.press("Tab")
    page.get_by_role("tab", name="Configurations").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#setup")).to_be_visible()
    expect(page.get_by_role("tab", name="Setup")).to_be_focused()
    page.goto(f"{falling.get_absolute_url()}#c-packets")
    expect(page.locator("#c-packets")).to_be_in_viewport()
    assert page_errors == []


def test_an_address_of_a_part_that_loads_later_opens_its_tab(page, page_errors):
    page.goto("/experiments/monarc-1999-readers/")
    page.get_by_role("tab", name="Charts and tables").click()
    part = page.locator("#parts [id^=part-]").last
    expect(part).to_be_visible()
    page.goto(f"/experiments/monarc-1999-readers/#{part.get_attribute('id')}")
    page.reload()
    expect(part).to_be_in_viewport()
    assert page_errors == []
