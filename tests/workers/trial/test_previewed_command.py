"""The previewed command is the one that a trial stores."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from experiments import workloads
from experiments.files import trial_directory
from experiments.models import Cluster, Experiment, Trial
from experiments.specification import restore
from experiments.specification.design import expand
from tests.workers.clusters.mpi_programs import mpi_program, prefix_of_open_mpi
from tests.workers.clusters.real_hosts import Slurm, SshHosts
from tests.workers.clusters.trials import PlainLink
from workers import launchers
from workers.errors import LaunchFailed
from workers.launchers import Job, Session
from workers.preview import dry_run
from workers.trial import pipeline

WORKLOADS = [workload.slug for workload in workloads.registry()]
NEEDED_PARAMETERS: dict[str, dict[str, Any]] = {
    "command": {"program": ["./work", "--steps={steps}"], "placeholders": {"steps": {"default": 100}}, "steps": 7}
}
NOT_LAUNCHED = "The command is stored: it need not be run."


def previewed(trial: Trial, **named: str) -> list[str]:
    """Return the preview's command with its words in capitals filled in."""
    spec = restore(trial.experiment.specification)
    argv = dry_run(spec, expand(spec), 0).argv
    return [re.sub("|".join(named), lambda match: named[match[0]], word) for word in argv]


@pytest.fixture
def trials_of(run_all: Callable[..., list[Trial]], monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Trial]]:
    """Return a trial of every workload by its name, on one open session.

    Each ends when its command is stored, so that its program need not be here; on two ranks, as NetPIPE takes no other
    number.
    """

    def run(session: Session, cluster: str) -> dict[str, Trial]:
        def refuse(job: Job, **_: object) -> None:
            raise LaunchFailed(NOT_LAUNCHED)

        @contextlib.contextmanager
        def lease(*_: object, **__: object) -> Iterator[Session]:
            yield session

        monkeypatch.setattr(session, "launch", refuse)
        monkeypatch.setattr(pipeline.POOL, "lease", lease)
        monkeypatch.setattr(workloads, "missing_packages", lambda _: ())
        hosts = len(session.hosts)
        shape = {"hosts": hosts, "ranks_per_host": 2 // hosts}
        options = {"cluster": cluster, "capture": {"enabled": False}, "certificate": "skip"}
        return {
            slug: run_all(workload=slug, parameters=shape | NEEDED_PARAMETERS.get(slug, {}), **options)[0]
            for slug in WORKLOADS
        }

    return run


def require_equal(trials: Mapping[str, Trial], command_of: Callable[[Trial], list[str]]) -> None:
    assert list(trials) == WORKLOADS
    for slug, trial in trials.items():
        assert NOT_LAUNCHED in trial.message, trial.message + trial.traceback
        assert command_of(trial) == trial.command, slug


@pytest.mark.parametrize(("cluster", "hosts"), [("testbed", 2), ("local", 1)])
def test_it_is_the_same_word_for_word_on_this_machine(
    cluster: str, hosts: int, trials_of: Callable[..., dict[str, Trial]]
) -> None:
    with launchers.get(cluster).open(host_count=hosts, link=PlainLink()) as session:
        trials = trials_of(session, cluster)
    require_equal(trials, lambda trial: previewed(trial, TRIAL=str(trial_directory(trial))))


@pytest.mark.parametrize(("kind", "more"), [("ssh", {}), ("slurm", {}), ("slurm", {"launcher": "srun-pmix"})])
def test_it_is_the_same_on_real_hosts_but_for_the_names_that_only_they_can_give(
    kind: str,
    more: dict[str, Any],
    trials_of: Callable[..., dict[str, Trial]],
    ssh_hosts: SshHosts,
    request: pytest.FixtureRequest,
) -> None:
    hosts: SshHosts | Slurm = ssh_hosts if kind == "ssh" else request.getfixturevalue("slurm")
    Cluster.objects.create(slug="real", name="Real hosts", kind=kind, settings=hosts.settings(**more))
    with launchers.get(kind, hosts.settings(**more)).open(host_count=2, link=PlainLink()) as session:
        trials = trials_of(session, "real")
        random = session.scratch.name.removeprefix("rankwire-")
        names = dict(zip(("node1", "node2"), session.hosts, strict=True)) | {"JOB": session.scheduler_job}
    require_equal(trials, lambda trial: previewed(trial, RANDOM=random, **names))


def test_it_executes_nothing_that_a_running_trial_wrote(
    submit: Callable[..., Experiment], tmp_path: Path, settings: Any
) -> None:
    settings.VAR = tmp_path
    prefix = prefix_of_open_mpi(tmp_path / "trials" / "7" / "work" / "prefix")
    parameters = {
        "program": [str(mpi_program(prefix, "libmpi.so.40"))],
        "environment": {"LD_LIBRARY_PATH": str(prefix / "lib")},
    }
    spec = restore(submit(workload="command", parameters=parameters, cluster="local").specification)
    assert dry_run(spec, expand(spec), 0).argv[0] == "mpirun"
    assert not (prefix / "executed").exists()
