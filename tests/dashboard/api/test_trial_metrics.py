"""Metrics in REST lists of trials and configurations, in filters and orders."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from experiments.models import Measurement, Summary, Trial
from tests.dashboard.api.clients import TRIALS, client_of
from tests.experiments import factories

pytestmark = pytest.mark.django_db
CONFIGURATIONS = "/api/v1/configurations/"
TIMES = {1: 3.0, 2: 1.0, 3: 2.0, 4: 1.0}


@pytest.fixture
def client() -> Client:
    return client_of(factories.person("ada", "viewer"))


@pytest.fixture
def trials() -> list[int]:
    """Six trials: four with a time, packets only on the second, none on the last two."""
    factories.experiment(repetitions=3)
    keys = list(Trial.objects.order_by("pk").values_list("pk", flat=True)[:6])
    Trial.objects.exclude(pk__in=keys).delete()
    for number, value in TIMES.items():
        Measurement.objects.create(trial_id=keys[number - 1], metric="elapsed_s", value=value)
    for scope, value in (("all", 70.0), ("mpi", 50.0)):
        Measurement.objects.create(trial_id=keys[1], metric="packets", scope=scope, value=value)
    return keys


def rows(client: Client, **query: Any) -> list[dict[str, Any]]:
    answer = client.get(TRIALS, query)
    assert answer.status_code == 200, answer.content
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def test_rows_have_the_requested_metrics_of_a_scope(client: Client, trials: list[int]) -> None:
    assert "metrics" not in rows(client)[0]
    assert rows(client, metrics="elapsed_s,packets", fields="id,metrics")[:3] == [
        {"id": trials[0], "metrics": {"elapsed_s": 3.0, "packets": None}},
        {"id": trials[1], "metrics": {"elapsed_s": 1.0, "packets": 70.0}},
        {"id": trials[2], "metrics": {"elapsed_s": 2.0, "packets": None}},
    ]
    assert rows(client, metrics="packets", scope="mpi")[1]["metrics"] == {"packets": 50.0}
    assert rows(client, metrics="packets", fields="id")[0] == {"id": trials[0]}


def test_metrics_cost_two_queries(client: Client, trials: list[int], django_assert_num_queries: Any) -> None:
    client.get(TRIALS)
    with django_assert_num_queries(4):
        client.get(TRIALS)
    with django_assert_num_queries(6):
        client.get(TRIALS, {"metrics": "elapsed_s,packets"})


def test_an_order_that_names_a_metric_alone_is_answered_with_its_right_form(client: Client) -> None:
    assert "-metric:elapsed_s" in client.get(TRIALS, {"ordering": "-elapsed_s"}).content.decode()


@pytest.mark.parametrize(
    ("ordering", "positions"),
    [("metric:elapsed_s", [4, 2, 3, 1, 6, 5]), ("-metric:elapsed_s", [1, 3, 4, 2, 6, 5])],
)
def test_pages_follow_the_value_of_a_metric_in_both_directions(
    client: Client, trials: list[int], ordering: str, positions: list[int]
) -> None:
    """Ties come newest first, and trials without a value last."""
    expected = [trials[position - 1] for position in positions]
    forward, page = [], client.get(TRIALS, {"ordering": ordering, "limit": 2}).json()
    forward.append([row["id"] for row in page["results"]])
    while page["next"]:
        page = client.get(page["next"]).json()
        forward.append([row["id"] for row in page["results"]])
    assert [key for keys in forward for key in keys] == expected
    assert [len(keys) for keys in forward] == [2, 2, 2]
    middle = client.get(page["previous"]).json()
    assert [row["id"] for row in middle["results"]] == expected[2:4]


def test_conditions_on_metrics_select_trials(client: Client, trials: list[int]) -> None:
    def matching(conditions: str, **query: str) -> list[int]:
        return [trials.index(row["id"]) + 1 for row in rows(client, where_metrics=conditions, **query)]

    assert matching("elapsed_s < 2500 ms") == [2, 3, 4]
    assert matching("1 < elapsed_s <= 3") == [1, 3]
    assert matching("elapsed_s == 1 and packets > 60") == [2]
    assert matching("elapsed_s != 1 or packets > 60") == [1, 2, 3]
    assert matching("not elapsed_s < 2") == [1, 3]
    assert matching("packets > 60", scope="mpi") == []


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ({"metrics": "colour"}, "metrics"),
        ({"metrics": ""}, "metrics"),
        ({"metrics": ",".join(f"program.figure_{number}" for number in range(101))}, "metrics"),
        ({"ordering": "metric:colour"}, "ordering"),
        ({"ordering": "metric:"}, "ordering"),
        ({"ordering": "metric:elapsed_s,id"}, "ordering"),
        ({"ordering": "id,metric:elapsed_s"}, "ordering"),
        ({"ordering": "metric:elapsed_s", "offset": "3"}, "offset"),
        ({"ordering": "metric:elapsed_s", "cursor": "before"}, "cursor"),
        ({"ordering": "metric:elapsed_s", "cursor": "after.nonsense"}, "cursor"),
        ({"ordering": "metric:elapsed_s", "cursor": "beside.x"}, "cursor"),
        ({"where_metrics": "hosts < 4"}, "where_metrics"),
        ({"where_metrics": "elapsed_s < packets"}, "where_metrics"),
        ({"where_metrics": "elapsed_s"}, "where_metrics"),
        ({"where_metrics": "elapsed_s in 1"}, "where_metrics"),
        ({"where_metrics": "elapsed_s in (1)"}, "where_metrics"),
        ({"where_metrics": "not elapsed_s not in (1, 2)"}, "where_metrics"),
    ],
)
def test_wrong_metrics_orders_and_conditions_are_refused_at_their_name(
    client: Client, trials: list[int], query: dict[str, str], path: str
) -> None:
    answer = client.get(TRIALS, query)
    assert answer.status_code == 400
    assert [error["path"] for error in answer.json()["errors"]] == [path]


@pytest.mark.parametrize("query", [{"metrics": "residual"}, {"ordering": "-metric:residual"}])
def test_a_figure_without_its_program_is_refused_with_its_full_names(
    client: Client, trials: list[int], query: dict[str, str]
) -> None:
    answer = client.get(TRIALS, query)
    assert answer.status_code == 400
    assert "hpl.residual" in answer.json()["errors"][0]["message"]


@pytest.fixture
def points() -> list[int]:
    """Four points: medians 2, 1 and 1 s, packets on the second, nothing on the last."""
    experiment = factories.experiment(sweep={"hosts": [1, 2, 3, 4]}, repetitions=1)
    keys = list(experiment.configurations.order_by("hosts").values_list("pk", flat=True))
    for key, seconds in zip(keys, (2.0, 1.0, 1.0), strict=False):
        Summary.objects.create(
            configuration_id=key,
            metric="elapsed_s",
            scope="all",
            n=1,
            median=seconds,
            minimum=0.5,
            maximum=3.0,
            samples=[],
        )
    for scope, value in (("all", 70.0), ("mpi", 50.0)):
        Summary.objects.create(
            configuration_id=keys[1],
            metric="packets",
            scope=scope,
            n=1,
            median=value,
            minimum=1,
            maximum=99,
            samples=[],
        )
    return keys


def configurations(client: Client, **query: Any) -> dict[str, Any]:
    answer = client.get(CONFIGURATIONS, query)
    assert answer.status_code == 200, answer.content
    page: dict[str, Any] = answer.json()
    return page


def test_configurations_have_the_requested_metrics_of_a_scope(client: Client, points: list[int]) -> None:
    (first, *_), _ = configurations(client)["results"], points
    assert {name: first[name] for name in ("id", "hosts", "workload")} == {
        "id": points[0],
        "hosts": 1,
        "workload": "water",
    }
    assert "metrics" not in first
    rows = configurations(client, metrics="elapsed_s,packets", fields="metrics")["results"]
    assert rows[1]["metrics"] == {
        "elapsed_s": {"n": 1, "median": 1.0, "minimum": 0.5, "maximum": 3.0},
        "packets": {"n": 1, "median": 70.0, "minimum": 1.0, "maximum": 99.0},
    }
    assert rows[3]["metrics"] == {"elapsed_s": None, "packets": None}
    rows = configurations(client, metrics="packets", scope="mpi")["results"]
    assert rows[1]["metrics"]["packets"]["median"] == 50.0


def test_configurations_follow_the_median_of_a_metric_from_page_to_page(client: Client, points: list[int]) -> None:
    expected = [points[number] for number in (2, 1, 0, 3)]
    page = configurations(client, ordering="metric:elapsed_s", limit=3)
    assert [row["id"] for row in page["results"]] == expected[:3]
    last = client.get(page["next"]).json()
    assert [row["id"] for row in last["results"]] == expected[3:]
    assert [row["id"] for row in client.get(last["previous"]).json()["results"]] == expected[:3]


def test_conditions_on_medians_select_configurations(client: Client, points: list[int]) -> None:
    def matching(where: str, **query: str) -> list[int]:
        return [points.index(row["id"]) + 1 for row in configurations(client, where=where, **query)["results"]]

    assert matching("elapsed_s < 1500 ms") == [2, 3]
    assert matching("elapsed_s < 1500 ms, hosts > 2") == [3]
    assert matching("packets > 60") == [2]
    assert matching("packets > 60", scope="mpi") == []


def test_configurations_of_other_projects_are_hidden(points: list[int]) -> None:
    stranger = client_of(factories.person("eve"))
    assert not {row["id"] for row in configurations(stranger)["results"]} & set(points)


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ({"metrics": "colour"}, "metrics"),
        ({"ordering": "metric:colour"}, "ordering"),
        ({"ordering": "metric:elapsed_s,id"}, "ordering"),
        ({"ordering": "metric:elapsed_s", "offset": "3"}, "offset"),
        ({"scope": "some"}, "scope"),
        ({"where": "elapsed_s"}, "where"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_wrong_queries_of_configurations_are_refused_at_their_name(
    client: Client, points: list[int], query: dict[str, str], path: str
) -> None:
    answer = client.get(CONFIGURATIONS, query)
    assert answer.status_code == 400
    assert [error["path"] for error in answer.json()["errors"]] == [path]
