"""Journey: the same with 100 Mbit/s instead."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.journeys.hands import Hands
from tests.browser.journeys.installation import Installation

pytestmark = pytest.mark.timeout(300)


def test_a_clone_runs_over_another_link(
    hands: Hands, installation: Installation, fast: str, as_the_guide_says: Callable[[str, Hands], None]
) -> None:
    page = hands.page
    page.goto(f"/experiments/{fast}/")
    hands.press("Clone")
    page.wait_for_url("**/experiments/new/?from=*")
    hands.type("Name", "Exchange over 100 Mbit/s", told=False)
    hands.type("Bandwidth", "100 Mbit/s")
    hands.type("Repetitions", "1")
    hands.press("Start 1 trial")
    page.wait_for_url("**/experiments/exchange-over-100-mbits*/")
    expect(page.locator("#state")).to_have_text("Complete", timeout=100_000)
    expect(page.locator("main .facts").first).to_contain_text("100 Mbit/s")
    slug = page.url.rstrip("/").rpartition("/")[2]
    [here], there = (installation.ask(f"experiments/{each}/result/")["trials"] for each in (slug, fast))
    assert here["parameters"]["link.bandwidth"] == 1e8
    # 60 steps of 256 KiB at 100 Mbit/s are 1.26 s on the wire; of the fast link nothing takes as long
    assert here["metrics"]["elapsed_s"] > max(trial["metrics"]["elapsed_s"] for trial in there)
    as_the_guide_says("Run it with 100 Mbit/s instead", hands)
