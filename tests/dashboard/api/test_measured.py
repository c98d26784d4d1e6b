"""REST: curves, tables, environments, ETags, the catalogue, and running trials."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from analysis.catalogue import METRICS
from experiments.files import ANALYSIS_NAME, MPI_PROFILE_NAME, trial_directory, write_analysis
from experiments.library import load_defaults
from experiments.metrics import FROM_TWINS
from experiments.models import Artifact, Environment, Kind, Trial
from tests.dashboard.api.clients import EXPERIMENTS, TRIALS, client_of
from tests.experiments import factories
from tests.experiments.selectors.twins import submitted as with_ideal_network

pytestmark = pytest.mark.django_db
WIRE = {
    "series": {"bin_s": 0.01, "start_s": 1.0, "packets": [1, 2]},
    "size_histogram": {"orig_len": [66], "packets": [3]},
    "interarrival": {"exact": True},
    "matrices": {"hosts": {"labels": ["n1", "n2"]}},
    "flows": [{"host_a": "n1", "host_b": "n2"}],
    "mpi": {"series": {"bin_s": 0.01, "start_s": 1.0, "packets": [1, 0]}},
}


@pytest.fixture
def trial() -> Trial:
    factories.experiment()
    return factories.finished()


@pytest.fixture
def client() -> Client:
    return client_of(factories.person("ada", "viewer"))


def get_json(client: Client, address: str, status: int = 200) -> Any:
    answer = client.get(address)
    assert answer.status_code == status, answer.content
    return answer.json()


def written(trial: Trial, name: str, content: dict[str, Any], kind: str) -> None:
    file = trial_directory(trial) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    write_analysis(file, content)
    Artifact.describe(trial.pk, kind, file).save()


def test_wire_has_the_curves_and_tables_of_a_capture(client: Client, trial: Trial) -> None:
    written(trial, ANALYSIS_NAME, WIRE, Artifact.Kind.ANALYSIS)
    every, mpi = (get_json(client, f"{TRIALS}{trial.pk}/wire/{query}") for query in ("", "?scope=mpi"))
    assert every == {"scope": "all", **{name: WIRE[name] for name in WIRE if name != "mpi"}}
    assert (mpi["series"]["packets"], mpi["size_histogram"], mpi["flows"]) == ([1, 0], None, WIRE["flows"])
    assert get_json(client, f"{TRIALS}{trial.pk}/wire/?scope=udp", 400)["errors"][0]["path"] == "scope"


def test_wire_and_profile_are_null_without_files(client: Client, trial: Trial) -> None:
    assert get_json(client, f"{TRIALS}{trial.pk}/wire/")["series"] is None
    assert get_json(client, f"{TRIALS}{trial.pk}/profile/") == {"profile": None}
    written(trial, MPI_PROFILE_NAME, {"ranks": [1]}, Artifact.Kind.OTHER)
    assert get_json(client, f"{TRIALS}{trial.pk}/profile/") == {"profile": {"ranks": [1]}}


def test_environment_shows_differences_to_another_trial(client: Client, trial: Trial) -> None:
    other = factories.finished()
    for item, kernel in ((trial, "6.1"), (other, "6.12")):
        item.environment = Environment.store({"kernel": kernel, "cpu": "same"})
        item.save()
    assert get_json(client, f"{TRIALS}{trial.pk}/environment/?against={other.pk}") == [
        {"fact": "kernel", "this": "6.1", "other": "6.12"}
    ]
    assert get_json(client, f"{TRIALS}{trial.pk}/environment/", 400)["errors"][0]["path"] == "against"
    get_json(client, f"{TRIALS}{trial.pk}/environment/?against=999999", 404)


@pytest.mark.parametrize(("address", "names"), [(EXPERIMENTS, ["slug", "name"]), (TRIALS, ["id", "state"])])
def test_lists_have_only_the_fields_that_are_asked_for(
    client: Client, trial: Trial, address: str, names: list[str]
) -> None:
    (row,) = get_json(client, f"{address}?fields={names[1]},{names[0]}&limit=1")["results"]
    assert list(row) == names
    wrong = get_json(client, f"{address}?fields={names[0]},nmae", 400)["errors"][0]
    assert (wrong["path"], wrong["message"].endswith("did you mean name?")) == ("fields", "name" in names)


def test_one_object_has_only_the_fields_that_are_asked_for(
    client: Client, trial: Trial, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(7):  # those of the token among them, and none for measurements and files
        assert get_json(client, f"{TRIALS}{trial.pk}/?fields=state,trust") == {"state": "finished", "trust": "good"}
    assert set(get_json(client, f"{TRIALS}{trial.pk}/?fields=metrics")["metrics"]) > {"elapsed_s"}
    slug = trial.experiment.slug
    assert get_json(client, f"{EXPERIMENTS}{slug}/?fields=specification_hash,status") == {
        "status": "running",
        "specification_hash": trial.experiment.specification_hash,
    }
    assert get_json(client, f"{TRIALS}{trial.pk}/?feilds=state", 400)["errors"][0]["path"] == "feilds"


def test_a_file_is_known_by_its_hash_before_it_is_opened(client: Client, trial: Trial) -> None:
    artifact = factories.stored_file(trial)
    artifact.save()
    address = f"{TRIALS}{trial.pk}/artifacts/{artifact.name}/"
    first = client.get(address)
    assert (b"".join(first.streaming_content), first.headers["ETag"]) == (b"hello\n", f'"{artifact.sha256}"')
    assert client.get(address, headers={"If-None-Match": f'"{artifact.sha256}"'}).status_code == 304


def test_it_has_the_whole_catalogue(client: Client) -> None:
    rows = get_json(client, "/api/v1/metrics/")
    assert [row["id"] for row in rows] == list(METRICS)
    assert rows[0]["definition"] == METRICS[rows[0]["id"]].definition


def test_status_counts_only_visible_trials(client: Client) -> None:
    factories.experiment()
    assert get_json(client, "/api/v1/status/")["queued"] == 4
    assert get_json(client, "/api/v1/status/")["clusters"]["testbed"] == {"running": 0, "queued": 4}
    assert get_json(client_of(factories.person("eve")), "/api/v1/status/")["queued"] == 0


@pytest.mark.parametrize("ideal", [True, False], ids=["with an ideal-network run", "without"])
def test_a_trial_has_both_efficiencies_or_the_reason_of_their_absence(client: Client, ideal: bool) -> None:
    trial = with_ideal_network(load_defaults(), ideal=ideal).trials.filter(kind=Kind.MEASURED).first()
    assert trial is not None
    row = get_json(client, f"{TRIALS}{trial.pk}/")
    assert set(FROM_TWINS) & {*row["metrics"]} == (set(FROM_TWINS) if ideal else set())
    assert set(FROM_TWINS) & {*row["not_available"]} == (set() if ideal else set(FROM_TWINS))
