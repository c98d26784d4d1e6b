"""Steps of a cluster check by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workers.cluster_check.run import steps_of
from workers.cluster_check.step import Step


def steps_by_name(kind: str, settings: Mapping[str, Any]) -> dict[str, Step]:
    return {step.name: step for step in steps_of(kind, settings, lambda trying, steps: None)}


def states(steps: Mapping[str, Step]) -> dict[str, str]:
    """Return the state of every step, without counters of this machine's devices."""
    return {name: step.state for name, step in steps.items() if not name.startswith("Counters: ")}
