"""Findings, charts, tables and REST give one number for one share of the time."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pytest
from django.test import Client

from analysis.conclusions.wording import percent
from dashboard.panels.experiment.results import Results
from experiments.models import Experiment, Project
from experiments.selectors.diagnosis import diagnosis_of
from tests.dashboard.api.clients import EXPERIMENTS
from tests.dashboard.studies_measured import SIZES, measured, profiled

DESCHEDULED = {1: 0.0, 2: 0.02, 4: 0.29}
"""Share of the MPI window, which is shorter than the run."""
LABELS = {
    "mpi_useful_share": "Computing",
    "mpi_descheduled_share": "Descheduled outside MPI",
    "mpi_blocked_outside_share": "Blocked outside MPI",
    "mpi_on_cpu_share": "In MPI, on CPU",
    "mpi_blocked_share": "In MPI, off the CPU",
}


@pytest.fixture
def experiment(library: Project) -> Experiment:
    scatter = itertools.cycle((0.9, 1.0, 1.15))

    def values(parameters: Mapping[str, Any]) -> dict[str, float]:
        factor, off = next(scatter), DESCHEDULED[parameters["hosts"]]
        times = {"elapsed_s": 10.0 / parameters["hosts"] * factor, "cpu_mean_rank_s": 4.0 / parameters["hosts"]}
        shares = {"mpi_no_core_share": off * factor + 0.01, "mpi_descheduled_share": off * factor}
        return profiled(parameters) | times | shares | {"mpi_blocked_outside_share": 0.01}

    return measured(library, SIZES | {"repetitions": 3}, values)


def drawn(experiment: Experiment, view: str) -> dict[str, list[str]]:
    """Return the texts of the bars of the time breakdown by part."""
    charts = [chart for section in Results(experiment).sections() for chart in section.charts]
    views = dict(next(chart.views for chart in charts if chart.element == "where-time-goes"))
    return {bar["name"]: bar["text"] for bar in views[view]["data"]}


@pytest.mark.parametrize("view", ["Seconds", "Share"])
def test_the_chart_has_the_shares_of_the_tables_and_of_rest(page: Client, experiment: Experiment, view: str) -> None:
    (table,) = page.get(f"{EXPERIMENTS}{experiment.slug}/efficiencies/").json()["tables"]
    bars = drawn(experiment, view)
    for metric, label in LABELS.items():
        assert bars[label] == [percent(size[metric]) for size in table["sizes"]]
    assert "".join(bars.get("Before MPI_Init, after MPI_Finalize", [])) == ""


def test_the_findings_have_the_shares_of_the_chart_and_name_their_size(experiment: Experiment) -> None:
    bars = drawn(experiment, "Share")
    statement = next(f.statement for f in diagnosis_of(experiment).study.report.findings if f.rule == "oversubscribed")
    assert f" {bars['Descheduled outside MPI'][-1]} (outside MPI)" in statement
    assert statement.endswith("at 4 hosts.")


def test_the_time_by_size_is_what_the_chart_leaves_for_computing(experiment: Experiment) -> None:
    bars = drawn(experiment, "Share")
    for index, row in enumerate(diagnosis_of(experiment).study.slices[0].time):
        assert percent(1 - row.off_cpu_share) == bars["Computing"][index]
