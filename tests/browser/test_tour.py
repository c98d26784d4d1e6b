"""The tour of the first visit, by keyboard: Home to a running experiment."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

_IS_IN_FRONT = """() => [...document.querySelectorAll("#tour li, #tour .acts > *")].filter(e => e.offsetParent)
    .every(e => {
        const box = e.getBoundingClientRect();
        return [box.top + 3, box.bottom - 3].every(y =>
            document.elementFromPoint(box.left + 5, y)?.closest("#tour"));
    })"""
"""True if nothing covers the step and its buttons, and all are in the window."""
STEPS = ("Workload.", "Sweep.", "Preview.", "Start.")


def test_it_goes_back_survives_another_workload_and_is_left(page: Page, page_errors: list[str]) -> None:
    page.goto("/help/")
    page.get_by_role("link", name="Take the tour").click()
    tour = page.get_by_role("region", name="Tour")
    tour.get_by_role("button", name="Next").click()
    tour.get_by_role("button", name="Back").click()
    expect(tour).to_contain_text("Step 1 of 4")
    page.locator("label[for=wl-pingpong]").click()
    expect(page.locator("[name='parameters.message_bytes']")).to_be_visible()
    expect(tour).to_be_visible()
    expect(page.locator("section.toured").get_by_role("heading")).to_have_text("Workload")
    tour.focus()
    page.evaluate("document.getElementById('wl-ring').click()")  # without moving the focus
    expect(page.locator("[name='parameters.message_bytes']")).to_be_visible()
    expect(page.locator("[name='parameters.steps']")).to_be_visible()
    expect(tour).to_be_focused()
    page.keyboard.press("Escape")
    expect(tour).to_have_count(0)
    expect(page.locator(".toured")).to_have_count(0)
    assert "tour" not in page.url
    expect(page.get_by_role("heading", name="New experiment")).to_be_focused()
    page.locator("label[for=wl-pingpong]").click()
    expect(page.locator("[name='parameters.steps']")).to_have_count(0)
    page.wait_for_function("() => !document.querySelector('.htmx-request, .htmx-settling, .htmx-swapping')")
    assert page.locator("#tour, .toured").count() == 0, "another workload does not bring it back"
    assert page_errors == []


@pytest.mark.parametrize("size", [(1366, 768), (1280, 900), (390, 844)])
def test_each_step_is_in_view_with_its_buttons(page: Page, size: tuple[int, int]) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto("/experiments/new/?tour=1")
    tour = page.get_by_role("region", name="Tour")
    for number in range(len(STEPS)):
        if number:
            tour.get_by_role("button", name="Next").click()
        expect(tour).to_contain_text(f"Step {number + 1} of 4")
        page.wait_for_function("() => !document.querySelector('.htmx-request, .htmx-settling, .htmx-swapping')")
        page.wait_for_function(_IS_IN_FRONT, timeout=10_000)


def test_without_scripts_its_steps_are_a_list(client, person) -> None:
    client.force_login(person)
    answer = client.get("/experiments/new/?tour=1").content.decode()
    assert all(words in answer for words in STEPS)
    assert 'id="tour"' not in client.get("/experiments/new/").content.decode()
