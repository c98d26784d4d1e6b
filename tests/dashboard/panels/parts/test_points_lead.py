"""Points of charts of result parts lead to their trials."""

from __future__ import annotations

from typing import Any

from dashboard.panels.experiment.results import Results
from dashboard.panels.parts import Measured
from dashboard.panels.parts.envelope import envelope_part
from dashboard.panels.parts.grid import grid_part
from dashboard.panels.parts.inside_mpi import inside_mpi_part
from experiments.models import Experiment
from tests.dashboard.studies_measured import READERS, measured, read

GRID: dict[str, Any] = {
    "name": "Grid",
    "workload": "water",
    "parameters": {"hosts": 2},
    "sweep": {"link.delay": ["0 ms", "4 ms"], "link.loss": ["0 %", "1 %"]},
    "repetitions": 2,
}
PROFILED: dict[str, Any] = {"name": "Profiled", "workload": "water", "sweep": {"hosts": [1, 2, 4]}, "repetitions": 2}


def named(figure: dict[str, Any], name: str) -> dict[str, Any]:
    return next(trace for trace in figure["data"] if trace["name"] == name)


def keys(experiment: Experiment, *names: str) -> list[int]:
    """The configurations in the order of these parameters."""
    rows = experiment.configurations.all()
    return [row.pk for row in sorted(rows, key=lambda row: tuple(row.parameters[name] for name in names))]


def test_jobs_over_a_link_lead_to_their_trials(library) -> None:
    experiment = measured(library, READERS, read)
    shown = envelope_part(Measured.of(experiment), {})
    slow, fast = (named(shown["chart"], f"Measured, {link}") for link in ("10 Mbit/s", "1 Gbit/s"))
    assert slow["of"] + fast["of"] == keys(experiment, "link.bandwidth", "jobs")
    published = [trace for trace in shown["chart"]["data"] if trace["name"].startswith("Published")]
    known = set(Experiment.objects.get(slug="monarc-1999-readers").configurations.values_list("pk", flat=True))
    assert published
    assert all(set(trace["of"]) <= known for trace in published)


def test_lines_and_dots_over_the_link_lead_to_their_trials(library) -> None:
    experiment = measured(
        library, GRID, lambda parameters: {"elapsed_s": 1 + parameters["link.delay"] + parameters["link.loss"]}
    )
    figure = dict(grid_part(Measured.of(experiment), {})["lines"][0]["views"])["As requested"]
    lines = [named(figure, name) for name in ("loss 0 %", "loss 1 %")]
    assert [key for line in lines for key in line["of"]] == keys(experiment, "link.loss", "link.delay")
    dots = named(figure, "loss 0 %, trials")
    assert sorted(dots["trials"]) == sorted(
        experiment.trials.filter(configuration__in=set(lines[0]["of"])).values_list("pk", flat=True)
    )


def test_efficiencies_lead_to_their_trials(library) -> None:
    values = {"elapsed_s": 1.0, "mpi_window_s": 1.0, "mpi_useful_s": 0.8, "mpi_parallel_efficiency": 0.8}
    experiment = measured(library, PROFILED, lambda _: values)
    (table,) = inside_mpi_part(Measured.of(experiment), {})["tables"]
    lines = [trace for trace in table["chart"]["data"] if "of" in trace and not trace["name"].endswith(", trials")]
    assert len(lines) > 1
    assert all(line["of"] == keys(experiment, "hosts") for line in lines)


def test_published_values_lead_to_the_published_study(library) -> None:
    experiment = measured(library, PROFILED, lambda _: {"elapsed_s": 500.0})
    studies = [overlay.experiment for overlay in Results(experiment).overlays]
    known = {row.pk: row.parameters for study in studies for row in study.configurations.all()}
    charts = {chart.element: chart.figure for section in Results(experiment).sections() for chart in section.charts}
    for name in ("time", "speedup", "efficiency"):
        printed = [trace for trace in charts[name]["data"] if trace.get("meta") == "published"]
        assert printed
        for trace in printed:
            assert [known[key]["hosts"] for key in trace["of"]] == trace["x"]
