"""Bundles by page and REST: export in the background, dry run, import, origin."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from dashboard.background import bundles
from dashboard.background.asking import Withdrawn
from dashboard.background.tasks import do
from experiments.exchange.bundle import write_bundle
from experiments.exchange.choice import select_experiments
from experiments.exchange.exporting import BundleOptions
from experiments.models import BackgroundTask, Cluster, Experiment, Project, Trial
from tests.dashboard.api.clients import client_of
from tests.dashboard.texts import plain_text
from tests.experiments import factories


def text_of(response: Any) -> str:
    return plain_text(response.content.decode())


pytestmark = pytest.mark.usefixtures("empty_redis", "session_directory")


@pytest.fixture
def experiment(submit: Callable[..., Experiment], run: Callable[..., None]) -> Experiment:
    experiment = submit()
    run()
    return experiment


@pytest.fixture
def archive(experiment: Experiment) -> bytes:
    """A bundle of a deleted experiment."""
    stream = BytesIO()
    write_bundle(stream, select_experiments([experiment.slug]), BundleOptions(by="okafor", licence="CC-BY-4.0"))
    Experiment.objects.filter(pk=experiment.pk).delete()
    return stream.getvalue()


def sent(content: bytes, **fields: Any) -> dict[str, Any]:
    return {"file": SimpleUploadedFile("water.zip", content), "project": "default", **fields}


def made() -> BackgroundTask:
    task = BackgroundTask.claim_next()
    assert task is not None
    do(task)
    task.refresh_from_db()
    assert task.state == BackgroundTask.State.DONE, task.message
    return task


def test_a_bundle_is_made_in_the_background_and_fetched(page: Client, experiment: Experiment) -> None:
    answer = page.post(f"/bundles/new/?of=e:{experiment.slug}", {"captures": "none", "licence": "CC0"})
    task = made()
    assert answer["Location"] == task.get_absolute_url()
    file = page.get(f"/tasks/{task.pk}/file")
    assert 'filename="water-in-miniature.rankwire.zip"' in file["Content-Disposition"]
    with zipfile.ZipFile(BytesIO(b"".join(file.streaming_content))) as archive:
        assert b"Licence: CC0" in archive.read("README.md")
        assert archive.testzip() is None


def test_a_bundle_ends_with_its_task(page: Client, experiment: Experiment) -> None:
    """One without a sign of life for two minutes counted as dead."""
    page.post(f"/bundles/new/?of=e:{experiment.slug}", {"captures": "none"})
    task = BackgroundTask.claim_next()
    assert task is not None
    BackgroundTask.objects.filter(pk=task.pk).update(state=BackgroundTask.State.WAITING)
    with pytest.raises(Withdrawn):
        bundles.write(task)
    assert not task.file.exists()


def test_addresses_are_replaced_where_they_can_be(page: Client, experiment: Experiment) -> None:
    address, form = f"/bundles/new/?of=e:{experiment.slug}", {"captures": "all", "anonymise": "on"}
    refused = page.post(address, form)
    assert refused.status_code == 422
    assert not BackgroundTask.objects.exists()
    page.post(address, form | {"captures": "headers"})
    task = made()
    with zipfile.ZipFile(BytesIO(b"".join(page.get(f"/tasks/{task.pk}/file").streaming_content))) as archive:
        record = json.loads(archive.read("rankwire.json"))
    assert (record["captures"], record["anonymised"]) == ("headers", True)


def test_a_comparison_and_a_trial_can_be_taken_away(page: Client, experiment: Experiment) -> None:
    other = Trial.objects.filter(experiment=experiment).earliest("pk")
    compared = page.get(f"/compare/?of=e:{experiment.slug},t:{other.pk}")
    assert f"/bundles/new/?of=e:{experiment.slug},t:{other.pk}" in compared.content.decode()


def test_bundles_need_visible_experiments(client: Client, experiment: Experiment) -> None:
    client.force_login(factories.person("eve"))
    answer = client.get(f"/bundles/new/?of=e:{experiment.slug}")
    assert answer.status_code == 400
    assert f"There is no experiment &#x27;{experiment.slug}&#x27;." in answer.content.decode()
    assert client.post(f"/bundles/new/?of=e:{experiment.slug}", {"captures": "all"}).status_code == 400
    assert not BackgroundTask.objects.exists()


def test_what_leaves_a_project_later_is_not_fetched(page: Client, person: User, experiment: Experiment) -> None:
    page.post(f"/bundles/new/?of=e:{experiment.slug}", {"captures": "all"})
    task = made()
    experiment.move_to(Project.objects.create(slug="secret", name="Secret"))
    assert page.get(f"/tasks/{task.pk}/file").status_code == 200, "it was made of what was theirs"
    person.memberships.all().delete()
    assert page.get(f"/tasks/{task.pk}/file").status_code == 404


def test_what_came_in_says_where_it_is_from_and_runs_nowhere(page: Client, archive: bytes) -> None:
    answer = page.post("/imports/", sent(archive, **{"import": "1"}))
    imported = Experiment.objects.get(published=False)
    assert answer["Location"] == imported.get_absolute_url()
    text = text_of(page.get(f"{answer['Location']}?tab=setup"))
    assert "Imported" in text
    assert imported.cluster is not None
    assert f"Cluster {imported.cluster.name}" in text
    assert "by okafor" in text
    assert "imported from" in text
    assert "Licence CC-BY-4.0" in text
    for words in ("Repetitions", "Edit", "Run all again"):
        assert words not in text
    assert page.post(f"{answer['Location']}repeat/", {"count": 1}).status_code == 403
    trial = imported.trials.earliest("pk")
    assert "Not measured on this installation: imported from" in text_of(page.get(f"/trials/{trial.pk}/"))
    assert page.post(f"/trials/{trial.pk}/again/").status_code == 403
    assert "Imported" in text_of(page.get("/experiments/"))


def test_an_imported_experiment_of_an_unknown_program_is_shown(page: Client, archive: bytes) -> None:
    page.post("/imports/", sent(archive, **{"import": "1"}))
    imported = Experiment.objects.get(published=False)
    Experiment.objects.filter(pk=imported.pk).update(
        workload="solver", specification={**imported.specification, "workload": "solver"}
    )
    for address in ("", "diagnosis/", "parts/", "specification.yaml", "live/"):
        assert page.get(f"{imported.get_absolute_url()}{address}").status_code == 200, address
    assert page.get(f"/trials/{imported.trials.earliest('pk').pk}/").status_code == 200


def test_a_damaged_bundle_is_refused_at_its_field(page: Client, archive: bytes) -> None:
    answer = page.post("/imports/", sent(archive[: len(archive) // 2], **{"import": "1"}))
    assert answer.status_code == 422
    assert "This is no zip archive" in text_of(answer)
    assert page.post("/imports/", {"project": "default"}).status_code == 422
    assert page.post("/imports/", sent(archive, project="nobody")).status_code == 422
    assert not Experiment.objects.filter(published=False).exists()


def test_a_form_of_another_site_brings_nothing(person: User, archive: bytes) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(person)
    assert client.post("/imports/", sent(archive, **{"import": "1"})).status_code == 403
    assert not Experiment.objects.filter(published=False).exists()


def test_too_large_a_file_is_not_read(page: Client, archive: bytes, settings: Any) -> None:
    settings.IMPORT_LIMIT_BYTES = 1 << 10
    assert page.post("/imports/", sent(archive)).status_code == 413
    settings.IMPORT_LIMIT_BYTES = 64 << 20
    settings.MAX_BODY_BYTES = 1 << 10
    assert page.post("/imports/", sent(archive)).status_code == 200
    assert page.post("/experiments/new/", {"name": "x" * 2000}).status_code == 413


def test_rest_makes_and_takes_bundles(person: User, experiment: Experiment, tmp_path: Path) -> None:
    api = client_of(person)
    answer = api.post("/api/v1/bundles/", {"of": [f"e:{experiment.slug}"]}, content_type="application/json")
    assert answer.status_code == 202
    made()
    task = api.get(answer["Location"]).json()
    content = b"".join(api.get(task["file"]).streaming_content)
    home = api.post("/api/v1/imports/", content, content_type="application/zip")
    assert (home.status_code, home.json()["arrivals"][0]["trials"]) == (200, 0)
    experiment.delete()
    tried = api.post("/api/v1/imports/?dry_run=true", content, content_type="application/zip")
    assert (tried.status_code, tried.json()["arrivals"][0]["experiment"]) == (200, None)
    came = api.post("/api/v1/imports/", content, content_type="application/zip")
    assert came.status_code == 201
    (arrival,) = came.json()["arrivals"]
    assert (arrival["trials"], arrival["experiment"]) == (6, "water-in-miniature")
    repeated = api.post(
        "/api/v1/experiments/water-in-miniature/repetitions/", {"count": 1}, content_type="application/json"
    )
    assert repeated.status_code == 409


@pytest.mark.parametrize(
    ("address", "body", "status", "path"),
    [
        ("/api/v1/imports/", b"PK", 400, ""),
        ("/api/v1/imports/", b"", 400, ""),
        ("/api/v1/imports/?dry_run=perhaps", b"PK", 400, "dry_run"),
        ("/api/v1/imports/?dryrun=true", b"PK", 400, "dryrun"),
        ("/api/v1/imports/?project=nobody", b"PK", 403, ""),
    ],
)
def test_rest_says_what_is_wrong(person: User, address: str, body: bytes, status: int, path: str) -> None:
    answer = client_of(person).post(address, body, content_type="application/zip")
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (status, path)


def test_rest_names_what_there_is_not(person: User) -> None:
    answer = client_of(person).post("/api/v1/bundles/", {"of": ["e:none"]}, content_type="application/json")
    assert answer.status_code == 400
    assert answer.json()["errors"] == [{"path": "of", "message": "There is no experiment 'none'."}]
    form = {"of": ["e:none"], "anonymise": True}
    answer = client_of(person).post("/api/v1/bundles/", form, content_type="application/json")
    assert [(answer.status_code, error["path"]) for error in answer.json()["errors"]] == [(400, "anonymise")]


def test_clusters_of_others_are_shown_and_left_alone(client: Client, archive: bytes, admin_user: User) -> None:
    client.force_login(admin_user)
    client.post("/imports/", sent(archive, **{"import": "1"}))
    cluster = Cluster.objects.get(elsewhere=True)
    assert "Elsewhere" in text_of(client.get("/clusters/"))
    text = text_of(client.get(f"/clusters/{cluster.slug}/"))
    assert "Settings" not in text
    assert client.get(f"/clusters/{cluster.slug}/edit/").status_code == 404
    assert client.post(f"/clusters/{cluster.slug}/test/").status_code == 403
    assert client_of(admin_user).post(f"/api/v1/clusters/{cluster.slug}/test/").status_code == 403
    assert cluster not in [row.cluster for row in client.get("/").context["clusters"]]
    assert cluster.name not in text_of(client.get("/experiments/new/"))
