"""Who asks the system for less motion sees nothing move: no mark that pulses, no slide, no page that rolls."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from experiments.models import Cluster, Experiment, Project, Trial
from experiments.models.people.project import DEFAULT_PROJECT
from experiments.specification import parse

MOVING = "document.getAnimations().filter(each => each.playState === 'running').length"
ROLLS = "() => [...document.querySelectorAll('*')].filter(e => getComputedStyle(e).scrollBehavior === 'smooth').length"


@pytest.fixture
def running(person) -> Trial:
    """One trial that runs, and one that waits."""
    spec = parse({"name": "Watched", "workload": "water", "sweep": {"hosts": [2]}, "repetitions": 2})
    Experiment.submit(spec, project=Project.objects.get(slug=DEFAULT_PROJECT), owner=person)
    trial = Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1")
    assert trial is not None
    trial.start_running(command=["mpirun"], conditions={})
    return trial


def test_what_runs_pulses_only_for_who_has_not_asked_for_less_motion(
    page: Page, running: Trial, page_errors: list[str]
) -> None:
    page.emulate_media(reduced_motion="no-preference")
    page.goto("/")
    expect(page.locator(".live").first).to_be_visible()
    assert page.evaluate(MOVING) > 0, "otherwise this test could not fail"
    page.emulate_media(reduced_motion="reduce")
    for address in ("/", running.experiment.get_absolute_url(), running.get_absolute_url(), "/experiments/new/?tour=1"):
        page.goto(address)
        expect(page.locator("main h1").first).to_be_visible()
        assert (page.evaluate(MOVING), page.evaluate(ROLLS)) == (0, 0), address
    assert page_errors == []
