"""Nodes that PBS allots: OpenPBS and PBS Professional."""

from __future__ import annotations

from experiments.cluster_kinds.scheduler import LoginSettings, SchedulerKind
from experiments.cluster_kinds.settings import Name, Word, stated


class PbsSettings(LoginSettings):
    """Nodes that PBS allots."""

    queue: Name | None = stated(None, "Queue", "Queue")
    """Empty: PBS' default."""
    account: Name | None = stated(None, "Account", "Queue")
    """As of qsub -A."""
    attach: Word = stated("/opt/pbs/bin/pbs_attach", "Attach", "Queue")
    """The nodes' command that takes a login into the job."""
    select: Word | None = stated(None, "Of every node", "Queue")
    """What a chunk of select must have beside its processors: mem=64gb:mpiprocs=32."""


class Pbs(SchedulerKind):
    """Logins reach the nodes of a job."""

    name = "pbs"
    title = "PBS"
    summary = "OpenPBS and PBS Professional"
    noun = "PBS"
    settings_type = PbsSettings
