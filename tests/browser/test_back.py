"""Back, reload and reconnection: fields and page agree."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from experiments.models import Experiment

WORDS = "Name or tag"


def test_it_goes_back_through_the_questions_to_a_list(page: Page, finished: Experiment, page_errors: list[str]) -> None:
    page.goto("/experiments/")
    words, rows = page.get_by_role("searchbox", name=WORDS), page.locator("#list tbody tr")
    all_rows = rows.count()
    words.fill("two hosts")
    expect(page).to_have_url(re.compile("q=two"))
    with page.expect_response(re.compile("q=two")):
        words.blur()  # the same question again
    words.fill("nothing like this")
    expect(page).to_have_url(re.compile("q=nothing"))
    page.go_back()
    expect(words).to_have_value("two hosts")
    expect(rows).to_have_count(1)
    page.go_back()
    expect(words).to_have_value("")
    expect(rows).to_have_count(all_rows)
    assert page.evaluate("sessionStorage.getItem('htmx-history-cache')") is None  # no list is kept for the next test
    assert page_errors == []


@pytest.mark.parametrize("address", ["/experiments/?q=two", "/"])
def test_it_comes_back_to_a_whole_page_whose_parts_were_renewed(
    page: Page, finished: Experiment, address: str, page_errors: list[str]
) -> None:
    page.goto(address)
    heading = page.get_by_role("heading", level=1).inner_text()
    renewed = "document.querySelector('[role=search].filters, [hx-trigger*=focus]').dispatchEvent(new Event('{}'))"
    with page.expect_response(lambda answer: answer.request.headers.get("hx-request") == "true"):
        page.evaluate(renewed.format("change") if "experiments" in address else "dispatchEvent(new Event('focus'))")
    page.goto("/clusters/")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    assert page_errors == []


def test_a_form_that_was_not_answered_asks_again_when_the_network_is_back(page: Page) -> None:
    page.goto("/experiments/new/")
    expect(page.locator("#startbar")).to_contain_text("Start round 1: 9 trials")
    page.context.set_offline(True)
    with page.expect_event("requestfailed"):
        page.locator("[name=sweep_values]").fill("1, 2")
    expect(page.locator("#startbar")).to_contain_text("Start round 1: 9 trials")
    page.context.set_offline(False)
    expect(page.locator("#startbar")).to_contain_text("Start round 1: 6 trials")


KEPT = "dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))"
"""Dispatch the event of a page restored from the cache, which the shell lacks."""


def test_a_selection_is_restored_with_its_page(page: Page) -> None:
    page.goto("/people/")
    choice = page.locator("[name=kind]")
    stood = choice.input_value()
    page.evaluate("document.querySelector('[name=kind]').selectedIndex = 1")
    assert choice.input_value() != stood
    page.evaluate(KEPT)
    expect(choice).to_have_value(stood)
