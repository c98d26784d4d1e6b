"""Rights of imports: whose experiments a bundle may change, and quotas."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from experiments import deletion
from experiments.exchange.bundle import write_bundle
from experiments.exchange.choice import select_experiments
from experiments.exchange.exporting import BundleOptions
from experiments.exchange.file_moves import cluster_elsewhere
from experiments.models import Artifact, Experiment, Project, TrialResult
from tests.dashboard.api.clients import client_of
from tests.experiments import factories
from tests.experiments.exchange.archives import contents, packed

pytestmark = pytest.mark.usefixtures("empty_redis", "session_directory")


def bundled(owner: User) -> tuple[Experiment, bytes]:
    """A measured experiment with a bundle of it."""
    experiment = factories.experiment(owner=owner)
    trial = factories.analysing()
    trial.finish(TrialResult({"all": {"elapsed_s": 1.5}}, {}, "good", artifacts=[factories.stored_file(trial)]))
    stream = BytesIO()
    write_bundle(stream, select_experiments([experiment.slug]), BundleOptions(by="okafor"))
    return experiment, stream.getvalue()


@pytest.fixture
def archive(person: User) -> bytes:
    """A bundle of an experiment that is here no longer."""
    experiment, archive = bundled(person)
    Experiment.objects.filter(pk=experiment.pk).delete()
    return archive


def send(user: Any, archive: bytes) -> Any:
    return client_of(user).post("/api/v1/imports/", archive, content_type="application/zip")


def forged(archive: bytes) -> bytes:
    """The bundle with another name and another attempt of its trial."""
    files = contents(BytesIO(archive))
    for name, content in files.items():
        if name.endswith("/experiment.json"):
            record = json.loads(content)
            record |= {"name": "Forged", "version": record["version"] + 1}
            files[name] = json.dumps(record).encode()
    return packed(files)


@pytest.mark.parametrize(("role", "name"), [("submitter", "Water"), ("maintainer", "Forged")])
def test_import_changes_experiments_of_others_for_maintainers_only(
    library: Project, archive: bytes, role: str, name: str
) -> None:
    owner, other = factories.person("ada", "submitter"), factories.person("eve", role)
    assert send(owner, archive).status_code == 201
    imported = Experiment.objects.get(published=False)
    before = imported.name
    imported.trials.all().delete()  # so that the bundle has something new
    answer = send(other, forged(archive))
    imported.refresh_from_db()
    if role == "maintainer":
        assert (answer.status_code, imported.name) == (201, "Forged")
    else:
        assert (answer.status_code, imported.name) == (200, before)
        assert "another user imported it" in answer.json()["arrivals"][0]["note"]
        assert not imported.trials.exists()


def test_import_takes_no_identity_of_the_trash(person: User) -> None:
    """A bundle in another project would keep the owner from restoring."""
    experiment, archive = bundled(person)
    experiment.cancel()
    deleted = deletion.delete(experiment, by=person)
    eve, other = factories.person("eve"), Project.create_named("Other")
    other.set_role(eve, "maintainer")
    sent = client_of(eve).post("/api/v1/imports/?project=other", archive, content_type="application/zip")
    assert (sent.status_code, sent.json()["arrivals"][0]["trials"]) == (200, 0)
    assert "in the trash" in sent.json()["arrivals"][0]["note"]
    assert deletion.restore_deleted(deleted).trials.count() == len(deleted.trials) > 0


def test_described_runs_take_no_identity_of_the_trash(person: User, library: Project) -> None:
    runs = json.dumps(
        {"name": "Weather", "workload": "wrf", "cluster": "Hawk", "trials": [{"figures": {"elapsed_s": 2}}]}
    )

    def sent() -> Any:
        return client_of(person).post("/api/v1/imports/", runs, content_type="application/yaml").json()["arrivals"][0]

    assert sent()["trials"] == 1
    deleted = deletion.delete(Experiment.objects.get(published=False), by=person)
    assert "in the trash" in sent()["note"]
    assert deletion.restore_deleted(deleted).trials.count() == 1


def test_clusters_of_imports_keep_the_name_that_their_project_sent(library: Project, person: User) -> None:
    mine = cluster_elsewhere("hawk", "Hawk", "ssh", {}, library)
    assert cluster_elsewhere("hawk", "Not Hawk", "ssh", {}, Project.create_named("Other")).slug == "hawk-2"
    assert cluster_elsewhere("hawk", "Hawk", "ssh", {}, Project.create_named("Third")) == mine


def test_bundles_of_thousands_of_names_are_refused_at_once(page: Client, django_assert_max_num_queries: Any) -> None:
    """Each name is a query: a long address would hold a thread for minutes."""
    with django_assert_max_num_queries(20):
        answer = page.get("/bundles/new/?of=" + ",".join(f"t:{number}" for number in range(2000)))
    assert (answer.status_code, "at most 100 names" in answer.text) == (400, True)


def test_import_is_refused_beyond_the_quota_of_files(
    page: Client, person: User, library: Project, archive: bytes
) -> None:
    library.most_disk_gib = 1
    library.save()
    assert send(person, archive).status_code == 201
    Artifact.objects.update(size_bytes=1 << 30)
    refused = send(person, archive)
    assert refused.status_code == 400
    assert "has used up its quota" in refused.json()["errors"][0]["message"]
    fields = {"file": SimpleUploadedFile("water.zip", archive), "project": "default", "import": "1"}
    assert "has used up its quota" in page.post("/imports/", fields).text
