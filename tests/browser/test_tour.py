"""The tour of the first visit, by keyboard alone: from Home to a running experiment."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from experiments.models import Experiment
from tests.browser.accessibility import violations

STEPS = ("What runs", "What varies", "What will happen", "Start it")


def press(page: Page, name: str) -> None:
    """Go to a button or link by Tab, and press it."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()").startswith(name):
            page.keyboard.press("Enter")
            return
    raise AssertionError(f"Tab never reached {name!r}")


def test_it_leads_from_home_to_a_running_experiment(page: Page, complaints: list[str]) -> None:
    page.goto("/")
    press(page, "Take the tour")
    tour = page.get_by_role("region", name="Tour")
    for number, words in enumerate(STEPS, start=1):
        expect(tour).to_contain_text(f"Step {number} of 4")
        expect(tour.locator("li:visible")).to_have_count(1)
        expect(tour).to_contain_text(words)
        expect(tour).to_be_focused()
        expect(tour).to_be_in_viewport()
        expect(page.locator(".toured")).to_be_visible()
        if number == 3:
            page.set_viewport_size({"width": 390, "height": 844})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert violations(page) == []
        if number < len(STEPS):
            press(page, "Next")
    press(page, "Start 15 trials")
    expect(page.get_by_role("region", name="Tour")).to_contain_text("It runs.")
    [experiment] = Experiment.objects.filter(published=False)
    assert page.url.endswith(f"{experiment.get_absolute_url()}?tour=1")
    assert violations(page) == []
    press(page, "End the tour")
    expect(page.get_by_role("region", name="Tour")).to_have_count(0)
    assert complaints == []


def test_it_goes_back_survives_another_workload_and_is_left(page: Page, complaints: list[str]) -> None:
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
    page.evaluate("document.getElementById('wl-ring').click()")  # as another hand would: the focus stays where it is
    expect(page.locator("[name='parameters.message_bytes']")).to_be_visible()
    expect(page.locator("[name='parameters.steps']")).to_be_visible()
    expect(tour).to_be_focused()
    page.keyboard.press("Escape")
    expect(tour).to_have_count(0)
    expect(page.locator(".toured")).to_have_count(0)
    expect(page.get_by_role("heading", name="New experiment")).to_be_focused()
    page.locator("label[for=wl-pingpong]").click()
    expect(page.locator("[name='parameters.steps']")).to_have_count(0)
    page.wait_for_function("() => !document.querySelector('.htmx-request, .htmx-settling, .htmx-swapping')")
    assert page.locator("#tour, .toured").count() == 0, "another workload does not bring it back"
    assert complaints == []


def test_without_scripts_its_steps_are_a_list(client, person) -> None:
    client.force_login(person)
    answer = client.get("/experiments/new/?library=water-quick&tour=1").content.decode()
    assert all(words in answer for words in STEPS)
    assert 'id="tour"' not in client.get("/experiments/new/?library=water-quick").content.decode()
