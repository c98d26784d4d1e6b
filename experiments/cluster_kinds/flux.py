"""Nodes that Flux allots."""

from __future__ import annotations

from experiments.cluster_kinds.scheduler import SchedulerKind, SchedulerSettings
from experiments.cluster_kinds.settings import Name, Word, stated


class FluxSettings(SchedulerSettings):
    """Nodes that Flux allots."""

    queue: Name | None = stated(None, "Queue", "Queue")
    """Empty: Flux' default."""
    bank: Name | None = stated(None, "Bank", "Queue")
    """As of flux batch."""
    requires: Word | None = stated(None, "Requires", "Queue")
    """Properties that nodes must have, as of flux batch."""


class Flux(SchedulerKind):
    """Commands of Flux reach the nodes of a job."""

    name = "flux"
    title = "Flux"
    summary = "Flux Framework"
    noun = "Flux"
    settings_type = FluxSettings
