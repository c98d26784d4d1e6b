"""Nodes that PBS allots: OpenPBS and PBS Professional."""

from __future__ import annotations

from experiments.cluster_kinds.scheduler import LoginSettings, SchedulerKind
from experiments.cluster_kinds.settings import Name, Settings, Word, stated


class _Asked(Settings):
    """What is asked of PBS."""

    queue: Name | None = stated(None, "Queue", "Empty: PBS' default.", "Queue")
    account: Name | None = stated(None, "Account", "As of qsub -A.", "Queue")
    attach: Word = stated(
        "/opt/pbs/bin/pbs_attach", "Attach", "The nodes' command that takes a login into the job.", "Queue"
    )
    select: Word | None = stated(
        None, "Of every node", "What a chunk of select must have beside its processors: mem=64gb:mpiprocs=32.", "Queue"
    )


class PbsSettings(LoginSettings, _Asked):
    """Nodes that PBS allots."""


class Pbs(SchedulerKind):
    """Logins reach the nodes of a job."""

    name = "pbs"
    title = "PBS"
    summary = "OpenPBS and PBS Professional"
    noun = "PBS"
    settings_type = PbsSettings
