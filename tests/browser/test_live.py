"""Running trials are visible everywhere within seconds, with notifications."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from experiments.models import Cluster, Experiment, Heartbeat, Project, Trial, TrialResult
from experiments.models.people.project import DEFAULT_PROJECT
from experiments.specification import parse
from tests.browser.accessibility import violations

pytestmark = pytest.mark.timeout(180)
NOTIFICATIONS = """window.notified = [];
window.Notification = class extends window.Notification {
    static get permission() { return "granted"; }
    constructor(title, options) { super(title, options); window.notified.push([title, options.body]); }
};"""
"""Stub for notifications, which the headless shell denies."""


@pytest.fixture
def experiment(person) -> Experiment:
    """Two trials that wait."""
    spec = parse({"name": "Watched", "workload": "water", "sweep": {"hosts": [2]}, "repetitions": 2})
    return Experiment.submit(spec, project=Project.objects.get(slug=DEFAULT_PROJECT), owner=person)


def claimed() -> Trial:
    trial = Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1")
    assert trial is not None
    trial.start_running(command=["mpirun"], conditions={})
    return trial


def beat(trial: Trial, seconds: int) -> None:
    times = [float(second) for second in range(1, seconds + 1)]
    history = {"t_s": times, "Bps": [1e6] * seconds, "pps": [1000.0] * seconds}
    ranks = [[0, "n01", seconds / 2], [1, "n02", seconds / 3]]
    trial.beat(
        {
            "elapsed_s": float(seconds),
            "packets": 1000 * seconds,
            "Bps": 1e6,
            "pps": 1e3,
            "history": history,
            "ranks": ranks,
        }
    )


def finish(trial: Trial) -> None:
    trial.start_analysing()
    trial.finish(TrialResult({"all": {"elapsed_s": 2.0}}, {}, "good"))


def test_what_starts_is_seen_on_home_and_in_the_header_without_loading_anew(page, person, page_errors):
    before = parse({"name": "Before", "workload": "water", "sweep": {"hosts": [2]}, "repetitions": 1})
    Experiment.submit(before, project=Project.objects.get(slug=DEFAULT_PROJECT), owner=person)
    finish(claimed())
    page.goto("/")
    pulse = page.locator(".bezel .pulse")
    expect(pulse).to_contain_text("0 running")
    expect(page.locator("#now")).to_be_empty()
    spec = parse({"name": "Watched", "workload": "water", "sweep": {"hosts": [2]}, "repetitions": 2})
    Experiment.submit(spec, project=Project.objects.get(slug=DEFAULT_PROJECT), owner=person)
    trial = claimed()
    beat(trial, 1)
    expect(pulse).to_contain_text("1 running")
    expect(pulse).to_contain_text("0 of 2 trials")
    expect(page.locator("#now").get_by_role("article").get_by_role("link", name="Watched")).to_be_visible()
    finish(trial)
    expect(pulse).to_contain_text("1 of 2 trials")
    assert violations(page) == []
    assert page_errors == []


@pytest.mark.parametrize("width", [1600, 1441, 1280, 1201, 1024, 390])
def test_progress_in_the_header_covers_nothing(page, person, width):
    for name in ("First", "Second"):
        spec = parse({"name": name, "workload": "water", "sweep": {"hosts": [1, 2]}, "repetitions": 3})
        Experiment.submit(spec, project=Project.objects.get(slug=DEFAULT_PROJECT), owner=person)
    claimed()
    page.set_viewport_size({"width": width, "height": 700})
    page.goto("/")
    expect(page.locator(".bezel .pulse")).to_contain_text("1 running")
    page.locator(".bezel .pulse-left").evaluate(  # the longest words
        """left => left.innerHTML = "<span class='pulse-over'>12 of 135 trials<span class='pulse-of'> of 12 experiments</span>,"
            + " 3 repeated, </span>1 h 40 min left" """
    )
    wrong = page.evaluate(
        """() => {
            const boxes = [...document.querySelectorAll(".bezel .wrap > *")].filter(e => e.checkVisibility())
                .sort((a, b) => a.getBoundingClientRect().left - b.getBoundingClientRect().left);
            const rights = boxes.map(e => Math.max(e.getBoundingClientRect().right,
                ...[...e.querySelectorAll(".pulse-left")].map(part => part.getBoundingClientRect().right)));
            const rows = boxes.map(e => Math.round(e.getBoundingClientRect().y + e.getBoundingClientRect().height / 2));
            return boxes.slice(1).filter((e, i) => Math.abs(rows[i] - rows[i + 1]) > 12
                || rights[i] > e.getBoundingClientRect().left + 1).map(e => e.outerHTML.slice(0, 80))
                .concat(rights.some(right => right > innerWidth) ? [`beyond ${innerWidth}: ${rights}`] : []);
        }"""
    )
    assert wrong == []


def test_a_refresh_of_the_server_status_keeps_its_fold_open(page, person, page_errors):
    Heartbeat.record("worker", "second@n2")
    Heartbeat.record("worker", "first@n1")
    Heartbeat.objects.filter(name="first@n1").update(seen_at=timezone.now() - timedelta(hours=1))
    page.goto("/server/")
    page.locator("#ended summary").click()
    expect(page.get_by_text("first@n1")).to_be_visible()
    Heartbeat.objects.filter(name="first@n1").update(seen_at=timezone.now() - timedelta(hours=2))
    expect(page.locator("#ended li")).to_contain_text("2 h")
    expect(page.get_by_text("first@n1")).to_be_visible()
    assert page_errors == []


def test_the_charts_of_a_running_trial_grow(page, experiment, page_errors):
    page.set_viewport_size({"width": 390, "height": 900})
    trial = claimed()
    page.goto(trial.get_absolute_url())
    rate = page.locator("#c-live-rate")
    expect(rate.locator(".empty")).to_be_visible()
    points = "n => (document.querySelector('#c-live-rate .plot').data[0] || {x: []}).x.length === n"
    for seconds in (2, 5):
        beat(trial, seconds)
        page.wait_for_function(points, arg=seconds)
    ranks = page.locator("#c-live-ranks .plot")
    assert ranks.evaluate("e => [e.data[0].x, e.data[0].y]") == [["0", "1"], [2.5, 1.666667]]
    rate.get_by_role("button", name="Packets").click()
    beat(trial, 6)
    page.wait_for_function(points, arg=6)
    expect(rate.locator(".ytitle")).to_have_text("Packet rate (packets/s)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert violations(page) == []
    assert page_errors == []


def test_it_notifies_of_the_end_of_an_experiment_on_any_open_page(page, experiment, page_errors):
    page.context.grant_permissions(["notifications"])
    page.add_init_script(NOTIFICATIONS)
    page.goto(experiment.get_absolute_url())
    page.get_by_text("More actions").click()
    button = page.get_by_role("button", name="Notify me when it ends")
    button.focus()
    page.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#notify-status")).to_contain_text("while any page")
    assert violations(page) == []
    page.goto("/workloads/")
    finish(claimed())
    finish(claimed())
    page.wait_for_function("() => window.notified.length", timeout=30_000)
    assert page.evaluate("window.notified") == [["Watched", "Finished: 2 of 2 trials finished"]]
    assert page.evaluate("localStorage.getItem('rankwire-notify')") is None
    assert page_errors == []


def test_the_end_of_an_experiment_clears_its_message_and_offers_deletion_with_undo(page, person, page_errors):
    page.goto("/experiments/new/?workload=ring")
    page.get_by_role("button", name="Start 6 trials").click()
    page.wait_for_url(re.compile(r"/experiments/(?!new)"))
    expect(page.locator("#notices")).to_contain_text("6 trials")
    expect(page.locator("#delete a")).to_have_count(0)
    for _ in range(6):
        finish(claimed())
    expect(page.locator("#state")).to_contain_text("Finished")
    expect(page.locator("#notices")).to_be_empty()
    page.get_by_text("More actions").click()
    page.get_by_role("link", name="Delete experiment").click()
    page.get_by_role("button", name="Delete 1 experiment").click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    assert not Experiment.objects.filter(workload="ring").exists()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#notices")).to_contain_text("1 experiment restored")
    assert Experiment.objects.filter(workload="ring").exists()
    assert page_errors == []
