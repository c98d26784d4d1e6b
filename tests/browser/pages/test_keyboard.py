"""The path from a new experiment to a comparison by keyboard and screen reader."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from experiments.models import Experiment
from tests.dashboard.laboratory import run_waiting
from tests.experiments import factories

FOCUSED = "(e => (e.getAttribute('aria-label') || e.labels?.[0]?.innerText || e.innerText || '').trim())(document.activeElement)"

NEW = """
- heading "New experiment" [level=1]
- region "Workload":
  - heading "Workload" [level=2]
  - radiogroup "Workload":
    - radio /TIP4P water/ [checked]
  - textbox "Name"
- region "Sweep":
  - table
  - button "Add parameter"
- region "Cluster"
- region "Network link":
  - textbox "Bandwidth": 1 Gbit/s
- region "Capture"
- region "Repetition"
- complementary "Preview":
  - tablist "Preview":
    - tab "Preview" [selected]
    - tab "YAML"
  - tabpanel "Preview":
    - region "Configurations"
    - heading "Dry run of configuration 1" [level=3]
  - button "Start first trial"
  - button "Start 6 trials"
"""
EXPERIMENT = """
- heading /TIP4P water, host sweep .*Finished/ [level=1]
- progressbar "Ended trials"
- status: /6 trials/
- navigation "Parts of this experiment":
  - tablist:
    - tab "Answer" [selected]
    - tab "Charts and tables"
    - tab "Configurations (2)"
- tabpanel "Answer":
  - region /2 hosts/:
    - paragraph: Where should I stop, and why?
    - heading /2 hosts/ [level=2]
    - list
    - complementary "Next trials and key figures"
  - heading "Scaling" [level=2]
  - heading "Loop time" [level=3]
  - toolbar "Loop time":
    - button "Show table"
  - figure:
    - paragraph: /No counted trial has measured this/
"""
TRIAL = """
- heading /Trial at 1 host, repetition 1 of 3/ [level=1]:
  - link "Finished"
- tablist "Trial":
  - tab "Overview" [selected]
  - tab "Wire"
  - tab "Measurements"
  - tab "Output"
  - tab "Environment"
- tabpanel "Overview":
  - region "Headline metrics":
    - article:
      - heading "CPU time per rank" [level=3]:
        - link "CPU time per rank"
      - button /s$/
      - img /this trial against 2 other repetitions/
"""
COMPARISON = """
- heading "Comparison of 2" [level=1]
- region "A":
  - link /Trial \\d+/
  - link "baseline"
- region "B":
  - link "Make baseline"
- region /Elapsed time of B is/:
  - heading /Elapsed time of B is/ [level=2]
"""
"""Accessible contents of each page, in this order, possibly with more between."""


def tab_to(page: Page, words: str, most: int = 150) -> None:
    """Press Tab, and arrows in toolbars and tables, to a control with this name."""
    key = "Tab"
    for _ in range(most):
        before = page.evaluate_handle("document.activeElement")
        page.keyboard.press(key)
        if page.evaluate(FOCUSED).startswith(words):
            return
        is_last = page.evaluate("before => before === document.activeElement", before)
        in_group = page.evaluate("document.activeElement.closest('[data-roving]') !== null")
        key = "ArrowRight" if in_group and not is_last else "Tab"
    raise AssertionError(f"neither Tab nor arrows reached {words!r}")


def test_it_leads_from_new_to_trial_and_comparison(page: Page, person, page_errors: list[str]) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.goto("/")
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED) == "Skip to main content"
    tab_to(page, "New experiment")
    page.keyboard.press("Enter")
    page.wait_for_url("**/experiments/new/")
    tab_to(page, "Until it is answered")
    page.keyboard.press("ArrowLeft")
    tab_to(page, "Values")
    page.keyboard.press("Control+a")
    page.keyboard.type("1, 2")
    expect(page.locator("#startbar")).to_contain_text("Start 6 trials")
    expect(page.locator("main")).to_match_aria_snapshot(NEW)
    tab_to(page, "Start 6 trials")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/experiments/(?!new/)"))
    experiment = Experiment.objects.get(published=False)
    run_waiting()
    expect(page.locator("#live")).to_contain_text("6 trials")
    expect(page.locator("#dx")).to_contain_text("2 hosts")  # the answer, made anew as trials end
    expect(page.locator("main")).to_match_aria_snapshot(EXPERIMENT)
    tab_to(page, "Answer")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tabpanel", name="Configurations")).to_be_visible()
    tab_to(page, "1 host, repetition 1")
    page.keyboard.press("Enter")
    page.wait_for_url("**/trials/**")
    expect(page.locator("main")).to_match_aria_snapshot(TRIAL)
    tab_to(page, "Trials")
    page.keyboard.press("Enter")
    page.wait_for_url("**/trials/")
    for key in ("j", "x", "j", "x", "c"):
        page.keyboard.press(key)
    page.wait_for_url("**/compare/?of=*")
    expect(page.locator("main")).to_match_aria_snapshot(COMPARISON)
    assert page.evaluate("document.getAnimations().length") == 0
    assert experiment.trials.count() == 6
    assert page_errors == []


def test_it_reaches_the_output_of_a_trial_in_reading_order(page: Page, finished: Experiment) -> None:
    trial = finished.trials.latest("pk")
    factories.stored_file(trial, "stdout.txt", b"a step of many\n" * 400, "stdout").save()
    page.goto(f"/trials/{trial.pk}/#output")
    output = page.get_by_role("tab", name="Output")
    expect(output).to_have_attribute("aria-selected", "true")
    output.focus()
    stops = []
    expect(page.get_by_role("region", name="Standard output")).to_be_visible()
    for _ in range(6):
        page.keyboard.press("Tab")
        stops.append(page.evaluate(FOCUSED))
    assert stops == [
        *("Copy command", "Exact command", "Download", "Search the whole file", "Search output", "Standard output")
    ]
    page.keyboard.press("End")
    page.wait_for_function("() => document.activeElement.scrollTop > 0")


def test_start_is_within_ten_stops(page: Page, person) -> None:
    page.goto("/experiments/new/")
    expect(page.locator("#startbar")).to_contain_text("trials")
    tab_to(page, "Skip to the Start button", most=2)
    page.keyboard.press("Enter")
    tab_to(page, "Start", most=2)
    assert page.locator("#startbar button:focus").count() == 1


def test_toolbar_is_one_stop_with_arrow_keys(page: Page, finished: Experiment) -> None:
    page.goto(finished.get_absolute_url())
    tools = page.locator("#c-deciding .tools")
    expect(tools).to_have_attribute("role", "toolbar")
    expect(tools.locator(":scope > [tabindex='0']")).to_have_count(1)
    page.get_by_role("button", name="Linear").first.focus()
    for key, name in (("ArrowRight", "Log"), ("ArrowRight", "Table"), ("Home", "Linear"), ("ArrowLeft", "Linear")):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.innerText.trim()") == name
    page.keyboard.press("Tab")
    assert not page.evaluate("document.activeElement.closest('.tools')")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.innerText.trim()") == "Linear"


def test_table_is_one_stop_with_arrow_keys(page: Page, finished: Experiment) -> None:
    page.goto("/trials/")
    expect(page.locator("#list table[data-roving]")).to_be_visible()
    links = page.locator("#list tbody tr a[href^='/trials/']")
    links.first.focus()
    page.keyboard.press("ArrowDown")
    expect(links.nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(links.first).to_be_focused()
    page.keyboard.press("Tab")
    assert not page.evaluate("document.activeElement.closest('table')")
