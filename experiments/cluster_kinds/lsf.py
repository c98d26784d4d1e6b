"""Nodes that LSF allots."""

from __future__ import annotations

from experiments.cluster_kinds.scheduler import LoginSettings, SchedulerKind
from experiments.cluster_kinds.settings import Name, Word, stated


class LsfSettings(LoginSettings):
    """Nodes that LSF allots."""

    queue: Name | None = stated(None, "Queue", "Queue")
    """Empty: LSF's default."""
    project: Name | None = stated(None, "Project", "Queue")
    """As of bsub -P."""
    resources: Word | None = stated(None, "Resources", "Queue")
    """What nodes must have, as of bsub -R: select[mem>64000]."""


class Lsf(SchedulerKind):
    """Logins reach the nodes of a job."""

    name = "lsf"
    title = "LSF"
    summary = "IBM Spectrum LSF"
    noun = "LSF"
    settings_type = LsfSettings
