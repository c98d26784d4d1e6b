"""The launchers by kind of cluster. A kind's is the class in the module of this package that is called as the kind is."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from experiments import cluster_kinds
from workers.errors import ClusterUnavailable
from workers.launchers.base import Launcher


def get(kind: str, settings: Mapping[str, Any] | None = None) -> Launcher:
    """The launcher of one kind with the settings of one cluster. Raises ClusterUnavailable."""
    try:
        name = cluster_kinds.get(kind).name
    except KeyError:
        known = ", ".join(each.name for each in cluster_kinds.registry())
        raise ClusterUnavailable(f"There is no kind of cluster “{kind}”, only {known}.") from None
    return _launcher_of(name)(settings)


def _launcher_of(kind: str) -> type[Launcher]:
    module = import_module(f"workers.launchers.{kind}")
    classes = [each for each in vars(module).values() if isinstance(each, type) and issubclass(each, Launcher)]
    return next(each for each in classes if "kind" in vars(each) and each.kind.name == kind)
