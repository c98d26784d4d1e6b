"""The kinds of cluster by name. A new kind is one more line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workers.errors import ClusterUnavailable
from workers.launchers.base import Launcher
from workers.launchers.local import LocalLauncher
from workers.launchers.slurm import SlurmLauncher
from workers.launchers.ssh import SshLauncher
from workers.launchers.testbed import TestbedLauncher

LAUNCHERS: dict[str, type[Launcher]] = {
    launcher.kind: launcher for launcher in (TestbedLauncher, LocalLauncher, SshLauncher, SlurmLauncher)
}


def kinds() -> tuple[str, ...]:
    """The names of all kinds."""
    return tuple(LAUNCHERS)


def get(kind: str, settings: Mapping[str, Any] | None = None) -> Launcher:
    """The launcher of one kind with the settings of one cluster. Raises ClusterUnavailable."""
    try:
        launcher = LAUNCHERS[kind]
    except KeyError:
        raise ClusterUnavailable(f"There is no kind of cluster “{kind}”, only {', '.join(LAUNCHERS)}.") from None
    return launcher(settings)
