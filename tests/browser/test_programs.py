"""A program is registered in a browser, and an experiment of it planned."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.usefixtures("registered_programs")


def test_it_registers_a_program_and_plans_an_experiment_of_it(page, page_errors):
    page.goto("/workloads/")
    page.get_by_role("link", name="Register a program").click()
    page.get_by_label("Name", exact=True).fill("solver")
    page.get_by_label("Title", exact=True).fill("A solver")
    page.get_by_label("Program", exact=True).fill("/bin/echo 'rate = {steps}'")
    page.get_by_label("Parameters", exact=True).fill("steps: {type: integer, default: 10, title: Steps}")
    page.get_by_label("Figures of merit", exact=True).fill("- {name: rate, regex: 'rate = (\\d+)'}")
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_text("solver is registered, version 1.")).to_be_visible()
    page.goto("/experiments/new/?workload=solver")
    expect(page.locator("[name='parameters.steps']")).to_have_value("10")
    expect(page.locator("[name='parameters.version']")).to_have_value("1")
    expect(page.locator("#preview")).to_contain_text("/bin/echo 'rate = 10'")
    assert page_errors == []
