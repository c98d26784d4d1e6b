"""Cells of maps over time lead to the packets of their step, those of the network what-if to its answer, diamonds to what was published."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Locator, Page, expect

from analysis.mpi.calls import to_bytes
from dashboard.charts import MOST_SERIES
from experiments.files import MPI_CALLS_NAME
from experiments.library import load_defaults
from experiments.models import Artifact, Experiment, Trial
from tests.analysis.mpi.scenes import EPOCH, Scene
from tests.browser.accessibility import violations
from tests.dashboard.panels.trial.profiles import with_profile
from tests.dashboard.panels.trial.samples import captured, row
from tests.dashboard.studies_measured import NETWORK, measured, needing
from tests.experiments.factories import stored_file

ONE: dict[str, Any] = {"name": "Captured", "workload": "water", "sweep": {"hosts": [2]}, "repetitions": 1}
HOSTS: dict[str, Any] = {"name": "Own", "workload": "water", "sweep": {"hosts": [1, 2, 4]}, "repetitions": 1}
CELL = """(plot, [row, column]) => {
    const {xaxis, yaxis} = plot._fullLayout, box = plot.getBoundingClientRect(), trace = plot.data[0];
    const over = (axis, names, at) => axis.type === "category" ? axis.l2p(at) : axis.d2p(names[at]);
    return [box.left + xaxis._offset + over(xaxis, trace.x, column), box.top + yaxis._offset + over(yaxis, trace.y, row)];
}"""
POINT = """(plot, curve) => {
    const {xaxis, yaxis} = plot._fullLayout, box = plot.getBoundingClientRect(), trace = plot.data[curve];
    return [box.left + xaxis._offset + xaxis.d2p(trace.x[0]), box.top + yaxis._offset + yaxis.d2p(trace.y[0])];
}"""
BEGAN_S = EPOCH / 1e9
pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def trial(person: User) -> Trial:
    """A finished trial with packets at 0, 0.02 and 0.07 s, and calls of two ranks over 0.1 s."""
    trial = measured(load_defaults(), ONE, lambda _: {"elapsed_s": 1.0}).trials.get()
    with_profile(trial, json.loads(Path("tests/data/mpi-profile-imbalance.json").read_text())["profile"])
    captured(trial, began_s=BEGAN_S, after_s=(0.0, 0.02, 0.07))
    scene = Scene().call(0, "Send", 0, 30, peer=1).call(0, "Barrier", 90, 100).call(1, "Recv", 0, 100, peer=0)
    stored_file(trial, MPI_CALLS_NAME, to_bytes(scene.calls), Artifact.Kind.OTHER).save()
    return trial


def ready(page: Page, figure: str) -> Locator:
    page.wait_for_load_state("networkidle")  # what comes later moves the chart
    plot = page.locator(f".plot[data-figure={figure}]")
    plot.scroll_into_view_if_needed()
    expect(plot).to_have_attribute("tabindex", "0")
    return plot


def click(page: Page, plot: Locator, place: list[float]) -> None:
    page.mouse.move(*place)
    expect(plot.locator(".marks .here")).to_have_count(1)
    page.mouse.down()
    page.mouse.up()


def seconds(page: Page) -> list[float]:
    return [float(page.locator(f"#{name}").input_value()) for name in ("packet-from-s", "packet-until-s")]


def test_a_step_of_the_ranks_lists_its_packets_by_keyboard_too(page: Page, trial: Trial, complaints: list[str]) -> None:
    page.goto(trial.get_absolute_url())
    plot = ready(page, "figure-rank-timeline")
    click(page, plot, plot.evaluate(CELL, [1, 80]))
    expect(page.locator("#packet-rows").get_by_role("button")).to_have_count(1)
    assert seconds(page) == pytest.approx([0.02, 0.02025])
    page.goto(trial.get_absolute_url())
    plot = ready(page, "figure-rank-timeline")
    plot.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".marked-bar").get_by_role("status")).to_have_text(re.compile(r"Rank 0, .*In MPI \(%\) 100"))
    page.keyboard.press("End")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"from_s=0\.09975.*until_s=0\.1"))
    assert complaints == []


def test_a_second_of_many_hosts_lists_its_packets(page: Page, trial: Trial, complaints: list[str]) -> None:
    rows = [row(t, f"n{host}") for t in (0.05, 0.1) for host in range(MOST_SERIES + 1)]
    rows[0]["began_s"] = BEGAN_S
    stored_file(trial, "samples.json", json.dumps(rows).encode(), Artifact.Kind.SAMPLES).save()
    page.goto(trial.get_absolute_url())
    plot = ready(page, "figure-hosts-1")
    click(page, plot, plot.evaluate(CELL, [2, 0]))
    expect(page.locator("#packet-rows").get_by_role("button")).to_have_count(2)
    assert seconds(page) == [0, 0.05]
    assert complaints == []


def test_a_cell_of_the_network_map_puts_the_sliders_on_its_link(
    page: Page, person: User, complaints: list[str]
) -> None:
    study = measured(load_defaults(), NETWORK, needing)
    page.goto(f"/network/{study.slug}/")
    plot = ready(page, "figure-map-0")
    plot.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".marked-bar").get_by_role("status")).to_have_text(re.compile(r"Rate .*one-way delay .*×"))
    assert violations(page) == []
    click(page, plot, plot.evaluate(CELL, [20, 20]))
    page.wait_for_url(re.compile(r"\?rate=.*&delay=.*#sliders$"))
    heat = page.evaluate("JSON.parse(document.getElementById('figure-map-0').textContent).data[0]")
    expect(page.locator("#delay-words")).to_have_text(re.compile(rf"^{heat['x'][20]:.3g}\sms|\sµs$"))
    curve = ready(page, "figure-curve-0")
    dots = next(i for i, trace in enumerate(curve.evaluate("plot => plot.data")) if trace.get("of"))
    click(page, curve, curve.evaluate(POINT, dots))
    page.wait_for_url(re.compile(f"/trials/\\?experiment={study.slug}&configuration="))
    assert complaints == []


def test_a_diamond_leads_to_the_trials_of_the_published_study(page: Page, person: User, complaints: list[str]) -> None:
    own = measured(load_defaults(), HOSTS, lambda _: {"elapsed_s": 500.0})
    page.goto(own.get_absolute_url())
    plot = ready(page, "figure-time")
    button = page.locator(".panel", has=plot).locator("[data-published]")
    if button.get_attribute("aria-pressed") == "false":
        button.click()
    data = plot.evaluate("plot => plot.data")
    diamonds = next(i for i, trace in enumerate(data) if trace.get("meta") == "published")
    expect(plot.locator(".scatterlayer .trace")).to_have_count(sum(trace.get("visible") is not False for trace in data))
    click(page, plot, plot.evaluate(POINT, diamonds))
    page.wait_for_url(re.compile(r"/trials/\?experiment="))
    published = Experiment.objects.get(configurations=data[diamonds]["of"][0])
    assert published.published
    assert f"experiment={published.slug}&" in page.url
    assert complaints == []
