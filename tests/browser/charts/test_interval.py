"""An interval of the rate chart leads to its packets, by keyboard alone."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from experiments.files import ANALYSIS_NAME, trial_directory, write_analysis
from experiments.library import load_defaults
from experiments.models import Artifact, Trial
from tests.analysis.capture_files import Frame, pcapng
from tests.analysis.frames import ethernet, ipv4, tcp
from tests.browser.accessibility import violations
from tests.dashboard.studies_measured import measured
from tests.experiments import factories

SPECIFICATION = {"name": "Captured", "workload": "water", "sweep": {"hosts": [2]}, "repetitions": 1}
BINS, BIN_S = 40, 0.1
pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def trial(person: User) -> Trial:
    """A finished trial of 4 s, a packet in the middle of every tenth second."""
    trial = measured(load_defaults(), SPECIFICATION, lambda _: {"elapsed_s": 4.0}).trials.get()
    times = [0, *(round((i + 0.5) * BIN_S * 1e9) for i in range(1, BINS))]
    frames = [Frame.whole(1_700_000_000_000_000_000 + at, ethernet(ipv4(tcp(seq=1)))) for at in times]
    factories.stored_file(trial, "packets.pcapng", pcapng(frames), kind="capture").save()
    directory = trial_directory(trial)
    write_analysis(directory / ANALYSIS_NAME, {"series": {"wire_bytes": [60] * BINS, "bin_s": BIN_S}})
    Artifact.describe(trial.pk, "analysis", directory / ANALYSIS_NAME).save()
    return trial


def test_written_it_zooms_and_lists_with_the_keyboard_alone(page: Page, trial: Trial, page_errors: list[str]) -> None:
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto(f"{trial.get_absolute_url()}?tab=time")
    plot = page.locator("#throughput .plot")
    expect(plot.locator(".main-svg").first).to_be_attached()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_label("From", exact=True).focus()
    page.keyboard.type("3.5")
    page.keyboard.press("Tab")
    page.wait_for_function("() => document.querySelector('#throughput .plot').layout.xaxis.range[0] === 3.5")
    page.keyboard.press("Enter")
    locator = page.locator("#packet-rows").get_by_role("button")
    expect(locator).to_have_count(5)
    assert violations(page) == []
    assert page_errors == []
