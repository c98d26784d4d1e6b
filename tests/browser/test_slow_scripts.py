"""Input before the scripts of a page have loaded: the page follows it later."""

from __future__ import annotations

import re

from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from experiments.models import Experiment, Project
from experiments.models.people.project import DEFAULT_PROJECT
from tests.browser.conftest import OpenEarly
from tests.dashboard.studies_measured import NETWORK, measured, needing


def test_the_new_experiment_form_is_read_when_they_come(
    page: Page, opened_early: OpenEarly, page_errors: list[str]
) -> None:
    release = opened_early("/experiments/new/")
    page.locator("[name=sweep_values]").fill("1, 2")
    page.locator("[name=repetitions]").fill("5")
    release()
    expect(page.locator("#startbar")).to_contain_text("Start round 1: 10 trials")
    expect(page.locator("#values-0")).to_have_text("1  2")
    assert page_errors == []


def test_the_explorer_follows_its_axes(page: Page, opened_early: OpenEarly, finished: Experiment) -> None:
    release = opened_early("/explore/?project=default")
    for folded in ("#folded", "form.explore > details:last-of-type > summary"):
        page.locator(folded).click()
    page.locator("#f-where").fill("hosts = 2")
    page.locator("#f-statistic").select_option("mean")
    release()
    expect(page.locator("#answer")).to_contain_text("1 configuration match")
    expect(page).to_have_url(re.compile(r"statistic=mean"))


def test_sliders_foretell_where_they_stand(
    page: Page, opened_early: OpenEarly, person: User, page_errors: list[str]
) -> None:
    study = measured(Project.objects.get(slug=DEFAULT_PROJECT), NETWORK, needing)
    release = opened_early(f"/network/{study.slug}/?delay=0.001&rate=1e10")
    page.locator("#delay").fill("-2")
    release()
    expect(page.locator("#delay-words")).to_have_text("10\u202fms")
    expect(page.locator("#rate-words")).to_have_text("10\u202fGbit/s")  # of the address: unchanged
    assert page_errors == []
