"""The tables behind charts over REST and command line equal those of *Save*."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from zstandard import compress

import analysis
from analysis.mpi.calls import to_bytes
from dashboard.charts.compare import MemberChange, Ratio, change_over
from dashboard.charts.parts import INTERVAL, RANGE, Line, bars_note
from dashboard.charts.search import best_so_far
from dashboard.charts.sweep import over_parameter
from dashboard.charts.tables import as_csv, table_of
from dashboard.panels.parts.chart_tables import charts_of as experiment_charts
from dashboard.panels.trial.chart_tables import charts_of as trial_charts
from experiments.files import ANALYSIS_NAME, MPI_CALLS_NAME
from experiments.models import Artifact, Experiment, Project, Trial
from tests.analysis.mpi.scenes import Scene
from tests.dashboard.api.clients import client_of
from tests.dashboard.panels.trial.profiles import with_profile
from tests.dashboard.panels.trial.samples import row
from tests.dashboard.studies_measured import LADDER, READERS, STAGING, measured, read, solve, stage
from tests.experiments import factories


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
        samples = [
            trial.measurements.get(metric="packets", scope="all").value for trial in configuration.trials.counted()
        ]
        low, high, count = with_spread[configuration.hosts]
        assert (low * 1000, high * 1000, count) == (
            pytest.approx(min(samples)),
            pytest.approx(max(samples)),
            len(samples),
        )


def test_csv_by_rest_is_what_the_command_line_writes(experiment: Experiment, person: User, tmp_path: Path) -> None:
    answer = client_of(person).get(f"/api/v1/experiments/{experiment.slug}/charts/packets/?form=csv")
    assert answer["Content-Type"].startswith("text/csv")
    call_command("export", str(tmp_path / "packets.csv"), chart=f"{experiment.slug}:packets", stdout=io.StringIO())
    assert (tmp_path / "packets.csv").read_bytes() == answer.content
    rows = list(csv.reader(io.StringIO(answer.content.decode())))
    assert (rows[0][0], len(rows) > 1) == ("series", True)


def figures_in(page: Client, address: str) -> set[str]:
    """Return the figures of a page or fragment by name; views have a number."""
    text = page.get(address).content.decode()
    return {
        re.sub(r"(hosts|live-rate|map-\d+-\d+|lines-\d+)-\d+$", r"\1", match)
        for match in re.findall(r'id="figure-([^"]+)"', text)
    }


def test_every_chart_of_the_result_parts_has_one(page: Client, person: User, library: Project) -> None:
    experiments = [
        measured(library, READERS, read),
        measured(library, LADDER, solve),
        measured(library, STAGING, stage),
    ]
    seen = set()
    for experiment in (*experiments, Experiment.objects.get(slug="pinning-2007-wan")):
        charts = experiment_charts(experiment)
        drawn = figures_in(page, f"/experiments/{experiment.slug}/parts/")
        assert drawn <= {chart["name"] for chart in charts.listed()}, experiment.slug
        assert all(charts.table(name).rows for name in drawn), experiment.slug
        seen |= drawn
    assert {"envelope", "ladder", "phases", "map-1-1", "lines-1"} <= seen
    reported = client_of(person).get(f"/api/v1/experiments/{experiments[0].slug}/charts/envelope/").json()
    assert reported["columns"][0] == "series"
    assert any(row[1:3] == [10, 10] for row in reported["rows"]), "ten jobs took ten times as long as one"


@pytest.fixture
def trial(experiment: Experiment) -> Trial:
    """A trial with a capture, samples of its hosts, profile and trace."""
    trial: Trial = experiment.trials.filter(state="finished", kind="measured").earliest("pk")
    with_profile(trial, json.loads(Path("tests/data/mpi-profile-imbalance.json").read_text())["profile"])
    calls = Scene().call(0, "Send", 0, 30, peer=1).call(0, "Barrier", 90, 100).call(1, "Recv", 0, 100, peer=0)
    factories.stored_file(trial, MPI_CALLS_NAME, to_bytes(calls.calls), Artifact.Kind.OTHER).save()
    analysed = compress(json.dumps(analysis.analyse("tests/analysis/data/open-mpi-5.pcap").to_dict()).encode())
    factories.stored_file(trial, ANALYSIS_NAME, analysed, Artifact.Kind.ANALYSIS).save()
    samples = json.dumps([row(t, host) for t in (1.0, 2.0, 2.5) for host in ("n1", "n2")])
    factories.stored_file(trial, "samples.json", samples.encode(), Artifact.Kind.SAMPLES).save()
    return trial


def test_every_chart_of_a_trial_has_one(page: Client, person: User, trial: Trial, tmp_path: Path) -> None:
    api, charts = client_of(person), f"/api/v1/trials/{trial.pk}/charts/"
    address = trial.get_absolute_url()
    drawn = set().union(*(figures_in(page, f"{address}{part}") for part in ("", "hosts/", "ranks/")))
    listed = {chart["name"]: chart for chart in api.get(charts).json()}
    assert drawn == set(listed)
    assert {"throughput", "sizes", "gaps", "matrix", "hosts", "per-rank", "rank-timeline"} <= drawn
    tables = trial_charts(trial)
    for name in drawn:
        table = tables.table(name)
        assert table.rows, name
        assert all(len(item) == len(table.columns) for item in table.rows), name
    sent = api.get(f"{charts}hosts/?view=Sent").json()
    assert (sent["view"], {item[0] for item in sent["rows"]}) == ("Sent", {"n1", "n2"})
    ranks = api.get(f"{charts}rank-timeline/").json()
    assert ranks["columns"][2:] == ["Computing (%)", "In MPI (%)", "Waiting (%)"]
    assert all(99 <= sum(item[2:]) <= 101 for item in ranks["rows"])
    link = re.search(r'href="([^"]+rank-timeline[^"]+csv)"', page.get(f"{address}ranks/").content.decode())
    assert link is not None
    assert page.get(link[1])["Content-Type"].startswith("text/csv")
    call_command("export", str(tmp_path / "a.csv"), chart=f"t:{trial.pk}:hosts:Sent", stdout=io.StringIO())
    assert (tmp_path / "a.csv").read_bytes() == api.get(f"{charts}hosts/?view=Sent&form=csv").content


def test_a_trial_that_waits_has_what_it_shows(submit: Callable[..., Experiment], page: Client, person: User) -> None:
    trial = submit().trials.earliest("pk")
    api = client_of(person)
    names = {chart["name"] for chart in api.get(f"/api/v1/trials/{trial.pk}/charts/").json()}
    assert names == figures_in(page, trial.get_absolute_url()) == {"live-rate", "live-ranks"}


def test_a_missing_chart_is_reported(experiment: Experiment, person: User, tmp_path: Path) -> None:
    api, charts = client_of(person), f"/api/v1/experiments/{experiment.slug}/charts/"
    missing = api.get(f"{charts}heat/")
    assert (missing.status_code, "it has" in missing.json()["detail"]) == (404, True)
    assert api.get(f"{charts}packets/?view=none").status_code == 404
    assert api.get(f"{charts}packets/?form=xlsx").json()["errors"][0]["path"] == "form"
    assert api.get(f"{charts}packets/?from=csv").status_code == 400
    for wrong in (f"{experiment.slug}:heat", "nobody:packets", "t:0:sizes", "t:x:sizes"):
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
    assert as_csv(["=1+1", "a"], []) == "'=1+1,a\r\n"  # titles of axes are labels of registered programs


def test_each_chart_states_what_its_bars_are_and_so_do_the_heads_of_its_table() -> None:
    ratio = Ratio(2, 1.3, 1.1, 1.6)
    change = change_over([MemberChange("B", 1, [ratio])], quantity="time", parameter="Hosts", baseline="A")
    assert bars_note(change) == INTERVAL
    columns, rows = table_of(change)
    assert columns[3:] == ["interval low", "interval high", "n"]
    assert rows[0][3:] == [pytest.approx(10), pytest.approx(60), None]
    medians = over_parameter([Line("A", [1, 2], [[1.0, 2.0], [3.0]])], quantity="Time", unit="s", parameter="Hosts")
    assert bars_note(medians) == RANGE
    assert table_of(medians)[0][3:] == ["lowest", "highest", "n"]
    search = best_so_far([("a", 1.0), ("b", 1.1)], [("a", 1.1, 1.0, 1.2)])
    assert bars_note(search).endswith("confidence intervals.")
    assert search["layout"]["xaxis"]["tickvals"] == [1, 2]
