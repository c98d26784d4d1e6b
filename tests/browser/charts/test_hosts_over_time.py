"""The hosts of a trial in a real browser: its views, and tables that change with them."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from experiments.files import trial_directory
from experiments.library import load_defaults
from experiments.models import Artifact, Trial
from tests.dashboard.panels.trial.samples import row
from tests.dashboard.studies_measured import measured

SPECIFICATION = {"name": "Sampled", "workload": "water", "sweep": {"hosts": [2]}, "repetitions": 1}


@pytest.fixture
def trial(person: User) -> Trial:
    """A finished trial whose samples a test stores."""
    return measured(load_defaults(), SPECIFICATION, lambda _: {"elapsed_s": 4.0}).trials.get()


def store(trial: Trial, hosts: int) -> None:
    directory = trial_directory(trial)
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "samples.json"
    rows = [row(t, f"n{host}", tx_Bps=2e6 * t) for t in (1.0, 2.0, 3.0) for host in range(1, hosts + 1)]
    file.write_text(json.dumps(rows))
    Artifact.describe(trial.pk, "samples", file).save()


def test_it_makes_an_open_table_again_for_another_view(page: Page, trial: Trial, page_errors: list[str]) -> None:
    store(trial, hosts=2)
    page.goto(trial.get_absolute_url())
    panel = page.locator("#hosts")
    expect(panel.locator(".scatterlayer .trace")).to_have_count(2)
    panel.get_by_role("button", name="Table").click()
    expect(panel.locator("caption")).to_have_text("CPU use of one core (%)")
    expect(panel.locator("tbody tr").first).to_contain_text("75")
    panel.get_by_role("button", name="Sent").click()
    expect(panel.locator("caption")).to_have_text("Sent (MB/s)")
    expect(panel.locator("tbody tr").nth(2)).to_have_text("366")
    expect(panel.locator("table")).to_have_count(1)
    panel.get_by_role("button", name="Chart").click()
    expect(panel.locator(".plot")).to_be_visible()
    assert page_errors == []
