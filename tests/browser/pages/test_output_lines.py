"""A figure of a trial links to its line in the output, which is behind another tab."""

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
    page.goto(trial.get_absolute_url())
    line = page.locator("mark", has_text="Loop time of 8.62671")
    expect(line).to_be_hidden()
    page.get_by_role("link", name="line 54").click()
    expect(page.locator("mark:target")).to_have_text("Loop time of 8.62671 on 4 procs for 100 steps with 1536 atoms")
    expect(line).to_be_in_viewport()
    assert violations(page) == []
