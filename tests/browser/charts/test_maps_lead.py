"""Cells of maps are links, of a heat map to trials, of a matrix to packets."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Locator, Page, expect

from experiments.files import ANALYSIS_NAME, trial_directory, write_analysis
from experiments.library import load_defaults
from experiments.models import Artifact, Experiment, Trial
from tests.analysis.capture_files import Frame, pcapng
from tests.analysis.frames import ethernet, ipv4, tcp
from tests.browser.accessibility import violations
from tests.dashboard.studies_measured import NETWORK, measured, needing
from tests.experiments import factories

GRID: dict[str, Any] = {
    "name": "Grid",
    "workload": "water",
    "parameters": {"hosts": 2},
    "sweep": {"link.delay": ["0 ms", "4 ms", "8 ms"], "link.loss": ["0 %", "1 %"]},
    "repetitions": 1,
}
CAPTURED: dict[str, Any] = {"name": "Captured", "workload": "water", "sweep": {"hosts": [2]}, "repetitions": 1}
CELL = """(plot, [row, column]) => {
    const {xaxis, yaxis} = plot._fullLayout, box = plot.getBoundingClientRect();
    return [box.left + xaxis._offset + xaxis.l2p(column), box.top + yaxis._offset + yaxis.l2p(row)];
}"""
HOSTS = ["10.0.0.1", "10.0.0.2"]
pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def experiment(person: User) -> Experiment:
    """Three delays with and without loss, a trial each."""
    return measured(
        load_defaults(),
        GRID,
        lambda parameters: {"elapsed_s": 1 + 100 * parameters["link.delay"] + 10 * parameters["link.loss"]},
    )


@pytest.fixture
def trial(person: User) -> Trial:
    """A finished trial with three packets between two hosts, and one back."""
    trial = measured(load_defaults(), CAPTURED, lambda _: {"elapsed_s": 1.0}).trials.get()
    ways = [(HOSTS[0], HOSTS[1])] * 3 + [(HOSTS[1], HOSTS[0])]
    frames = [
        Frame.whole(1_700_000_000_000_000_000 + place, ethernet(ipv4(tcp(seq=1), source=source, destination=target)))
        for place, (source, target) in enumerate(ways)
    ]
    factories.stored_file(trial, "packets.pcapng", pcapng(frames), kind="capture").save()
    directory = trial_directory(trial)
    matrices = {"hosts": {"labels": HOSTS, "wire_bytes": [[0, 180], [60, 0]]}}
    write_analysis(directory / ANALYSIS_NAME, {"series": {"wire_bytes": [240], "bin_s": 1.0}, "matrices": matrices})
    Artifact.describe(trial.pk, "analysis", directory / ANALYSIS_NAME).save()
    return trial


def drawn(page: Page, address: str, figure: str) -> Locator:
    page.goto(address)
    page.wait_for_load_state("networkidle")  # later parts move the chart
    plot = page.locator(f".plot[data-figure={figure}]")
    plot.scroll_into_view_if_needed()
    expect(plot).to_have_attribute("tabindex", "0")
    return plot


def click(page: Page, plot: Locator, row: int, column: int) -> None:
    page.mouse.move(*plot.evaluate(CELL, [row, column]))
    expect(plot.locator(".marks .here")).to_have_count(1)
    page.mouse.down()
    page.mouse.up()


def test_a_cell_is_marked_in_all_charts_and_opens_its_trials(page, experiment, page_errors) -> None:
    plot = drawn(page, experiment.get_absolute_url(), "figure-map-1-1-1")
    click(page, plot, 1, 2)
    chosen = experiment.configurations.get(parameters__contains={"link.delay": 0.008, "link.loss": 0.01})
    page.wait_for_url(re.compile(f"/trials/\\?experiment={experiment.slug}&configuration={chosen.hash}"))
    plot = drawn(page, experiment.get_absolute_url(), "figure-map-1-1-1")
    page.mouse.move(*plot.evaluate(CELL, [1, 2]))
    expect(page.locator("#c-lines-1 .marks circle")).not_to_have_count(0)
    page.locator("#c-map-1-1").get_by_role("button", name="Contour").click()
    contour = page.locator(".plot[data-figure=figure-map-1-1-2]")
    page.mouse.move(*contour.evaluate(CELL, [0, 1]))
    expect(contour.locator(".marks circle.here")).to_have_count(1)
    assert page_errors == []


def test_arrow_keys_lead_from_cell_to_cell_and_enter_opens_one(page, experiment, page_errors) -> None:
    page.set_viewport_size({"width": 390, "height": 900})
    plot = drawn(page, experiment.get_absolute_url(), "figure-map-1-1-1")
    said = page.locator(".marked-bar").get_by_role("status")
    plot.focus()
    for key, words in (
        ("ArrowDown", "Loss 1 %, delay 0 ms: 1.1 s"),
        ("ArrowDown", "Loss 0 %, delay 0 ms: 1 s"),
        ("ArrowDown", "Loss 0 %, delay 0 ms: 1 s"),
        ("End", "Loss 0 %, delay 8 ms: 1.8 s"),
        ("ArrowLeft", "Loss 0 %, delay 4 ms: 1.4 s"),
        ("ArrowUp", "Loss 1 %, delay 4 ms: 1.5 s"),
    ):
        page.keyboard.press(key)
        expect(said).to_have_text(re.compile(words.replace(" ", r"\s")))
    assert violations(page) == []
    page.keyboard.press("Enter")
    chosen = experiment.configurations.get(parameters__contains={"link.delay": 0.004, "link.loss": 0.01})
    page.wait_for_url(re.compile(f"configuration={chosen.hash}"))
    assert page_errors == []


def test_a_cell_of_the_network_map_puts_the_sliders_on_its_link(page, person, page_errors) -> None:
    study = measured(load_defaults(), NETWORK, needing)
    plot = drawn(page, f"/network/{study.slug}/", "figure-map-0")
    plot.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".marked-bar").get_by_role("status")).to_have_text(re.compile(r"Rate .*one-way delay .*×"))
    assert violations(page) == []
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"\?rate=.*&delay=.*#sliders$"))
    delay_ms = page.evaluate("JSON.parse(document.getElementById('figure-map-0').textContent).data[0].x[0]")
    expect(page.locator("#delay-words")).to_have_text(re.compile(rf"^{delay_ms:.3g}\sms|\sµs$"))
    assert page_errors == []


def test_the_matrix_is_walked_and_opened_with_the_keyboard_alone(page, trial, page_errors) -> None:
    plot = drawn(page, trial.get_absolute_url(), "figure-matrix")
    plot.focus()
    page.keyboard.press("ArrowRight")
    said = page.locator(".marked-bar").get_by_role("status")
    expect(said).to_have_text(re.compile(r"From host 10\.0\.0\.1, to host 10\.0\.0\.2: 180\sB"))
    page.keyboard.press("Space")
    expect(page.locator(".marked-bar").get_by_role("link", name="Its packets")).to_be_visible()
    page.keyboard.press("Escape")
    plot.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(said).to_have_text(re.compile("From host 10.0.0.1"))
    page.keyboard.press("Enter")
    expect(page.locator("#packet-rows").get_by_role("button")).to_have_count(3)
    assert page_errors == []
