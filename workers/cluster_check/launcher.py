"""Check of the launcher: does the batch system know it, and which one fits."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from experiments.cluster_kinds.settings import MPIRUN
from workers.cluster_check.step import Step, ok, problem, warning
from workers.launchers.remote import RemoteSession

NAME: Final = "Launcher"
_INTERFACES: Final = {"srun-pmix": "pmix", "srun-pmi2": "pmi2"}
_BINDING: Final = ("affinity", "cgroup")
"""Task plugins of Slurm that bind ranks."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers of the first host; ``known``: launchers of its batch system.

    ``site``: the launcher that the site's own settings name; ``binds``: whether it keeps `bind`.
    """

    known: Collection[str]
    said: str
    site: str = ""
    binds: bool = True


def launcher(session: RemoteSession) -> Step | None:
    """Return the step; None if the kind of cluster has mpirun alone."""
    choices = set(session.settings.launcher_choices) - {MPIRUN}
    if not choices:
        return None
    answers = _slurm(session) if "srun-pmix" in choices else _other(session, choices.pop())
    library = session.usual_launch.library
    return judge(session.settings.launcher, library, answers, has_mpirun=session.find("mpirun") is not None)


def judge(chosen: str, library: str, answers: Answers, *, has_mpirun: bool) -> Step:
    """Judge the chosen launcher, and propose one for the library. Pure."""
    fitting = ("srun-pmi2", "srun-pmix") if library != "openmpi" else ("srun-pmix",)
    candidates = (answers.site, *fitting, "flux-run", "pals")
    proposed = next((name for name in candidates if name in answers.known), None)
    if chosen != MPIRUN and chosen not in answers.known:
        remedy = f"Choose {proposed or MPIRUN} under “Launcher”."
        return problem(NAME, f"{chosen} is not known there", answers.said, remedy)
    if chosen != MPIRUN and not answers.binds:
        seen = f"{answers.said} Slurm binds no ranks there, so “bind” has no effect."
        return warning(NAME, "Binds no ranks", seen, "Set TaskPlugin of Slurm to task/affinity, or choose mpirun.")
    if chosen == MPIRUN and proposed and not has_mpirun:
        return warning(
            NAME, f"{proposed} fits", f"{answers.said} There is no mpirun.", f"Choose {proposed} under “Launcher”."
        )
    if chosen == MPIRUN and proposed:
        reason = "is the default of the site" if proposed == answers.site else "can start ranks too"
        return ok(NAME, MPIRUN, f"{answers.said} {proposed} {reason}: choose it if your own jobs use it.")
    without = " Open MPI has no PMI2, unless it was built with it: its programs need srun-pmix or mpirun."
    return ok(NAME, chosen, answers.said + (without if chosen == "srun-pmi2" else ""))


def slurm_answers(plugins: str, configuration: str) -> Answers:
    """Parse `srun --mpi=list` and `scontrol show config`. Pure."""
    names = [line.split()[-1] for line in plugins.splitlines() if re.fullmatch(r"(srun:)?\s+[a-z0-9_]+", line)]
    values = dict(re.findall(r"^(MpiDefault|TaskPlugin)\s*= *(\S+)", configuration, re.MULTILINE))
    default, tasks = values.get("MpiDefault", "none"), values.get("TaskPlugin", "")
    launchers = [name for name, interface in _INTERFACES.items() if interface in names]
    site = next((name for name, interface in _INTERFACES.items() if default.startswith(interface)), "")
    said = f"srun --mpi=list: {', '.join(sorted(names)) or 'no answer'}; MpiDefault={default}, TaskPlugin={tasks or 'unknown'}."
    return Answers(launchers, said, site, not tasks or any(name in tasks for name in _BINDING))


def _slurm(session: RemoteSession) -> Answers:
    plugins = session.output("sh", "-c", "srun --mpi=list 2>&1")
    return slurm_answers(plugins, session.output("scontrol", "show", "config"))


def _other(session: RemoteSession, name: str) -> Answers:
    program = {"flux-run": "flux", "pals": "mpiexec"}[name]
    version = session.output(program, "--version").strip().partition("\n")[0]
    path = session.find(program) or ""
    is_there = bool(version) and (name == "flux-run" or "pals" in f"{path} {version}".lower())
    return Answers([name] if is_there else [], f"{program} --version: {version or 'no answer'}.")
