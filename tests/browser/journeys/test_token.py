"""Journey: a token is made, used by a program, and ended."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import violations
from tests.browser.journeys.hands import Hands
from tests.browser.journeys.installation import Installation

pytestmark = pytest.mark.timeout(300)


def status(installation: Installation, key: str, path: str, body: bytes | None = None) -> int:
    """Return the HTTP status of a REST request with this token."""
    request = urllib.request.Request(  # noqa: S310 (our own address)
        f"{installation.address}/api/v1/{path}",
        data=body,
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


def test_a_program_reads_with_a_token_until_it_is_ended(
    hands: Hands, installation: Installation, as_the_guide_says: Callable[[str, Hands], None]
) -> None:
    page = hands.page
    hands.press("Account")
    hands.press("Account")
    page.wait_for_url("**/account/")
    hands.type("Name", "script")
    hands.type("Rights", "read and submit")
    hands.press("Create token")
    key = page.locator("#key").inner_text()
    assert violations(page) == []
    assert status(installation, key, "experiments/") == 200
    assert (
        status(installation, key, "validate/", b'{"name": "Asked", "workload": "ring", "sweep": {"hosts": [2]}}') == 200
    )
    assert status(installation, key, "clusters/local/test/", b"{}") == 403  # more than it may
    hands.press("Account")
    hands.press("Account")
    expect(page.locator("#key")).to_have_count(0)  # shown once
    hands.press("Delete script")
    hands.press("Delete token")
    expect(page.get_by_role("rowheader", name="script")).to_have_count(0)
    assert status(installation, key, "experiments/") == 401
    as_the_guide_says("Make a token and use it", hands)
