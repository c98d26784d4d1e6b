"""Settings of clusters: errors at their fields, no unknown or wrong ones."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from experiments import cluster_kinds
from experiments.cluster_kinds.form import form_of, host_names, settings_from, texts_of
from experiments.errors import InvalidSpec
from experiments.models import Cluster, Experiment
from tests.experiments import factories

SSH, SLURM = cluster_kinds.get("ssh"), cluster_kinds.get("slurm")


def refused(kind: cluster_kinds.ClusterKind, **texts: str) -> dict[str, list[str]]:
    with pytest.raises(InvalidSpec) as caught:
        settings_from(kind, texts)
    return caught.value.by_path()


def saved(**settings: Any) -> Cluster:
    factories.load_defaults()
    return Cluster.objects.create(slug="rack", name="Rack", kind="ssh", settings=settings)


def test_it_has_a_field_with_a_label_and_help_for_every_setting_of_every_kind() -> None:
    for kind in cluster_kinds.registry():
        for setting in form_of(kind):
            assert setting.title, setting.path
            assert setting.hint, setting.path
            assert setting.group != "Settings", setting.path


def test_it_makes_settings_of_texts_and_texts_of_settings() -> None:
    texts = {
        "hosts": "n[01-03].bench\ngate",
        "user": "bench",
        "port": "2222",
        "agent": "ssh -i '/srv/my key'",
        "environment": "PATH=/opt/mpi/bin:/usr/bin\nOMPI_MCA_btl=tcp,self",
        "shared_cores": "on",
        "capture_filter": '""',
    }
    settings = settings_from(SSH, texts)
    read = SSH.read_settings(settings)
    assert read.hosts == ("n01.bench", "n02.bench", "n03.bench", "gate")  # type: ignore[attr-defined]
    assert read.agent == ("ssh", "-i", "/srv/my key")  # type: ignore[attr-defined]
    assert read.environment["OMPI_MCA_btl"] == "tcp,self"  # type: ignore[attr-defined]
    assert (read.port, read.shared_cores, read.capture_filter) == (2222, True, "")  # type: ignore[attr-defined]
    again = texts_of(SSH, settings)
    assert settings_from(SSH, again) == settings
    assert again["hosts"].split() == ["n01.bench", "n02.bench", "n03.bench", "gate"]


def test_settings_from_leaves_out_defaults() -> None:
    assert settings_from(SSH, {"hosts": "n1", "user": " ", "mpi": ""}) == {"hosts": ["n1"]}
    assert settings_from(SLURM, {"login.host": "gate", "login.user": "me"}) == {"login": {"host": "gate", "user": "me"}}
    assert settings_from(SLURM, {}) == {}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a b,c\n d", ["a", "b", "c", "d"]),
        ("n[8-11]", ["n8", "n9", "n10", "n11"]),
        ("n[01-02, 7]x", ["n01x", "n02x", "n7x"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
    ],
)
def test_it_reads_ranges_of_hosts(text: str, names: list[str]) -> None:
    assert host_names(text) == names


@pytest.mark.parametrize(
    ("field", "text", "words"),
    [
        ("hosts", "", "is missing"),
        ("hosts", "n[4-1]", "no range of hosts"),
        ("hosts", "n[1-999999999]", "no range of hosts"),
        ("hosts", "-oProxyCommand=evil", "is not a name"),
        ("hosts", "n1 n2 n1", "named more than once: n1"),
        ("port", "70000", "less than or equal to 65535"),
        ("port", "ssh", "must be a whole number"),
        ("scratch", "tmp", "must be a full path"),
        ("scratch", "/srv/$(id)", "must be a full path"),
        ("agent", "ssh 'x", "quotation mark"),
        ("environment", "PATH", "is not NAME=value"),
        ("mpi", "lam", "openmpi"),
    ],
)
def test_settings_from_refuses_a_wrong_text_at_its_field(field: str, text: str, words: str) -> None:
    errors = refused(SSH, **{"hosts": "n1 n2", field: text})
    assert list(errors) == [field]
    assert words in errors[field][0]


def test_a_part_that_lacks_its_first_field_is_refused_there() -> None:
    assert refused(SLURM, **{"login.user": "me"}) == {"login.host": ["is missing"]}
    assert list(refused(SLURM, pending_limit_s="inf")) == ["pending_limit_s"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"host": ["n1"]}, "host: is not a known field; hosts is"),
        ({"host": ["n1"]}, "hosts: is missing"),
        ({"hosts": []}, "hosts: needs at least one"),
    ],
)
def test_a_cluster_cannot_be_saved_with_settings_that_its_kind_does_not_take(
    settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        Cluster(slug="rack", name="Rack", kind="ssh", settings=settings).clean()
    assert words in caught.value.message_dict["settings"]


@pytest.mark.django_db
def test_an_experiment_on_a_cluster_that_is_set_up_wrong_is_refused_with_the_setting() -> None:
    saved(host=["n1"])
    with pytest.raises(InvalidSpec) as caught:
        factories.experiment(cluster="rack", sweep={"hosts": [1]})
    (error,) = caught.value.errors
    assert error.path == "cluster"
    assert error.message == "the settings of Rack are wrong: hosts is missing; host is not a known field; hosts is"
    assert not Experiment.objects.exists()
