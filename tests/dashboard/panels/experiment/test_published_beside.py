"""Published results are a series in charts, comparisons and exports."""

import csv
import io
import json

import pytest
from django.db import connection
from django.urls import reverse

from dashboard.panels.experiment.results import Results
from dashboard.panels.parts import Measured
from experiments.models import Experiment, Measurement
from tests.dashboard.studies_measured import LADDER, READERS, STAGING, measured, read, solve, stage

WATER = {"name": "Water", "workload": "water", "sweep": {"hosts": [2, 4]}, "repetitions": 2}
WIDE = {
    "name": "Wide",
    "workload": "pingpong",
    "parameters": {"hosts": 2, "message_bytes": "4 MiB"},
    "sweep": {"link.delay": ["0 ms", "16 ms"], "link.loss": ["0 %", "1 %"]},
    "repetitions": 2,
}


def scaled(parameters):
    return {"elapsed_s": 240.0, "cpu_mean_rank_s": 100.0, "packets": 2e5, "throughput_Bps": 6e5}


def send(parameters):
    return {"elapsed_s": 9.0, "pingpong.transfer_time_s": 0.7 + 60 * parameters["link.delay"]}


STUDIES = [
    ("guster-2007-water", WATER, scaled),
    ("pinning-2007-wan", WIDE, send),
    ("monarc-1999-readers", READERS, read),
    ("eadline-2006-hpl", LADDER, solve),
    ("york-staging", STAGING, stage),
]


@pytest.mark.parametrize(("slug", "specification", "values"), STUDIES, ids=[study[0] for study in STUDIES])
def test_it_shows_every_study_next_to_measured_runs(library, slug, specification, values):
    experiment = measured(library, specification, values)
    assert [source.experiment.slug for source in Measured.of(experiment).sources] == [experiment.slug, slug]


@pytest.mark.parametrize(
    ("slug", "specification", "values", "metric"),
    [
        ("guster-2007-water", WATER, scaled, "elapsed_s"),
        ("pinning-2007-wan", WIDE, send, "pingpong.transfer_time_s"),
        ("monarc-1999-readers", READERS, read, "concurrent-readers.job_wall_s"),
    ],
)
def test_it_compares_studies_with_points_of_their_own_with_runs(page, library, slug, specification, values, metric):
    experiment = measured(library, specification, values)
    response = page.get(reverse("compare"), {"of": f"e:{experiment.slug},e:{slug}", "baseline": f"e:{slug}"})
    assert metric in {row.metric for row in response.context["compared"].rows if all(row.summaries)}


def test_it_exports_every_printed_value(page):
    for study in Experiment.objects.filter(published=True):
        result = json.loads(page.get(f"/api/v1/experiments/{study.slug}/result/").content)
        printed = {(t["id"], name): value for t in result["trials"] for name, value in t["metrics"].items()}
        stored = Measurement.objects.filter(trial__experiment=study).values_list("trial_id", "metric", "value")
        assert printed == {(trial, metric): value for trial, metric, value in stored}


def test_it_explores_and_exports_published_rows_like_own_ones(page):
    connection.check_constraints()  # fires the triggers that summarise
    query = {"text": "guster-2007-water", "x": "hosts", "y": "elapsed_s"}
    query = {"where": "hosts = 12", "columns": "elapsed_s,packets"}
    rows = list(csv.DictReader(io.StringIO(b"".join(page.get("/explore/export.csv", query)).decode())))
    assert [(row["experiment"], float(row["elapsed_s.median"]), float(row["packets.median"])) for row in rows] == [
        ("guster-2007-water", 264.85, 603034)
    ]


def test_it_gives_a_chart_the_published_points(page, library):
    experiment = measured(library, WATER, scaled)
    (elapsed,) = [c for s in Results(experiment).sections() for c in s.charts if c.element == "time"]
    names = [trace["name"] for trace in elapsed.figure["data"]]
    assert any(name.startswith("Published 2007") for name in names)
    assert elapsed.published


def test_published_steps_at_one_size_are_no_curve_over_sizes(library):
    """Eadline's eight steps all have eight hosts."""
    rate = {"elapsed_s": 2.0, "hpl.gflops": 1.0}
    experiment = measured(
        library, {"name": "Sizes", "workload": "hpl", "sweep": {"hosts": [1, 2]}, "repetitions": 2}, lambda _: rate
    )
    charts = [chart for section in Results(experiment).sections() for chart in section.charts]
    (chart,) = [chart for chart in charts if chart.element == "deciding"]
    lines = [trace for trace in chart.figure["data"] if len(trace.get("x", ())) > 1]
    assert lines
    assert all(len(set(map(str, trace["x"]))) > 1 for trace in lines if trace.get("meta") == "published")
    assert chart.published is None
