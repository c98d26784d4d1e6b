"""Nodes that Flux allots."""

from __future__ import annotations

from experiments.cluster_kinds.scheduler import SchedulerKind, SchedulerSettings
from experiments.cluster_kinds.settings import Name, Settings, Word, stated


class _Asked(Settings):
    """What is asked of Flux."""

    queue: Name | None = stated(None, "Queue", "Empty: Flux' default.", "Queue")
    bank: Name | None = stated(None, "Bank", "As of flux batch.", "Queue")
    requires: Word | None = stated(None, "Requires", "Properties that nodes must have, as of flux batch.", "Queue")


class FluxSettings(SchedulerSettings, _Asked):
    """Nodes that Flux allots."""


class Flux(SchedulerKind):
    """Commands of Flux reach the nodes of a job."""

    name = "flux"
    title = "Flux"
    summary = "Flux Framework"
    noun = "Flux"
    settings_type = FluxSettings
