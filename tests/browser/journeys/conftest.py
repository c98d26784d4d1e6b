"""One installation with a real worker for all journeys, and its user."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.journeys.guide import steps
from tests.browser.journeys.hands import Hands
from tests.browser.journeys.installation import Installation

PATIENCE_MS = 30_000
EXCHANGE: dict[str, Any] = {
    "name": "Bench A, 1 Gbit/s",
    "workload": "ring",
    "parameters": {"message_bytes": "256 KiB", "steps": 60},
    "sweep": {"hosts": [2]},
    "link": {"bandwidth": "1 Gbit/s"},
    "certificate": "skip",
    "order": "sequential",
    "repetitions": 4,
}


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    variables = {
        "RANKWIRE_DEBUG": "1",  # style sheets and pictures as they lie in the sources, not as they were gathered last
        "RANKWIRE_FOREIGN_CPU_PERCENT": "100",  # tests share their machine: no trial counts as disturbed
        "RANKWIRE_WEB_PROCESSES": "1",
    }
    with Installation(tmp_path_factory.mktemp("journeys") / "var", variables) as running:
        yield running


@pytest.fixture(scope="session")
def bench(installation: Installation) -> tuple[str, str]:
    """Return slugs of an exchange over a fast link, the newer, and a slow one."""
    link = {**EXCHANGE["link"], "bandwidth": "100 Mbit/s"}
    slow = installation.submit({**EXCHANGE, "name": "Bench B, 100 Mbit/s", "link": link})
    fast = installation.submit(EXCHANGE)
    installation.wait_for([slow, fast], timeout_s=200)
    return fast, slow


@pytest.fixture
def fast(bench: tuple[str, str]) -> str:
    return bench[0]


@pytest.fixture
def open_window(browser: Browser, installation: Installation) -> Iterator[Callable[[], Page]]:
    """Browser windows without a session."""
    contexts = []

    def new() -> Page:
        context = browser.new_context(base_url=installation.address, viewport={"width": 1440, "height": 900})
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        return context.new_page()

    expect.set_options(timeout=PATIENCE_MS)
    yield new
    for context in contexts:
        context.close()


@pytest.fixture
def hands(open_window: Callable[[], Page], installation: Installation) -> Hands:
    """Browser window of an administrator with a session."""
    page = open_window()
    page.goto("/sign-in/")
    at_keyboard = Hands(page)
    sign_in(at_keyboard, "admin", installation.password)
    at_keyboard.steps.clear()
    return at_keyboard


def sign_in(hands: Hands, name: str, password: str) -> None:
    hands.type("Name", name, is_step=False)
    hands.type("Password", password, is_step=False)
    hands.press("Sign in")
    hands.page.wait_for_url(re.compile(r"^http://[^/]+/$"))


@pytest.fixture
def as_the_guide_says() -> Callable[[str, Hands], None]:
    """Ends a journey: its steps were those of the guide, no more and no fewer."""

    def check(journey: str, hands: Hands) -> None:
        assert hands.steps == steps(journey)

    return check
