"""How pods would run jobs: as the machine itself does."""

from __future__ import annotations

from tests.new_kinds.pods import Pods
from workers.launchers.local import LocalLauncher


class PodsLauncher(LocalLauncher):
    kind = Pods()
