"""Nodes that Grid Engine allots: Sun's, Univa's, Altair's, Son of and Open Grid Engine."""

from __future__ import annotations

from experiments.cluster_kinds.scheduler import LoginSettings, SchedulerKind
from experiments.cluster_kinds.settings import Name, Settings, stated


class _Asked(Settings):
    """What is asked of Grid Engine."""

    parallel_environment: Name = stated(
        ...,
        "Parallel environment",
        "One whose allocation rule is the number of slots of a host, so that hosts are taken whole; qconf -spl lists them.",
        "Queue",
    )
    queue: Name | None = stated(None, "Queue", "Empty: any.", "Queue")
    project: Name | None = stated(None, "Project", "As of qsub -P.", "Queue")


class GridengineSettings(LoginSettings, _Asked):
    """Nodes that Grid Engine allots."""


class Gridengine(SchedulerKind):
    """Logins reach the nodes of a job."""

    name = "gridengine"
    title = "Grid Engine"
    summary = "Sun's and its successors"
    noun = "Grid Engine"
    settings_type = GridengineSettings
