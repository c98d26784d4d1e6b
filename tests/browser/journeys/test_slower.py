"""Journey: why is B slower than A?"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import violations
from tests.browser.journeys.hands import Hands

pytestmark = pytest.mark.timeout(300)  # the first trials of a machine build the MPI profiler


def test_the_comparison_says_how_much_slower_and_what_was_set_differently(
    hands: Hands, bench: tuple[str, str], as_the_guide_says: Callable[[str, Hands], None]
) -> None:
    page = hands.page
    hands.keys("/", "bench", "Enter")
    page.wait_for_url("**/help/?q=bench")
    hands.press("All experiments")
    page.wait_for_url("**/experiments/?*")
    hands.keys("j", "x", "j", "x", "c")
    page.wait_for_url("**/compare/*")
    answer = page.locator("#answer")
    expect(answer.locator("#verdict")).to_contain_text("of B is higher than that of A")
    expect(answer).to_contain_text("100 Mbit/s")
    assert violations(page) == []
    as_the_guide_says("Why is B slower than A?", hands)
