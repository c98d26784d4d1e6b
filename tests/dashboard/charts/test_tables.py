"""The table behind a chart: by REST and command line what *Save* writes in the browser (tests/browser/test_chart_files.py)."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from dashboard.charts.table import as_csv, table_of
from experiments.models import Experiment, Project
from tests.dashboard.api.clients import client_of


@pytest.fixture
def experiment(submit: Callable[..., Experiment], run: Callable[..., None], empty_redis: Any) -> Experiment:
    experiment = submit()
    run()
    return experiment


def test_each_chart_has_a_table_with_the_medians_of_its_trials(experiment: Experiment, person: User) -> None:
    api = client_of(person)
    listed = api.get(f"/api/v1/experiments/{experiment.slug}/charts/").json()
    assert {"time", "packets"} <= {chart["name"] for chart in listed}
    for chart in listed:
        table = api.get(f"/api/v1/experiments/{experiment.slug}/charts/{chart['name']}/").json()
        assert all(len(row) == len(table["columns"]) for row in table["rows"]), chart
    packets = api.get(f"/api/v1/experiments/{experiment.slug}/charts/packets/").json()
    assert (packets["columns"][0], packets["columns"][3:]) == ("series", ["lowest", "highest", "n"])
    assert packets["columns"][2] == "Packets (thousands)"
    with_spread = {row[1]: (row[3], row[4], row[5]) for row in packets["rows"] if row[5] is not None}
    for configuration in experiment.configurations.all():
        own = [trial.measurements.get(metric="packets", scope="all").value for trial in configuration.trials.counted()]
        low, high, count = with_spread[configuration.hosts]
        assert (low * 1000, high * 1000, count) == (pytest.approx(min(own)), pytest.approx(max(own)), len(own))


def test_csv_by_rest_is_what_the_command_line_writes(experiment: Experiment, person: User, tmp_path: Path) -> None:
    answer = client_of(person).get(f"/api/v1/experiments/{experiment.slug}/charts/packets/?form=csv")
    assert answer["Content-Type"].startswith("text/csv")
    call_command("export", str(tmp_path / "packets.csv"), chart=f"{experiment.slug}:packets", stdout=io.StringIO())
    assert (tmp_path / "packets.csv").read_bytes() == answer.content
    rows = list(csv.reader(io.StringIO(answer.content.decode())))
    assert (rows[0][0], len(rows) > 1) == ("series", True)


def test_what_there_is_not_is_told(experiment: Experiment, person: User, tmp_path: Path) -> None:
    api, charts = client_of(person), f"/api/v1/experiments/{experiment.slug}/charts/"
    missing = api.get(f"{charts}heat/")
    assert (missing.status_code, "it has" in missing.json()["detail"]) == (404, True)
    assert api.get(f"{charts}packets/?view=none").status_code == 404
    assert api.get(f"{charts}packets/?form=xlsx").json()["errors"][0]["path"] == "form"
    assert api.get(f"{charts}packets/?from=csv").status_code == 400
    for wrong in (f"{experiment.slug}:heat", "nobody:packets"):
        with pytest.raises(CommandError):
            call_command("export", str(tmp_path / "a.csv"), chart=wrong)
    Experiment.objects.filter(pk=experiment.pk).update(project=Project.objects.create(slug="theirs", name="Theirs"))
    assert api.get(f"{charts}packets/").status_code == 404


def test_a_map_has_a_row_for_each_place_and_a_formula_is_text() -> None:
    figure = {
        "data": [{"type": "heatmap", "name": "Bytes", "x": ["=a", "b"], "y": [1], "z": [[1.5, None]]}],
        "layout": {"xaxis": {"title": {"text": "To"}}, "yaxis": {"title": {"text": "From"}}},
    }
    columns, rows = table_of(figure)
    assert (columns, rows) == (["To", "From", "Bytes"], [["=a", 1, 1.5], ["b", 1, None]])
    assert as_csv(columns, rows) == "To,From,Bytes\r\n'=a,1,1.5\r\nb,1,\r\n"
