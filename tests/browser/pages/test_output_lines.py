"""A figure of a trial links to its line in the output, behind another tab."""

from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from experiments.models import Cluster, Experiment, Project, Trial, TrialResult
from experiments.models.people.project import DEFAULT_PROJECT
from experiments.specification import parse
from tests.browser.accessibility import violations
from tests.experiments import factories
from tests.experiments.workloads.samples import sample


def test_link_of_a_figure_shows_its_line(page: Page, person: User, session_directory: object) -> None:
    fields = {"workload": "water", "parameters": {"molecules": 512, "steps": 100}, "sweep": {"hosts": [4]}}
    spec = parse({"name": "Water", "repetitions": 1, **fields})
    Experiment.submit(spec, project=Project.objects.get(slug=DEFAULT_PROJECT), owner=person)
    trial = Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1")
    trial.start_running(command=["mpirun", "lmp"], conditions={})
    trial.start_analysing()
    output = factories.stored_file(trial, content=sample("lammps-water-stdout.txt").encode())
    trial.finish(TrialResult({"all": {"water.loop_time_s": 8.62671}}, {}, "good", artifacts=[output]))
    page.goto(f"{trial.get_absolute_url()}?tab=measurements")
    page.get_by_role("link", name="line of output").click()
    line = page.locator(":target", has_text="Loop time of 8.62671 on 4 procs for 100 steps with 1536 atoms")
    expect(line).to_be_in_viewport()
    assert page.url.endswith("?tab=output#L54")
    assert violations(page) == []


def test_lines_of_a_long_output_are_searched_and_have_addresses(
    page: Page, finished: Experiment, page_errors: list[str]
) -> None:
    trial = finished.trials.latest("pk")
    lines = [f"step {number}\n" for number in range(1, 60_001)]
    lines[29_999] = "WARNING: an atom was lost\n"
    factories.stored_file(trial, content="".join(lines).encode()).save()
    page.goto(f"{trial.get_absolute_url()}?tab=output")
    target = page.locator(":target")
    expect(page.locator("#L60000")).to_be_visible()
    page.get_by_role("searchbox", name="Search the whole file").fill("warning")
    page.keyboard.press("Enter")
    expect(target).to_have_text("30000WARNING: an atom was lost\n")
    expect(target).to_be_in_viewport()
    assert page.url.endswith("?tab=output&words=warning#L30000")
    page.goto(f"{trial.get_absolute_url()}?tab=output#L45000")
    expect(target).to_have_text("45000step 45000\n")
    page.locator("#L45001 a").click()
    expect(target).to_have_text("45001step 45001\n")
    page.evaluate("location.hash = '#L12'")  # is not shown
    expect(target).to_have_text("12step 12\n")
    assert violations(page) == []
    assert page_errors == []
