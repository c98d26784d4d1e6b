"""Registration of a program in a browser, without YAML."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Locator, Page, Route, expect
from pytest_django.live_server_helper import LiveServer

from experiments.models import Experiment, Program, Project
from experiments.models.people.project import DEFAULT_PROJECT
from experiments.specification import parse
from tests.browser.accessibility import violations

pytestmark = pytest.mark.usefixtures("registered_programs")

OUTPUT = "Heat 1.0\nTotal time: 0.1732 s\nLost heat = 1.8e-15\nFinished\n"
MOST_STEPS = 28
"""Clicks and typed fields from *Workloads* to the started experiment; a person takes three minutes."""


class Steps:
    """Counted actions of a user."""

    def __init__(self) -> None:
        self.count = 0

    def click(self, element: Locator) -> None:
        element.click()
        self.count += 1

    def type(self, element: Locator, text: str) -> None:
        element.fill(text)
        self.count += 1

    def choose(self, element: Locator, label: str) -> None:
        element.select_option(label=label)
        self.count += 1


def test_a_maintainer_registers_a_program_tries_an_output_and_starts_an_experiment(
    page: Page, page_errors: list[str]
) -> None:
    steps = Steps()
    page.goto("/workloads/")
    steps.click(page.get_by_role("link", name="Register program"))
    page.wait_for_url("**/workloads/new/")

    program = page.get_by_role("region", name="Program")
    steps.type(program.get_by_label("Name"), "heat")
    steps.type(program.get_by_label("Command"), "/opt/heat/heat {size} {steps} {solver}")
    parameters = page.get_by_role("group", name="Parameter")
    rows = (("size", "Grid points", "20000", "10.."), ("steps", "", "100", ""), ("solver", "", "cg", "cg, jacobi"))
    for number, (name, title, default, allowed) in enumerate(rows):
        if number:
            steps.click(page.get_by_role("button", name="Add parameter"))
            expect(parameters.nth(number).get_by_label("Name")).to_be_focused()
        row = parameters.nth(number)
        steps.type(row.get_by_label("Name"), name)
        if title:
            steps.type(row.get_by_label("Title"), title)
        if name == "solver":
            steps.choose(row.get_by_label("Type"), "text")
        steps.type(row.get_by_label("Default"), default)
        if allowed:
            steps.type(row.get_by_label("Allowed"), allowed)

    steps.type(page.get_by_label("Paste an output"), OUTPUT)
    figures, read = page.get_by_role("group", name="Figure"), page.locator("#read")
    steps.type(figures.nth(0).get_by_label("Name"), "time_s")
    steps.type(figures.nth(0).get_by_label("Unit"), "s")
    steps.choose(figures.nth(0).get_by_label("Better"), "lower")
    pattern = figures.nth(0).get_by_label("Pattern", exact=True)
    steps.type(pattern, "Total time: 0")
    expect(page.locator("#err-extract-0-regex")).to_contain_text("needs a group")
    expect(pattern).to_have_attribute("aria-invalid", "true")
    steps.type(pattern, r"Total time: (\S+) s")
    expect(read.locator("mark")).to_have_text("Total time: 0.1732 s")
    expect(pattern).not_to_have_attribute("aria-invalid", "true")
    steps.click(page.get_by_role("button", name="Add figure"))
    steps.type(figures.nth(1).get_by_label("Name"), "lost_heat")
    steps.type(figures.nth(1).get_by_label("Pattern", exact=True), r"Lost heat = (\S+)")
    expect(read.locator("mark")).to_have_count(2)
    expect(read.get_by_role("link", name="line 3")).to_be_visible()
    assert violations(page) == []

    steps.click(page.get_by_role("button", name="Register and open New experiment"))
    page.wait_for_url("**/experiments/new/?workload=heat")
    expect(page.locator("[name=workload]:checked")).to_have_value("heat")
    expect(page.get_by_label("Grid points")).to_have_value("20000")
    steps.type(page.get_by_role("textbox", name="Name", exact=True), "Heat on hosts")
    steps.click(page.locator("#startbar button.btn-primary"))
    page.wait_for_url("**/experiments/heat-on-hosts/")
    experiment = Experiment.objects.get(slug="heat-on-hosts")
    assert (experiment.workload, experiment.specification["parameters"]["version"]) == ("heat", 1)
    definition = Program.objects.get(slug="heat").definition
    assert definition["placeholders"] == {
        "size": {"type": "integer", "title": "Grid points", "default": 20000, "minimum": 10},
        "steps": {"type": "integer", "default": 100},
        "solver": {"type": "text", "default": "cg", "choices": ["cg", "jacobi"]},
    }
    assert [figure["name"] for figure in definition["extract"]] == ["time_s", "lost_heat"]
    assert steps.count <= MOST_STEPS
    assert page_errors == []


def test_rows_are_added_and_removed_by_keyboard(page: Page) -> None:
    page.goto("/workloads/new/")
    figures = page.get_by_role("group", name="Figure")
    page.get_by_role("button", name="Add figure").focus()
    page.keyboard.press("Enter")
    expect(figures).to_have_count(2)
    page.keyboard.type("time_s")
    expect(page.locator("[name='extract.1.name']")).to_have_value("time_s")
    remove = figures.nth(1).get_by_role("button", name="Remove figure")
    remove.focus()
    page.keyboard.press("Enter")
    expect(figures).to_have_count(1)
    expect(page.locator("[name='extract.0.name']")).to_be_focused()


def test_a_read_value_stays_in_view_while_a_pattern_is_edited(page: Page) -> None:
    page.goto("/workloads/new/")
    output = page.get_by_label("Paste an output")
    output.fill(OUTPUT)
    for _ in range(7):
        page.get_by_role("button", name="Add figure").click()
    pattern = page.get_by_label("Pattern", exact=True).last
    pattern.fill(r"Total time: (\S+) s")
    in_table, at_row = page.locator("#read tbody tr").last, page.locator(".row-reading:visible").last
    for width in (1440, 1101):
        page.set_viewport_size({"width": width, "height": 900})
        pattern.scroll_into_view_if_needed()
        expect(in_table).to_contain_text("0.1732")
        expect(in_table).to_be_in_viewport()
        expect(at_row).to_have_count(0)
    page.set_viewport_size({"width": 390, "height": 844})
    pattern.scroll_into_view_if_needed()
    expect(at_row).to_contain_text("0.1732")
    expect(at_row).to_be_in_viewport()


def test_form_registers_without_scripts(browser: Browser, page: Page, live_server: LiveServer) -> None:
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    context.add_cookies(page.context.cookies())  # type: ignore[arg-type]
    plain = context.new_page()
    plain.goto("/workloads/new/")
    fields = {"name": "plain", "program": "/opt/plain {n} {m}", "placeholders.0.name": "n", "placeholders.1.name": "m"}
    for name, text in {**fields, "extract.0.name": "time_s", "extract.0.regex": "(x)"}.items():
        plain.locator(f"[name='{name}']").fill(text)
    plain.get_by_role("button", name="Register program").click()
    plain.wait_for_url("**/workloads/plain/")
    assert list(Program.objects.get(slug="plain").definition["placeholders"]) == ["n", "m"]
    context.close()


def test_a_clone_takes_the_newer_version_of_its_program(page: Page, person: User) -> None:
    heat = {"name": "heat", "program": ["/opt/heat", "{n}"], "placeholders": {"n": {"default": 7}}}
    Program.register(heat)
    spec = parse({"name": "Heat", "workload": "heat", "sweep": {"hosts": [1, 2]}})
    Experiment.submit(spec, project=Project.objects.get(slug=DEFAULT_PROJECT), owner=person)
    Program.register({**heat, "program": ["/opt/heat", "{n}", "{m}"], "placeholders": {"n": {}, "m": {"default": 9}}})
    page.goto("/experiments/new/?from=heat")
    version = page.locator("[name='parameters.version']")
    expect(version).to_have_value("1")

    def typed_meanwhile(route: Route) -> None:
        page.locator("[name='name']").fill("Typed meanwhile")
        route.continue_()

    page.route("**/experiments/new/fields/", typed_meanwhile)
    page.get_by_role("button", name="Use version 2").click()
    expect(version).to_have_value("2")
    expect(page.locator("[name='parameters.m']")).to_have_value("9")
    expect(page.locator("[name='parameters.n']")).to_have_value("7")
    expect(page.locator("[name='name']")).to_have_value("Typed meanwhile")
    expect(page.get_by_role("button", name="Use version 2")).to_have_count(0)
    assert violations(page) == []


def test_old_addresses_of_the_list_lead_to_the_page_of_the_workload(page: Page) -> None:
    page.goto("/workloads/#water")
    page.wait_for_url("**/workloads/water/")
    page.goto("/workloads/#nothing")
    expect(page.get_by_role("link", name="TIP4P water")).to_be_visible()


def test_list_of_workloads_is_short_on_every_screen(page: Page) -> None:
    page.goto("/workloads/")
    assert len(page.locator("body").inner_text().split()) <= 250
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollHeight") < 3000


def test_a_refused_form_leads_to_its_first_error_and_offers_the_output_before_the_button(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/workloads/new/")
    output, button = page.get_by_label("Paste an output"), page.get_by_role("button", name="Register program")
    above, below = output.bounding_box(), button.bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] < below["y"]
    page.locator("[name=name]").fill("heat")
    page.locator("[name=program]").fill("heat {n} | tee out")
    page.locator("[name='extract.0.name']").fill("time_s")
    page.locator("[name='extract.0.regex']").fill("(x)")
    button.click()
    expect(page.locator("#refused")).to_contain_text("Not saved: 1 field has errors.")
    expect(page.locator("[name=program]")).to_be_focused()
    page.locator("[name=program]").fill("heat | tee out")
    button.click()
    refused = page.locator("#refused")
    expect(refused).to_contain_text("No shell runs the command: the program gets |")
    expect(refused).to_contain_text("heat is not in the PATH of this server")
    assert violations(page) == []
    page.get_by_role("button", name="Register all the same").click()
    page.wait_for_url("**/workloads/heat/")
    expect(page.get_by_role("region", name="Versions of heat")).to_contain_text("heat | tee out")
    assert violations(page) == []
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto("/workloads/heat/edit/")
    wide, form = button_of(page).bounding_box(), page.locator(".facts-form").bounding_box()
    assert wide is not None
    assert form is not None
    assert 0 <= wide["y"] - (form["y"] + form["height"]) < 60


def button_of(page: Page) -> Locator:
    return page.get_by_role("button", name="Save program")


def test_a_program_is_renamed_retired_restored_and_deleted_with_confirmation(
    page: Page, page_errors: list[str]
) -> None:
    Program.register({"name": "heat", "program": ["/opt/heat", "{n}"], "placeholders": {"n": {"default": 1}}})
    page.goto("/workloads/heat/")

    def choose(name: str) -> None:
        page.get_by_text("More actions").click()
        page.get_by_role("button", name=name).click()
        assert violations(page) == []

    choose("Change title")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Title")).to_be_focused()
    dialog.get_by_label("Title").fill("Heat equation")
    dialog.get_by_role("button", name="Change title").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Heat equation")

    choose("Retire program")
    expect(dialog).to_contain_text("Its experiments stay readable")
    dialog.get_by_role("button", name="Keep program").click()
    expect(page.get_by_role("link", name="New experiment")).to_be_visible()
    choose("Retire program")
    dialog.get_by_role("button", name="Retire program").click()
    expect(page.get_by_role("link", name="New experiment")).to_have_count(0)
    assert violations(page) == []
    page.goto("/workloads/")
    page.get_by_text("Retired programs (1)").click()
    page.get_by_role("link", name="Heat equation").click()
    page.get_by_role("button", name="Restore program").click()
    expect(page.get_by_role("link", name="New experiment")).to_be_visible()

    choose("Delete program")
    expect(dialog).to_contain_text("cannot be undone")
    dialog.get_by_role("button", name="Delete program").click()
    page.wait_for_url("**/workloads/")
    expect(page.get_by_role("link", name="Heat equation")).to_have_count(0)
    assert Program.latest("heat") is None
    assert page_errors == []
