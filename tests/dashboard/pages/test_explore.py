"""The explorer: pivot, filters and exports agree with the trials."""

import csv
import io
import json
from statistics import median

import pyarrow.parquet
import pytest
from django.contrib.auth.models import User
from django.db import connection

from experiments.library import load_defaults
from experiments.models import Experiment, Project, Summary, Trial
from tests.dashboard.api.clients import client_of
from tests.dashboard.explorer import pivoted, question
from tests.dashboard.laboratory import laboratory_with, run_waiting, submitted

ADDRESS = "/explore/"
TRANSFER = "pingpong.transfer_time_s"


def commit() -> None:
    """Fires what waits for the end of the transaction: the triggers that summarise."""
    connection.check_constraints()


def measure(library, person):
    """Two experiments: hosts 1, 2, 4 at the default MTU, and again over two MTUs."""
    wide = {"sweep": {"hosts": [2, 4], "link.mtu": [1500, 9000]}, "repetitions": 2, "tags": ["night"]}
    submitted(library, person, name="Plain", repetitions=3)
    submitted(library, person, name="Wide", **wide)
    run_waiting()


LABORATORY = laboratory_with(measure)


@pytest.fixture
def library(db):
    LABORATORY.restore()
    return load_defaults()


@pytest.fixture
def person(library):
    return User.objects.get(username="okafor")


@pytest.fixture
def measured(person):
    return Experiment.objects.get(slug="plain"), Experiment.objects.get(slug="wide")


def test_it_gives_a_cell_of_one_configuration_its_trials(measured, person):
    cells = pivoted(person, text="plain").cells
    assert [(c.x, c.configurations, c.trials, len(c.dots)) for c in cells if c.x == 4] == [(4, 1, 3, 3)]
    four = next(c for c in cells if c.x == 4)
    assert four.interval[0] < four.mean < four.interval[1]
    assert (four.low, four.high) == (min(four.dots), max(four.dots))


def test_it_counts_each_of_several_configurations_of_a_cell_once(measured, person):
    four = next(c for c in pivoted(person, where="hosts = 4, molecules = 216", statistic="median").cells if c.x == 4)
    mine = Summary.objects.filter(configuration__hosts=4, configuration__experiment__published=False)
    medians = mine.filter(metric="elapsed_s").values_list("median", flat=True)
    assert (four.configurations, four.trials) == (3, 7)
    assert four.median == median(medians)


def test_no_two_configurations_share_a_point_unless_a_pooled_statistic_is_chosen(measured, person):
    cells = pivoted(person, project="default").cells
    assert len(cells) == question(person, project="default").configurations.count()
    assert {cell.configurations for cell in cells} == {1}


def test_line_joins_points_that_differ_only_in_the_x_parameter(measured, person):
    def lines(**query: str) -> set[frozenset[object]]:
        by_line: dict[str, list[object]] = {}
        for cell in pivoted(person, text="wide", project="default", **query).cells:
            by_line.setdefault(cell.line, []).append((cell.x, cell.colour))
        return {frozenset(points) for points in by_line.values()}

    over_hosts = lines(colour="link.mtu")
    assert over_hosts
    assert all(len({mtu for _, mtu in points}) == 1 for points in over_hosts)
    assert any(len(points) > 1 for points in over_hosts)
    assert all(len(points) == len({x for x, _ in points}) for points in lines(x="link.mtu", colour="hosts"))


def test_default_colour_is_workload_then_experiment(measured, page):
    parameters = {"project": "default"}
    assert page.get(ADDRESS, parameters).context["query"].colour == "experiment"
    Experiment.objects.filter(pk=measured[1].pk).update(workload="pingpong")
    assert page.get(ADDRESS, parameters).context["query"].colour == "workload"
    assert page.get(ADDRESS, {"colour": ""}).context["query"].colour == ""
    assert page.get(ADDRESS, parameters | {"text": "wide", "workload": "pingpong"}).context["query"].colour == ""


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({}, 7),
        ({"text": "plain"}, 3),
        ({"tag": "night"}, 4),
        ({"where": "hosts >= 4"}, 3),
        ({"where": "elapsed_s < 2.3"}, 3),
        ({"state": "", "trust": "", "workload": "", "where": "", "after": ""}, 7),
        ({"state": ["failed", "finished"]}, 7),
        ({"after": "2020-01-01", "before": "2999-01-01T00:00:00+02:00"}, 7),
        ({"state": "failed"}, 0),
        ({"trust": ["good", "degraded"]}, 7),
        ({"workload": "water", "cluster": "testbed"}, 7),
    ],
)
def test_it_applies_filters(measured, page, query, count):
    answer = page.get(ADDRESS, {"project": "default", **query})
    assert answer.context["matched"].total == count


@pytest.mark.parametrize(
    "query",
    [
        {"where": "hosts > 2 and"},
        {"y": "nonsense"},
        {"colour": "elapsed_s"},
        {"where": "hosts"},
        {"state": "gone"},
        {"after": "yesterday"},
        {"columns": "nonsense"},
        {"statistic": "guess"},
    ],
)
def test_invalid_questions_are_refused(measured, person, page, query):
    answer = page.get(ADDRESS, query)
    assert answer.status_code == 400
    assert "Start again" in answer.content.decode()
    refusal = client_of(person).get("/api/v1/explore/", query)
    assert refusal.status_code == 400
    assert [error["path"] for error in refusal.json()["errors"]] == list(query)


def test_it_draws_a_metric_over_a_metric_as_one_dot_per_configuration(measured, person):
    scatter = pivoted(person, x="packets", y="elapsed_s", colour="link.mtu", text="wide")
    assert scatter.is_scatter
    assert sorted({cell.colour for cell in scatter.cells}) == [1500, 9000]
    assert len(scatter.cells) == 4


def test_it_draws_panels_and_shows_every_swept_parameter_on_the_page(measured, page):
    query = {"project": "default", "colour": "link.mtu", "facet": "experiment", "statistic": "mean", "ylog": "1"}
    answer = page.get(ADDRESS, query)
    assert [chart.title for chart in answer.context["charts"]] == ["Plain", "Wide"]
    assert answer.context["charts"][0].figure["layout"]["yaxis"]["type"] == "log"
    assert answer.context["table"]["parameters"] == ["Hosts", "MTU"]
    fragment = page.get(ADDRESS, query, headers={"HX-Request": "true", "HX-Target": "answer"}).content.decode()
    assert "<html" not in fragment
    assert "Compare selected" in fragment


def test_it_answers_the_page_with_a_fixed_number_of_queries(measured, submit, run, page, django_assert_num_queries):
    with django_assert_num_queries(9):
        page.get(ADDRESS, {"workload": ""})
    for number in range(3):
        submit(name=f"More {number}")
    run()
    commit()
    with django_assert_num_queries(9):
        page.get(ADDRESS, {"workload": ""})


def test_explorer_opens_on_the_workload_measured_last(measured, page):
    assert page.get(ADDRESS).url == f"{ADDRESS}?workload=water"
    Experiment.objects.filter(pk=measured[1].pk).update(workload="pingpong")
    answer = page.get(ADDRESS, follow=True)
    assert answer.request["QUERY_STRING"] == "workload=pingpong"
    choices = answer.context["choices"]
    assert choices["of"] == "Ping-pong"
    assert {slug: chosen for slug, _, _, chosen in choices["workloads"]} == {
        "pingpong": True,
        **dict.fromkeys(["water", "hpl", "concurrent-readers", "data-staging"], False),
    }
    Trial.objects.filter(experiment__published=False).update(state="cancelled")
    assert page.get(ADDRESS).status_code == 200


@pytest.mark.parametrize("statistic", ["each", "median"])
def test_published_values_have_a_panel_of_their_own(measured, page, person, statistic):
    query = {"workload": "water", "statistic": statistic}
    charts = page.get(ADDRESS, query).context["charts"]
    assert [chart.title.partition(", ")[2] for chart in charts] == ["", "published"]
    drawn = [
        [y for t in chart.figure["data"] for x, y in zip(t["x"], t["y"], strict=True) if x == 4] for chart in charts
    ]
    assert max(drawn[0]) < 10 < min(drawn[1])
    (four,) = [
        c for c in client_of(person).get("/api/v1/explore/", {"workload": "water"}).json()["cells"] if c["x"] == 4
    ]
    assert four["configurations"] == 4, "REST pools all of a position"


@pytest.mark.parametrize(
    ("query", "x_type", "y_type"),
    [
        ({}, None, None),
        ({"ylog": "1", "xlog": "1"}, "log", "log"),
        ({"workload": "pingpong", "x": TRANSFER, "y": TRANSFER}, "log", "log"),
        ({"workload": "pingpong", "x": TRANSFER, "y": TRANSFER, "xlog": "0", "ylog": "0"}, None, None),
    ],
)
def test_axes_are_logarithmic_if_their_values_span_a_decade(measured, page, query, x_type, y_type):
    layout = page.get(ADDRESS, {"workload": "water", **query}).context["charts"][0].figure["layout"]
    assert (layout["xaxis"].get("type"), layout["yaxis"].get("type")) == (x_type, y_type)


def test_other_projects_are_hidden(measured, page, person):
    Experiment.objects.filter(pk=measured[1].pk).update(project=Project.objects.create(slug="theirs", name="Theirs"))
    answer = page.get(ADDRESS, {"workload": "water", "text": "wide"})
    assert answer.context["matched"].total == 0
    assert pivoted(person, text="wide").cells == []


def test_export_equals_the_table_in_every_format(measured, page, person):
    query = {"project": "default", "columns": "elapsed_s,packets", "where": "hosts = 4"}
    data = {form: b"".join(page.get(f"/explore/export.{form}", query)) for form in ("csv", "json", "parquet")}
    rows = json.loads(data["json"])
    assert len(rows) == 3
    assert {row["parameter.link.mtu"] for row in rows} == {1500, 9000}
    table = pyarrow.parquet.read_table(io.BytesIO(data["parquet"])).to_pylist()
    text = list(csv.DictReader(io.StringIO(data["csv"].decode())))
    assert list(text[0]) == list(rows[0]) == list(table[0])
    medians = [row["elapsed_s.median"] for row in rows]
    assert [row["elapsed_s.median"] for row in table] == medians
    assert [float(row["elapsed_s.median"]) for row in text] == medians
    rest = client_of(person).get("/api/v1/explore/export/csv/", query)
    assert b"".join(rest) == data["csv"]
    assert page.get("/explore/export.xlsx").status_code == 404


def test_history_is_linked_only_with_finished_trials(page, library, person, measured):
    submitted(library, person, name="Ended early", sweep={"hosts": [2]}, repetitions=1)
    Trial.objects.filter(experiment__slug="ended-early").cancel()
    for text, finished in (("plain", True), ("ended early", False)):
        answer = page.get(ADDRESS, {"project": "default", "text": text})
        assert answer.context["page"].object_list
        assert (">History<" in answer.content.decode()) is finished
