"""Error pages: heading, advice and a link, at every width, light and dark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from django.core.exceptions import PermissionDenied
from playwright.sync_api import Page, expect

from dashboard.pages import quotas
from dashboard.requests.concurrency_limits import Busy
from experiments.common import budget
from tests.browser.accessibility import violations, violations_of_colours


@dataclass(frozen=True)
class Failing:
    status: int
    heading: str
    advice: str
    leads_to: str
    raised: Exception | None = None


CASES = {
    "404": Failing(404, "Page not found", "The page does not exist.", "/experiments/"),
    "403": Failing(403, "You do not have permission for this", "maintainers", "/projects/", PermissionDenied()),
    "too many": Failing(429, "Request refused", "Wait until one is over.", "/", Busy("Wait until one is over.")),
    "too much": Failing(503, "Request refused", "Request less at once.", "/", budget.Exhausted()),
    "500": Failing(500, "Internal error", "Reload the page", "/", RuntimeError("not foreseen")),
    "too large": Failing(413, "Request refused", "Send less at once", "/"),
    "old form": Failing(403, "Form expired", "reload the page", "/"),
}


@pytest.fixture
def provoke(page: Page, settings, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], int]:
    """Come to the page of an error as one comes there; its status."""

    def _raise(error: Exception) -> None:
        raise error

    def _sent(token: str) -> int:
        page.goto("/account/")
        page.evaluate(
            "value => { for (const e of document.querySelectorAll('[name=csrfmiddlewaretoken]')) e.value = value; }",
            token,
        )
        form = page.locator("form[data-display]")
        with page.expect_navigation() as answer:
            form.evaluate("form => HTMLFormElement.prototype.submit.call(form)")
        return answer.value.status

    def provoke(name: str) -> int:
        error = CASES[name].raised
        if name == "too large":
            settings.MAX_BODY_BYTES = 8
            return _sent("x")
        if name == "old form":
            return _sent("x" * 64)
        if error is not None:
            monkeypatch.setattr(quotas, "quotas_of", lambda projects: _raise(error))
        answer = page.goto("/quotas/" if error is not None else "/experiments/nothing-is-called-so/")
        assert answer is not None
        return answer.status

    return provoke


@pytest.mark.parametrize("name", CASES)
def test_it_says_what_to_do_and_leads_on(page: Page, provoke: Callable[[str], int], name: str) -> None:
    case = CASES[name]
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    page.set_viewport_size({"width": 390, "height": 844})
    assert provoke(name) == case.status
    expect(page.get_by_role("heading", level=1)).to_have_text(case.heading)
    expect(page.locator("body")).to_contain_text(case.advice)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    wrong = violations(page)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1440, "height": 900})
    assert wrong + violations_of_colours(page) == []
    way = page.locator(f"main a[href='{case.leads_to}']").first
    way.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{case.leads_to}")
    expect(page.locator("main h1").first).to_be_visible()
