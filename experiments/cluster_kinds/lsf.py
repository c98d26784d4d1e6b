"""Nodes that LSF allots."""

from __future__ import annotations

from experiments.cluster_kinds.scheduler import LoginSettings, SchedulerKind
from experiments.cluster_kinds.settings import Name, Settings, Word, stated


class _Asked(Settings):
    """What is asked of LSF."""

    queue: Name | None = stated(None, "Queue", "Empty: LSF's default.", "Queue")
    project: Name | None = stated(None, "Project", "As of bsub -P.", "Queue")
    resources: Word | None = stated(
        None, "Resources", "What nodes must have, as of bsub -R: select[mem>64000].", "Queue"
    )


class LsfSettings(LoginSettings, _Asked):
    """Nodes that LSF allots."""


class Lsf(SchedulerKind):
    """Logins reach the nodes of a job."""

    name = "lsf"
    title = "LSF"
    summary = "IBM Spectrum LSF"
    noun = "LSF"
    settings_type = LsfSettings
