"""The page of a measured trial: its parts, values to copy, charts of one time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from experiments.files import ANALYSIS_NAME, trial_directory, write_analysis
from experiments.models import Artifact, Experiment, Trial
from tests.analysis.capture_files import Frame, pcapng
from tests.analysis.frames import ethernet, ipv4, tcp
from tests.browser.accessibility import violations
from tests.dashboard.panels.trial.profiles import with_profile
from tests.dashboard.panels.trial.samples import row
from tests.experiments import factories

BEGAN_S = 1_700_000_000.0
RECORDED = json.loads(Path("tests/data/mpi-profile-imbalance.json").read_text())["profile"]
FLOW = {"host_a": "10.0.0.1", "port_a": 40_000, "host_b": "10.0.0.2", "port_b": 20_000, "rank_a": 0, "rank_b": 1}
COUNTS = {"packets": 3, "wire_bytes": 180, "rtt_min_s": 1e-5, "rtt_median_s": 2e-5, "retransmitted_segments": 0}
WORDS = """() => {
    let words = 0;
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
        const parent = text.parentElement, range = document.createRange();
        if (parent.closest("script, style, template, svg") || !parent.checkVisibility()) continue;
        range.selectNodeContents(text);
        const box = range.getBoundingClientRect();
        if (box.width && box.top < innerHeight) words += text.textContent.split(/\\s+/).filter(Boolean).length;
    }
    return words;
}"""
"""Words on the first screen."""


@pytest.fixture
def trial(finished: Experiment) -> Trial:
    """A trial with two connections, a profile, and host samples 0.5 s later."""
    trial: Trial = finished.trials.latest("pk")
    frames = [
        Frame.whole(round((BEGAN_S + at / 10) * 1e9), ethernet(ipv4(tcp(seq=1, sport=port))))
        for at, port in enumerate((40_000, 40_001, 40_000))
    ]
    factories.stored_file(trial, "packets.pcapng", pcapng(frames), "capture").save()
    factories.stored_file(trial).save()
    samples = json.dumps([{**row(float(second)), "began_s": BEGAN_S + 0.5} for second in range(6)])
    factories.stored_file(trial, "samples.json", samples.encode(), "samples").save()
    matrix = {"labels": ["10.0.0.1", "10.0.0.2"], "wire_bytes": [[0, 180], [60, 0]]}
    series = {"wire_bytes": [1_234_567, 7, 8, 9], "bin_s": 1.0, "start_s": BEGAN_S}
    content = {"series": series, "matrices": {"hosts": matrix}, "flows": [{**FLOW, **COUNTS}]}
    write_analysis(trial_directory(trial) / ANALYSIS_NAME, content)
    Artifact.describe(trial.pk, "analysis", trial_directory(trial) / ANALYSIS_NAME).save()
    profile = {**RECORDED, "ranks": [{**rank, "began_s": BEGAN_S + 0.25} for rank in RECORDED["ranks"]]}
    return with_profile(trial, profile)


TABS = ("overview", "time", "wire", "mpi", "packets", "measurements", "output", "files", "environment")


@pytest.mark.parametrize("tab", TABS)
def test_main_content_ends_after_at_most_60_stops_in_every_part(page: Page, trial: Trial, tab: str) -> None:
    page.goto(f"{trial.get_absolute_url()}?tab={tab}")
    page.wait_for_load_state("networkidle")
    page.keyboard.press("Tab")
    stops = 1
    while page.evaluate("document.activeElement !== document.body") and stops <= 60:
        page.keyboard.press("Tab")
        stops += 1
    assert stops <= 60


def test_first_screen_is_short_and_everything_else_one_click_away(
    page: Page, trial: Trial, page_errors: list[str]
) -> None:
    page.goto(trial.get_absolute_url())
    panels = page.locator("main .panel:visible")
    assert [panel.get_attribute("id") for panel in panels.all()] == [None, None, "inside-mpi"]
    assert page.evaluate(WORDS) <= 250
    for tab in TABS[1:]:
        page.locator(f"[role=tab][aria-controls={tab}]").click()
        expect(page.locator(f"#{tab}")).to_be_visible()
        assert page.url.endswith(f"?tab={tab}")
        page.reload()
        expect(page.locator(f"#{tab}")).to_be_visible()
        assert page.locator("[role=tabpanel]:visible").count() == 1
    page.locator("[role=tab][aria-selected=true]").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#files")).to_be_visible()
    assert page.url.endswith("?tab=files")
    assert page_errors == []


@pytest.mark.parametrize(
    ("anchor", "tab"), [("packets", "packets"), ("messages", "mpi"), ("hosts", "time"), ("inside-mpi", "overview")]
)
def test_earlier_anchor_leads_to_its_part(page: Page, trial: Trial, anchor: str, tab: str) -> None:
    page.goto(f"{trial.get_absolute_url()}#{anchor}")
    expect(page.locator(f"#{tab}")).to_be_visible()
    expect(page.locator(f"#{anchor}")).to_be_in_viewport()


def test_value_is_copied_with_all_its_digits_by_click_and_by_keyboard(
    page: Page, trial: Trial, page_errors: list[str]
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    trial.measurements.create(metric="throughput_Bps", value=91_301_234.5)
    page.goto(trial.get_absolute_url())
    tiles = page.get_by_role("region", name="Headline metrics")
    tiles.get_by_role("button", name="91.3").click()
    expect(tiles.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "91301234.5 B/s"
    expect(tiles.get_by_role("button", name="91.3")).to_be_visible()
    tiles.get_by_role("link", name="CPU time per rank").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(tiles.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "2.2 s"
    assert violations(page) == []
    assert page_errors == []


def test_charts_of_one_time_axis_show_the_same_moment(page: Page, trial: Trial, page_errors: list[str]) -> None:
    page.set_viewport_size({"width": 1440, "height": 1800})
    page.goto(f"{trial.get_absolute_url()}?tab=time")
    for name in ("throughput", "inside-over-time", "hosts"):
        expect(page.locator(f"#{name} .plot .main-svg").first).to_be_visible()
    page.evaluate("() => Plotly.relayout(document.querySelector('#inside-over-time .plot'), {'xaxis.range': [0, 4]})")
    point = page.locator("#throughput .plot").evaluate(
        "plot => { const box = plot.getBoundingClientRect(), { xaxis, yaxis } = plot._fullLayout;"
        " return [box.left + xaxis._offset + xaxis.d2p(2), box.top + yaxis._offset + 40]; }"
    )
    page.mouse.move(*point)
    moment = """plot => { const { xaxis } = plot._fullLayout, line = plot.querySelector('.moment');
        return line && !line.hidden ? xaxis.p2d(parseFloat(line.style.left) - xaxis._offset) : null; }"""
    assert page.locator("#hosts .plot").evaluate(moment) == pytest.approx(1.5, abs=0.02)
    assert page.locator("#inside-over-time .plot").evaluate(moment) == pytest.approx(1.75, abs=0.02)
    assert page.locator("#throughput .plot").evaluate(moment) is None
    expect(page.locator("#hosts .hoverlayer")).to_contain_text("n1")
    page.mouse.move(5, 5)
    expect(page.locator(".moment:not([hidden])")).to_have_count(0)
    assert page_errors == []


def test_chart_fills_the_screen_until_escape(page: Page, trial: Trial, page_errors: list[str]) -> None:
    page.goto(trial.get_absolute_url())
    panel = page.locator("#inside-mpi")
    plot, button = panel.locator(".plot"), panel.get_by_role("button", name="Full screen")
    expect(plot.locator(".main-svg").first).to_be_visible()
    before = plot.evaluate("plot => plot.clientHeight")
    for _ in range(2):
        button.click()
        expect(button).to_have_attribute("aria-pressed", "true")
        page.wait_for_function("() => document.querySelector('#inside-mpi .main-svg').clientHeight > 700")
        assert violations(page) == []
        page.keyboard.press("Escape")
        page.evaluate(
            "document.fullscreenElement && document.exitFullscreen()"
        )  # a browser without a window keeps the key
        expect(button).to_have_attribute("aria-pressed", "false")
        page.wait_for_function("h => document.querySelector('#inside-mpi .main-svg').clientHeight === h", arg=before)
        page.evaluate("Element.prototype.requestFullscreen = undefined")  # as on some telephones
    assert page_errors == []


def test_packets_of_one_connection_are_one_click_away(page: Page, trial: Trial, page_errors: list[str]) -> None:
    page.goto(f"{trial.get_absolute_url()}?tab=packets")
    rows = page.locator("#packet-rows tr")
    expect(rows).to_have_count(3)
    page.get_by_role("link", name="Only this connection: tcp.stream == 0").first.click()
    expect(rows).to_have_count(2)
    expect(page.get_by_label("Display filter")).to_have_value("tcp.stream == 0")
    assert violations(page) == []
    page.goto(f"{trial.get_absolute_url()}?tab=wire")
    page.get_by_role("link", name="ranks 0 ↔ 1").click()
    expect(rows).to_have_count(2)
    assert page_errors == []
