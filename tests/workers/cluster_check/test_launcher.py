"""The check of the launcher: what Slurm says, and which launcher is proposed."""

from __future__ import annotations

import pytest

from workers.cluster_check.launcher import Answers, judge, slurm_answers

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
    ],
)
def test_the_launcher_that_fits_is_proposed(
    chosen: str, library: str, answers: Answers, has_mpirun: bool, state: str, proposed: str
) -> None:
    step = judge(chosen, library, answers, has_mpirun=has_mpirun)
    assert (step.name, step.state) == ("Launcher", state)
    assert proposed in step.seen + step.remedy
