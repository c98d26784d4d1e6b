"""Settings of clusters: errors at their fields, no unknown or wrong ones."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from experiments import cluster_kinds
from experiments.cluster_kinds.capture_filters import why_not_compiled
from experiments.cluster_kinds.form import form_of, settings_from, texts_of
from experiments.cluster_kinds.hosts import host_names
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
    assert settings_from(SLURM, {"partition": "compute,long"}) == {"partition": "compute,long"}
    for wrong in ("compute, long", "compute,", "compute,-x", "a,b;c"):
        assert "is not a name" in refused(SLURM, partition=wrong)["partition"][0]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a b,c\n d", ["a", "b", "c", "d"]),
        ("n[8-11]", ["n8", "n9", "n10", "n11"]),
        ("n[01-02, 7]x", ["n01x", "n02x", "n7x"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("rack[0-1]_b[08-09]-ib,c", ["rack0_b08-ib", "rack0_b09-ib", "rack1_b08-ib", "rack1_b09-ib", "c"]),
        ("a,b[001,003],n[98-101]", ["a", "b001", "b003", "n98", "n99", "n100", "n101"]),
    ],
)
def test_it_reads_ranges_of_hosts(text: str, names: list[str]) -> None:
    assert host_names(text) == names


@pytest.mark.parametrize(
    ("field", "text", "words"),
    [
        ("hosts", "", "is missing"),
        ("hosts", "n[4-1]", "is not a range of hosts"),
        ("hosts", "n[1-999999999]", "is more than 10000 hosts"),
        ("hosts", "n[01-\r\nn1 n2\r\nn1", "'n[01-' is not a range of hosts; write"),
        ("hosts", "n[[01]]", "is not a range of hosts"),
        ("hosts", "n[]", "is not a range of hosts"),
        ("hosts", "n[01] n02]", "is not a range of hosts"),
        ("hosts", "n[1-2]n[1-2", "is not a range of hosts"),
        ("hosts", "r[1-999]n[1-999]", "is more than 10000 hosts"),
        ("hosts", "-oProxyCommand=evil", "is not a host name"),
        ("hosts", "n1 n2 n1", "named more than once: n1"),
        ("hosts", "N1 n1", "named more than once: N1, n1"),
        ("hosts", "n1 n1.", "named more than once: n1, n1."),
        ("hosts", "2001:db8::5 2001:DB8:0::5", "named more than once"),
        ("hosts", "n1:4", "write it without slots or a port"),
        ("hosts", "n[1-3]:2", "write it without slots or a port"),
        ("hosts", "10.0.0.7:2", "write it without slots or a port"),
        ("hosts", "n1 slots=4", "write it without slots or a port"),
        ("hosts", "user@n1", "the user has a field of its own"),
        ("hosts", "node_a", "it has an underscore"),
        ("hosts", "n1- n2", "is not a host name"),
        ("hosts", "n1..lab", "is not a host name"),
        ("hosts", "n1 a_b n2 c@d", "'a_b' is not a host name: it has an underscore. Use its address; 'c@d' is"),
        ("hosts", "n[4-1] n1:4 n2 n[a", "'n[4-1]' is not a range of hosts; write for example n[01-04]; 'n[a' is"),
        ("hosts", "n[4-1] n1:4 n2 n[a", "'n1:4' is not a host name"),
        (
            "hosts",
            " ".join(f"n{n}:4" for n in range(13)),
            "'n9:4' is not a host name: write it without slots or a port; 3 more",
        ),
        ("mpirun", "x y;z", "no shell runs it"),
        ("mpirun", "mpirun --verbose", "has a space: no shell runs it"),
        ("mpirun", "/opt/bin/mpirun && true", "has &: no shell runs it"),
        ("capture_filter", "port (", "one “(” has no partner"),
        ("capture_filter", "port 80 and", "is not a capture filter: "),
        ("capture_filter", "port 700000", "is not a capture filter: "),
        ("capture_filter", "host n1 or blah blah", "“blah blah” has no “and”"),
        ("mpirun", "../x", "must be a name in PATH or a full path"),
        ("config", "q", "must be a full path, such as ~/.ssh/config"),
        ("python", "3.9", "3.9 is a version: give the name or path of the program, such as python3.9"),
        ("python", "rm -rf /; python", "has ;: no shell runs it"),
        ("python", "python3; id", "no shell runs it"),
        ("offload_command", "rm -rf /", "'/', the last word, is not the name or path of a program"),
        ("offload_command", "sudo -n", "'-n', the last word, is not the name or path of a program"),
        ("capture_command", "true; dumpcap", "'true;' is for a shell"),
        ("hosts", "10.0.0.256", "is not a host name"),
        ("hosts", f"{'n' * 64}", "is not a host name"),
        ("hosts", "***", "is not a host name"),
        ("key", "keys/id", "must be a full path"),
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


@pytest.mark.parametrize(
    ("kind", "launchers"),
    [("slurm", ["mpirun", "srun-pmix", "srun-pmi2"]), ("pbs", ["mpirun", "pals"]), ("flux", ["mpirun", "flux-run"])],
)
def test_a_batch_system_offers_its_own_launchers(kind: str, launchers: list[str]) -> None:
    (setting,) = [setting for setting in form_of(cluster_kinds.get(kind)) if setting.path == "launcher"]
    assert [word for word, _ in setting.choices] == launchers
    assert settings_from(cluster_kinds.get(kind), {"launcher": launchers[-1]}) == {"launcher": launchers[-1]}


@pytest.mark.parametrize("kind", ["ssh", "lsf", "gridengine"])
def test_a_single_launcher_is_no_choice(kind: str) -> None:
    assert "launcher" not in {setting.path for setting in form_of(cluster_kinds.get(kind))}


@pytest.mark.parametrize(
    ("kind", "settings"), [("slurm", {"options": ["--nice", ":", "-N2"]}), ("pbs", {"select": "mem=64gb+1:ncpus=8"})]
)
def test_jobs_of_several_kinds_of_hosts_are_refused(kind: str, settings: dict[str, Any]) -> None:
    (error,) = cluster_kinds.get(kind).errors_in(settings)
    assert error.path in settings
    assert "all hosts of a trial are equal" in error.message


def test_a_part_that_lacks_its_first_field_is_refused_there() -> None:
    assert refused(SLURM, **{"login.user": "me"}) == {"login.host": ["is missing"]}
    assert "without slots or a port" in refused(SLURM, **{"login.host": "gate:22"})["login.host"][0]
    assert list(refused(SLURM, pending_limit_s="inf")) == ["pending_limit_s"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"host": ["n1"]}, "host: is not a known field; did you mean hosts?"),
        ({"host": ["n1"]}, "hosts: is missing"),
        ({"hosts": []}, "hosts: needs at least one"),
        ({"hosts": ["n1:4"]}, "hosts: 'n1:4' is not a host name"),
        ({"hosts": ["n1", "N1"]}, "hosts: named more than once: n1, N1"),
        ({"hosts": ["n[01-04]"]}, "hosts: 'n[01-04]' is not a host name"),
    ],
)
def test_a_cluster_cannot_be_saved_with_settings_that_its_kind_does_not_take(
    settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        Cluster(slug="rack", name="Rack", kind="ssh", settings=settings).clean()
    assert any(message.startswith(words) for message in caught.value.message_dict["settings"])


@pytest.mark.django_db
def test_an_experiment_on_a_cluster_that_is_set_up_wrong_is_refused_with_the_setting() -> None:
    saved(host=["n1"])
    with pytest.raises(InvalidSpec) as caught:
        factories.experiment(cluster="rack", sweep={"hosts": [1]})
    (error,) = caught.value.errors
    assert error.path == "cluster"
    assert (
        error.message
        == "the settings of Rack are wrong: hosts is missing; host is not a known field; did you mean hosts?"
    )
    assert not Experiment.objects.exists()


@pytest.mark.parametrize(
    ("kind", "limits", "wrong"),
    [
        ("slurm", ["30", "1:30", "1:00:00", "1-12", "1-12:30:00", "UNLIMITED"], ["banana", "1-", "24h"]),
        ("pbs", ["3600", "24:00:00"], ["banana", "1-00:00:00"]),
        ("lsf", ["90", "24:00", "1:30/model"], ["banana", "1:2:3"]),
        ("flux", ["90", "24h", "1.5h", "30m"], ["banana", "1:00"]),
        ("gridengine", ["24:00:00", "INFINITY"], ["banana", "24h"]),
    ],
)
def test_time_limits_are_spelled_as_the_scheduler_reads_them(kind: str, limits: list[str], wrong: list[str]) -> None:
    of_kind = cluster_kinds.get(kind)
    required = {"parallel_environment": "mpi"} if kind == "gridengine" else {}
    for limit in limits:
        assert settings_from(of_kind, {**required, "time_limit": limit})["time_limit"] == limit
    for limit in wrong:
        assert list(refused(of_kind, **required, time_limit=limit)) == ["time_limit"], limit
        stored = {**required, "time_limit": limit}
        assert of_kind.errors_in(stored) == [], "a stored cluster stays usable"


@pytest.mark.parametrize(
    ("kind", "options", "refused_option"),
    [
        ("slurm", "--nodes=3", "--nodes"),
        ("slurm", "--mem=0 -N 3", "-N"),
        ("slurm", "-N3", "-N"),
        ("slurm", "--nodelist=n1 --nodefile=x --mem=0", None),
        ("pbs", "-l select=3:ncpus=4", "select"),
        ("pbs", "-W depend=after:3", None),
        ("lsf", "-n 4", "-n"),
        ("lsf", "-network type=sn", None),
        ("flux", "--nslots=8", "--nslots"),
    ],
)
def test_options_that_rankwire_sets_are_refused(kind: str, options: str, refused_option: str | None) -> None:
    if refused_option is None:
        assert "options" in settings_from(cluster_kinds.get(kind), {"options": options})
        return
    (message,) = refused(cluster_kinds.get(kind), options=options)["options"]
    assert message.startswith(f"{refused_option} is set by Rankwire")


def test_a_constraint_of_several_words_is_refused() -> None:
    assert list(refused(cluster_kinds.get("slurm"), constraint="a b c")) == ["constraint"]
    assert settings_from(cluster_kinds.get("slurm"), {"constraint": "icelake&ib"}) == {"constraint": "icelake&ib"}


@pytest.mark.parametrize(
    "text",
    [
        "tcp portrange 20000-20999",
        "not port 22",
        "host n1 and tcp",
        "net 10.0.0.0/8",
        "ip6 host fe80::1",
        "tcp[13] & 2 != 0",
        "ether host 00:11:22:aa:bb:cc",
        " or ".join(f"port {number}" for number in range(1, 400)),
    ],
)
def test_capture_filters_that_libpcap_compiles_or_that_name_hosts_are_accepted(text: str) -> None:
    assert why_not_compiled(text) == ""


@pytest.mark.parametrize("name", ["1.rankwire.invalid", "1-rankwire.invalid", r"\tcp", "0rankwire", "1.2.3.4.5", "a:b"])
def test_no_name_in_a_capture_filter_is_resolved(name: str) -> None:
    assert why_not_compiled(f"host {name}") == "", "libpcap says that it does not know the host"
