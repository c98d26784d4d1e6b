"""REST: metrics in the list of trials, and lists filtered and sorted by them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from experiments.models import Measurement, Trial
from tests.dashboard.api.clients import TRIALS, client_of
from tests.experiments import factories

pytestmark = pytest.mark.django_db
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
    ],
)
def test_wrong_metrics_orders_and_conditions_are_refused_at_their_name(
    client: Client, trials: list[int], query: dict[str, str], path: str
) -> None:
    answer = client.get(TRIALS, query)
    assert answer.status_code == 400
    assert [error["path"] for error in answer.json()["errors"]] == [path]
