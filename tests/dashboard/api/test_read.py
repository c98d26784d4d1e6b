"""REST: lists, filters, details and files."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from experiments.files import trial_directory
from experiments.models import Artifact, Trial
from tests.dashboard.api.clients import EXPERIMENTS, TRIALS, client_of
from tests.experiments import factories
from tests.experiments.factories import RESULT
from tests.kept_rows import PUBLISHED_STUDIES

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> Client:
    return client_of(factories.person("ada", "viewer"))


def slugs(client: Client, **query: Any) -> list[str]:
    answer = client.get(EXPERIMENTS, query)
    assert answer.status_code == 200, answer.json()
    return [experiment["slug"] for experiment in answer.json()["results"]]


def test_it_lists_experiments_newest_first_with_their_progress(client: Client) -> None:
    factories.experiment(name="First")
    factories.finished()
    factories.experiment(name="Second")
    second, first = client.get(EXPERIMENTS).json()["results"]
    assert (first["slug"], first["status"], first["trials"]["finished"]) == ("first", "running", 1)
    assert (second["slug"], second["status"], second["trials"]["queued"]) == ("second", "waiting", 4)


def test_it_filters_experiments(client: Client) -> None:
    PUBLISHED_STUDIES.restore()
    factories.experiment(name="Alpha", tags=["dense"], owner=factories.person("bob"))
    factories.experiment(name="Beta", cluster="local", sweep={"ranks_per_host": [1, 2]})
    assert slugs(client, text="alph") == ["alpha"]
    assert slugs(client, tag="dense") == ["alpha"]
    assert slugs(client, owner="bob") == ["alpha"]
    assert slugs(client, cluster="local") == ["beta"]
    assert slugs(client, workload="water", published="false", ordering="name") == ["alpha", "beta"]
    assert "guster-2007-water" in slugs(client, published="true")
    assert slugs(client, project="default", created_after=timezone.now().isoformat()) == []
    assert slugs(client, published="false", limit=1, offset=1) == ["alpha"]


def test_it_filters_trials(client: Client) -> None:
    experiment = factories.experiment(warmups=1)
    factories.experiment(name="Other")
    factories.finished(replace(RESULT, trust="degraded"))
    factories.running().fail("It exited with status 1.")

    def count(**query: Any) -> int:
        answer = client.get(TRIALS, query)
        assert answer.status_code == 200, answer.json()
        return int(answer.json()["count"])

    assert count() == 10
    assert count(experiment=experiment.slug) == 6
    assert count(state="finished") == 1
    assert count(state=["finished", "failed"]) == 2
    assert count(kind="warmup") == 2
    assert count(trust="degraded") == 1
    assert count(hosts=1, experiment=experiment.slug) == 3
    assert count(superseded="true") == 0
    assert count(cluster="testbed", workload="water") == 10
    assert count(ended_before=timezone.now().isoformat()) == 2
    assert count(ended_before="8483-09-22T07:41:45-20:11") == 2


@pytest.mark.parametrize(
    ("address", "query", "path"),
    [
        (EXPERIMENTS, {"stat": "failed"}, "stat"),
        (EXPERIMENTS, {"workload": "fire"}, "workload"),
        (EXPERIMENTS, {"created_after": "yesterday"}, "created_after"),
        (EXPERIMENTS, {"created_after": "0001-01-01T00:00:00+12:00"}, "created_after"),
        (EXPERIMENTS, {"text": "a\0b"}, "text"),
        (EXPERIMENTS, {"ordering": "colour"}, "ordering"),
        (TRIALS, {"state": "tired"}, "state"),
        (TRIALS, {"hosts": "9" * 30}, "hosts"),
    ],
)
def test_unknown_filters_are_refused(client: Client, address: str, query: dict[str, str], path: str) -> None:
    answer = client.get(address, query)
    assert answer.status_code == 400
    assert [error["path"] for error in answer.json()["errors"]] == [path]


def test_it_hands_out_at_most_500_rows_at_a_time(client: Client) -> None:
    factories.experiment(repetitions=300)
    answer = client.get(TRIALS, {"limit": 100_000}).json()
    assert (answer["count"], len(answer["results"])) == (600, 500)
    assert len(client.get(answer["next"]).json()["results"]) == 100


@pytest.mark.parametrize("address", [EXPERIMENTS, TRIALS])
def test_it_lists_in_a_fixed_number_of_queries(client: Client, address: str, django_assert_num_queries: Any) -> None:
    factories.experiment(owner=factories.person("bob"))
    client.get(address)  # the token's daily note is made now
    queries = {EXPERIMENTS: 4, TRIALS: 4}[address]  # token, count, keys, rows, and the progress of experiments
    with django_assert_num_queries(queries):
        client.get(address)
    for number in range(4):
        factories.experiment(owner=factories.person(f"bob{number}"))
    with django_assert_num_queries(queries):
        client.get(address)


def test_it_shows_a_trial_with_everything_measured(client: Client, django_assert_num_queries: Any) -> None:
    factories.experiment()
    trial = factories.analysing()
    trial.finish(replace(RESULT, artifacts=[factories.stored_file(trial)]))
    client.get(TRIALS)
    with django_assert_num_queries(4):
        data = client.get(f"{TRIALS}{trial.pk}/").json()
    assert (data["experiment"], data["state"], data["kind"], data["repetition"]) == ("water", "finished", "measured", 1)
    assert data["metrics"] == {"elapsed_s": 1.5, "packets": 1200.0}
    assert data["mpi_metrics"] == {"packets": 1000.0}
    assert data["not_available"] == {"retransmissions": "the capture has no TCP"}
    assert data["trust"] == "good"
    assert data["environment"] == {"kernel": "6.1"}
    assert data["parameters"]["hosts"] == 1
    assert data["command"] == ["mpirun", "lmp"]
    assert all(data[name] for name in ("queued_at", "preparing_at", "running_at", "analysing_at", "ended_at"))
    (artifact,) = data["artifacts"]
    assert (artifact["name"], artifact["kind"], artifact["size_bytes"]) == ("stdout.txt", "stdout", 6)
    download = client.get(artifact["url"])
    assert b"".join(download) == b"hello\n"  # type: ignore[call-overload]
    assert download.headers["Content-Disposition"] == f'attachment; filename="trial-{trial.pk}-stdout.txt"'


def test_it_hands_out_files_of_subdirectories(client: Client) -> None:
    factories.experiment()
    trial = factories.analysing()
    file = trial_directory(trial) / "kept" / "run1" / "rates.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("1,2")
    artifact = Artifact.describe(trial.pk, "other", file, name="run1/rates.csv")
    trial.finish(replace(RESULT, artifacts=[artifact]))
    (data,) = client.get(f"{TRIALS}{trial.pk}/").json()["artifacts"]
    client.force_login(get_user_model().objects.get())
    for address in (data["url"], reverse("artifact", args=[trial.pk, data["name"]])):
        download = client.get(address)
        assert b"".join(download) == b"1,2"  # type: ignore[call-overload]
        assert f'filename="trial-{trial.pk}-run1-rates.csv"' in download.headers["Content-Disposition"]


def test_removed_files_answer_410(client: Client) -> None:
    factories.experiment()
    trial = factories.analysing()
    trial.finish(replace(RESULT, artifacts=[factories.stored_file(trial)]))
    Artifact.objects.update(removed_at=timezone.now())
    (artifact,) = client.get(f"{TRIALS}{trial.pk}/").json()["artifacts"]
    assert artifact["url"] is None
    answer = client.get(f"{TRIALS}{trial.pk}/artifacts/stdout.txt/")
    assert answer.status_code == 410
    assert answer.json()["errors"][0]["message"] == "stdout.txt is no longer kept"


@pytest.mark.parametrize("name", ["absent.txt", "..%2f..%2fsecret-key", "..", "%00", "a" * 121])
def test_it_hands_out_stored_files_only(client: Client, name: str) -> None:
    factories.experiment()
    trial = factories.finished()
    answer = client.get(f"{TRIALS}{trial.pk}/artifacts/{name}/")
    assert answer.status_code == 404
    assert answer.json()["errors"]


def test_it_gives_every_trial_once_over_pages_of_ties(client: Client) -> None:
    factories.experiment(repetitions=20)
    query = {"ordering": "ended_at", "limit": 3}
    pages = [client.get(TRIALS, {**query, "offset": offset}).json()["results"] for offset in range(0, 40, 3)]
    data = [trial["id"] for page in pages for trial in page]
    assert data == sorted(Trial.objects.values_list("pk", flat=True))


def pages_by_cursor(client: Client, address: str, **query: Any) -> list[list[int]]:
    """Return the keys of each page by cursor, until there is no next page."""
    data, answer = [], client.get(address, {**query, "cursor": ""}).json()
    while True:
        assert set(answer) == {"next", "previous", "results"}
        data.append([row["id"] for row in answer["results"]])
        if answer["next"] is None:
            return data
        answer = client.get(answer["next"]).json()


def test_a_cursor_leads_through_a_whole_list_however_it_grows(client: Client) -> None:
    experiment = factories.experiment(repetitions=20)
    keys = sorted(experiment.trials.values_list("pk", flat=True))
    data = pages_by_cursor(client, TRIALS, experiment=experiment.slug, limit=7)
    assert [key for page in data for key in page] == keys
    assert [len(page) for page in data[:-1]] == [7] * (len(data) - 1)
    newest = [factories.experiment(repetitions=1).slug for _ in range(3)]
    first = client.get(EXPERIMENTS, {"cursor": "", "limit": 2}).json()
    factories.experiment(repetitions=1)
    second = client.get(first["next"]).json()
    assert [row["slug"] for row in first["results"]] == newest[:0:-1]
    assert second["results"][0]["slug"] == newest[0]
    assert [row["slug"] for row in client.get(second["previous"]).json()["results"]] == newest[:0:-1]


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ({"cursor": "nonsense"}, "cursor"),
        ({"cursor": "cD14"}, "cursor"),  # p=x
        ({"cursor": b64encode(b"p=" + b"9" * 5000).decode()}, "cursor"),  # more digits than Python reads
        ({"cursor": "", "offset": "3"}, "offset"),
        ({"cursor": "", "ordering": "ended_at"}, "ordering"),
        ({"offset": "10001"}, "offset"),
        ({"limit": "x"}, "limit"),
    ],
)
def test_it_refuses_a_page_that_no_list_has(client: Client, query: dict[str, str], path: str) -> None:
    answer = client.get(TRIALS, query)
    assert answer.status_code == 400
    assert [error["path"] for error in answer.json()["errors"]] == [path]
