"""Journey: a new user signs in, takes the tour, and reads an answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.accessibility import violations
from tests.browser.journeys.conftest import sign_in
from tests.browser.journeys.hands import Hands
from tests.browser.journeys.installation import Installation

pytestmark = pytest.mark.timeout(600)
PASSWORD = "correct horse battery staple"
NEWCOMER = """
from django.contrib.auth.models import User
from experiments.models import Project
project = Project.objects.create(slug={name!r}, name={name!r})
project.memberships.create(user=User.objects.create_user({name!r}, password={password!r}), role="submitter")
"""


@pytest.fixture
def newcomer(installation: Installation, tmp_path: Path) -> str:
    """A submitter of an empty project; each test run has a new one."""
    name = re.sub(r"\W", "-", tmp_path.name)[-40:]
    installation.manage("shell", "-v", "0", "-c", NEWCOMER.format(name=name, password=PASSWORD))
    return name


def test_the_tour_ends_with_an_answer(
    open_window: Callable[[], Page], newcomer: str, as_the_guide_says: Callable[[str, Hands], None]
) -> None:
    page = open_window()
    page.goto("/")
    hands = Hands(page)
    sign_in(hands, newcomer, PASSWORD)
    hands.press("Take the tour")
    for _ in range(3):
        hands.press("Next")
    # The tour's own experiment takes three minutes on two cores.
    page.get_by_label("Molecules").fill("512")
    page.get_by_label("Time", exact=True).fill("1 min")
    hands.press("Start round 1: 9 trials")
    page.wait_for_url("**/experiments/*/?tour=1")
    verdict = page.locator("#answer .dx > div")
    expect(verdict).to_contain_text(re.compile("host"), timeout=240_000)
    expect(page.locator("#state")).to_have_text("Finished", timeout=300_000)
    assert violations(page) == []
    as_the_guide_says("From the first visit to the first answer", hands)
