"""Journey: the same with 100 Mbit/s instead."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.journeys.hands import Hands
from tests.browser.journeys.installation import Installation

pytestmark = pytest.mark.timeout(400)


def test_a_clone_runs_over_another_link(
    hands: Hands, installation: Installation, fast: str, as_the_guide_says: Callable[[str, Hands], None]
) -> None:
    page = hands.page
    page.goto(f"/experiments/{fast}/")
    hands.press("Clone experiment")
    page.wait_for_url("**/experiments/new/?from=*")
    hands.type("Name", "Exchange over 100 Mbit/s", is_step=False)
    hands.type("Bandwidth", "100 Mbit/s")
    hands.type("Repetitions", "1")
    hands.press("Start 1 trial")
    page.wait_for_url("**/experiments/exchange-over-100-mbits*/")
    slug = page.url.rstrip("/").rpartition("/")[2]
    installation.wait_for([slug], timeout_s=250)
    expect(page.locator("#state")).to_have_text("Finished")
    expect(page.locator("main .facts").first).to_contain_text("100 Mbit/s")
    (trial,) = installation.ask(f"experiments/{slug}/result/")["trials"]
    assert trial["parameters"]["link.bandwidth"] == 1e8
    assert trial["metrics"]["elapsed_s"] > 60 * 256 * 1024 * 8 / 1e8, "the time of its bytes on the wire"
    as_the_guide_says("Run it with 100 Mbit/s instead", hands)
