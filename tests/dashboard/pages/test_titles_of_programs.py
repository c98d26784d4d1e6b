"""Titles and units of a registered program, on every page that shows them."""

from __future__ import annotations

import json

import pytest
from django.db import connection
from django.urls import reverse

from dashboard.labels import axis_label, parameter_label, value_words
from dashboard.panels.experiment.results import Results
from experiments.models import Cluster, Program, Trial, TrialResult
from experiments.selectors.question import question_of
from experiments.selectors.study import study_of
from experiments.workloads.extractors import Extractor
from tests.dashboard.texts import text_of

pytestmark = pytest.mark.usefixtures("registered_programs")
HEAT = {
    "name": "heat",
    "program": ["/opt/heat", "{n}", "{t_end}", "{steps}"],
    "placeholders": {
        "n": {"default": 10, "title": "Grid points"},
        "t_end": {"type": "number", "default": 1.5, "title": "Simulated time", "unit": "s"},
        "steps": {"default": 3, "title": "Heat steps"},
    },
    "extract": [
        {"name": "time_s", "unit": "s", "direction": "lower", "regex": r"(\S+) s"},
        {"name": "loss", "label": "Lost heat", "unit": "J", "regex": r"(\S+) J"},
    ],
}


def measure(submit):
    """Return an experiment of four configurations."""
    parameters = {"hosts": 1, "t_end": 2.5}
    experiment = submit(name="Heat", workload="heat", parameters=parameters, sweep={"n": [100, 2000], "steps": [5, 6]})
    while trial := Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1"):
        trial.start_running(command=["heat"], conditions={"cores": 2})
        trial.start_analysing()
        n = trial.configuration.parameters["n"]
        values = {"elapsed_s": n / 1000, "heat.time_s": n / 2000, "heat.loss": 0.5}
        trial.finish(TrialResult({"all": values}, {}, "good"))
    connection.check_constraints()  # as a commit does: what the explorer reads is written
    return experiment


@pytest.fixture
def measured(submit):
    Program.register(HEAT)
    return measure(submit)


def test_figures_without_a_title_have_their_name_without_the_unit():
    labels = {name: Extractor(name=name, unit=unit, regex="(x)").figure("heat").label for name, unit in
              (("time_s", "s"), ("phase_1", "1"), ("rate", "MB/s"), ("s", "s"))}  # fmt: skip
    assert labels == {"time_s": "Time", "phase_1": "Phase 1", "rate": "Rate", "s": "S"}


def test_charts_and_tables_of_an_experiment_have_them(measured):
    results = Results(measured)
    charts = {chart.title: chart.figure for section in results.sections() for chart in section.charts}
    assert {"Time", "Lost heat"} <= charts.keys()
    layout = charts["Lost heat"]["layout"]
    assert layout["xaxis"]["title"]["text"] == "Grid points"
    assert layout["yaxis"]["title"]["text"].endswith("J)")
    assert results.table()["names"] == ["Hosts", "Grid points", "Heat steps"]
    assert results.table()["rows"][0]["point"] == "grid points 100, heat steps 5"
    assert axis_label("t_end", "heat") == "Simulated time (s)"


def test_other_pages_have_them(measured, page, submit):
    trial = measured.trials.latest("pk")
    new = text_of(page.get(f"{reverse('new')}?from={measured.slug}"))
    assert "Grid points" in new
    trial_page = text_of(page.get(trial.get_absolute_url()))
    assert "Simulated time" in trial_page
    assert "2.5\u202fs" in trial_page
    explored = page.get(reverse("explore"), {"y": "heat.loss", "x": "n", "workload": "heat"})
    (figure,) = [chart.figure for chart in explored.context["charts"]]
    assert figure["layout"]["xaxis"]["title"]["text"] == "Grid points"
    assert "Lost heat" in figure["layout"]["yaxis"]["title"]["text"]
    other = measure(submit)
    compared = text_of(page.get(reverse("compare"), {"of": f"e:{measured.slug},e:{other.slug}"}))
    assert "Lost heat" in compared


def test_exports_and_rest_keep_the_ids(measured, page):
    answer = page.get("/api/v1/experiments/heat/result/").json()
    assert "heat.loss" in json.dumps(answer)
    assert '"n": 100' in json.dumps(answer)
    assert "Grid points" not in json.dumps(answer)


def test_a_name_that_two_programs_describe_otherwise_needs_its_program(library):
    Program.register(HEAT)
    assert parameter_label("n") == "Grid points"
    assert parameter_label("steps") == "Steps", "water has such a parameter too"
    assert parameter_label("steps", "heat") == "Heat steps"
    other = {"name": "ice", "program": ["ice", "{n}"], "placeholders": {"n": {"default": 1, "unit": "B"}}}
    Program.register(other)
    assert (parameter_label("n"), parameter_label("n", "heat"), parameter_label("n", "ice")) == (
        "N",
        "Grid points",
        "N",
    )
    assert (value_words("n", 4096), value_words("n", 4096, "ice")) == ("4\u202f096", "4 KiB")


def test_a_clone_offers_the_newer_version_of_its_program(measured, page):
    clone = f"{reverse('new')}?from={measured.slug}"
    assert page.get(clone).context["form"].newer_version is None
    Program.register({**HEAT, "environment": {"MODE": "fast"}})
    form = page.get(clone).context["form"]
    assert form.newer_version == {"chosen": 1, "latest": 2}
    offer = 'hx-vals=\'{"parameters.version": "2"}\''
    assert offer in text_of(page.get(clone))
    chosen = {"name": "Again", "workload": "heat", "sweep_name": "n", "sweep_values": "1, 2", "parameters.t_end": "3"}
    for version, offers in (("1", 1), ("2", 0)):
        answer = page.post(reverse("new-preview"), {**chosen, "parameters.version": version})
        assert text_of(answer).count(offer) == offers
    posted = {"name": "Again", "workload": "heat", "sweep_name": "n", "sweep_values": "1, 2", "parameters.t_end": "3"}
    changed = page.post(reverse("new-fields"), {**posted, "parameters.version": "2"}).context["form"]
    assert changed.newer_version is None
    assert changed.draft["parameters"] == {"version": 2, "t_end": 3}


def test_answers_name_parameters_by_their_titles(measured):
    factors = question_of(measured, study_of(measured)).factors
    assert [(factor.name, factor.label) for factor in factors] == [("n", "grid points"), ("steps", "heat steps")]
