"""The table of a history's chart: its rows are trials."""

from __future__ import annotations

from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from experiments.library import load_defaults
from tests.dashboard.studies_measured import measured

SPECIFICATION = {"name": "Nightly", "workload": "water", "sweep": {"hosts": [2]}, "repetitions": 6}


def test_rows_name_the_trial_and_its_end(page: Page, person: User) -> None:
    trials = measured(load_defaults(), SPECIFICATION, lambda _: {"elapsed_s": 4.0}).trials.order_by("ended_at", "pk")
    page.goto(f"/history/{trials[0].configuration.hash}/testbed/")
    page.get_by_role("button", name="Show table").click()
    table = page.get_by_role("table").first
    expect(table).to_be_visible()
    heads = table.locator("tbody th").all_inner_texts()
    assert [head.partition(",")[0] for head in heads] == [f"trial {trial.pk}" for trial in trials]
