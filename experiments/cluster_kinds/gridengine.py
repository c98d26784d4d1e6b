"""Nodes that Grid Engine allots: Sun's, Univa's, Altair's, Son of and Open Grid Engine."""

from __future__ import annotations

from experiments.cluster_kinds.scheduler import LoginSettings, SchedulerKind
from experiments.cluster_kinds.settings import Name, stated


class GridengineSettings(LoginSettings):
    """Nodes that Grid Engine allots."""

    parallel_environment: Name = stated(..., "Parallel environment", "Queue")
    """One whose allocation rule is the number of slots of a host, so that hosts are taken whole; qconf -spl lists them."""
    queue: Name | None = stated(None, "Queue", "Queue")
    """Empty: any."""
    project: Name | None = stated(None, "Project", "Queue")
    """As of qsub -P."""


class Gridengine(SchedulerKind):
    """Logins reach the nodes of a job."""

    name = "gridengine"
    title = "Grid Engine"
    summary = "Sun's and its successors"
    noun = "Grid Engine"
    settings_type = GridengineSettings
