"""The check of the launcher: what Slurm says, and which launcher is proposed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from workers import launchers
from workers.cluster_check.launcher import Answers, judge, launcher, slurm_answers
from workers.launchers.job import Launch

LIST = (
    "MPI plugin types are...\n\tpmix\n\tnone\n\tcray_shasta\n\tpmi2\nspecific pmix plugin versions available: pmix_v4\n"
)
OLD_LIST = "srun: MPI types are...\nsrun: none\nsrun: pmi2\nsrun: openmpi\n"
CONFIG = "Configuration data as of 2026\nMpiDefault              = {}\nTaskPlugin              = {}\n"


def test_slurm_lists_interfaces_default_and_binding() -> None:
    answers = slurm_answers(LIST, CONFIG.format("pmix_v4", "task/cgroup,task/affinity"))
    assert (answers.known, answers.site, answers.binds) == (["srun-pmix", "srun-pmi2"], "srun-pmix", True)
    old = slurm_answers(OLD_LIST, CONFIG.format("none", "task/none"))
    assert (old.known, old.site, old.binds) == (["srun-pmi2"], "", False)
    silent = slurm_answers("", "")
    assert (silent.known, silent.site, silent.binds) == ([], "", True)


BOTH = ("srun-pmix", "srun-pmi2")


@pytest.mark.parametrize(
    ("chosen", "library", "answers", "has_mpirun", "state", "proposed"),
    [
        ("srun-pmix", "openmpi", Answers(BOTH, ""), False, "ok", ""),
        ("srun-pmix", "openmpi", Answers(["srun-pmi2"], ""), True, "problem", "mpirun"),
        ("srun-pmix", "mpich", Answers(["srun-pmi2"], ""), True, "problem", "srun-pmi2"),
        ("srun-pmix", "openmpi", Answers(BOTH, "", binds=False), True, "warning", "mpirun"),
        ("mpirun", "openmpi", Answers(BOTH, ""), False, "warning", "srun-pmix"),
        ("mpirun", "mpich", Answers(BOTH, ""), False, "warning", "srun-pmi2"),
        ("mpirun", "openmpi", Answers(BOTH, "", site="srun-pmi2"), True, "ok", "srun-pmi2 is the default of the site"),
        ("mpirun", "openmpi", Answers([], ""), True, "ok", ""),
        ("mpirun", "openmpi", Answers(["flux-run"], ""), False, "warning", "flux-run"),
        ("pals", "mpich", Answers([], ""), True, "problem", "mpirun"),
        ("srun-pmi2", "openmpi", Answers(BOTH, ""), True, "ok", "need srun-pmix or mpirun"),
    ],
)
def test_the_launcher_that_fits_is_proposed(
    chosen: str, library: str, answers: Answers, has_mpirun: bool, state: str, proposed: str
) -> None:
    step = judge(chosen, library, answers, has_mpirun=has_mpirun)
    assert (step.name, step.state) == ("Launcher", state)
    assert proposed in step.seen + step.remedy


@pytest.mark.parametrize(
    ("kind", "chosen", "path", "version", "state"),
    [
        ("pbs", "pals", "/opt/cray/pals/1.2/bin/mpiexec", "mpiexec version 1.2.12", "ok"),
        ("pbs", "pals", "/usr/bin/mpiexec", "mpiexec (OpenRTE) 4.1.4", "problem"),
        ("flux", "flux-run", "/usr/bin/flux", "commands: 0.61.0", "ok"),
        ("flux", "flux-run", None, "", "problem"),
    ],
)
def test_flux_and_pals_are_known_by_their_commands(
    kind: str, chosen: str, path: str | None, version: str, state: str
) -> None:
    settings = launchers.get(kind, {"launcher": chosen}).settings
    session: Any = SimpleNamespace(
        settings=settings,
        usual_launch=Launch(),
        find=lambda program: path if program != "mpirun" else None,
        output=lambda *argv: f"{version}\n",
    )
    step = launcher(session)
    assert step is not None
    assert step.state == state


def test_a_cluster_without_a_choice_has_no_step() -> None:
    session: Any = SimpleNamespace(settings=launchers.get("ssh", {"hosts": ["n1"]}).settings)
    assert launcher(session) is None
