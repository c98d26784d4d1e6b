"""The registry of kinds of cluster. A new kind is one small file and one line here, and its launcher.

The launcher is the class in the module of ``workers.launchers`` that is called as the kind is.
"""

from __future__ import annotations

from typing import Final

from experiments.cluster_kinds.base import ClusterKind
from experiments.cluster_kinds.links import AskedLink, asked_parts
from experiments.cluster_kinds.local import Local
from experiments.cluster_kinds.slurm import Slurm
from experiments.cluster_kinds.ssh import Ssh
from experiments.cluster_kinds.testbed import Testbed

__all__ = ["AskedLink", "ClusterKind", "choices", "get", "refusals", "registry"]

_KINDS: Final[dict[str, ClusterKind]] = {kind.name: kind for kind in (Testbed(), Local(), Ssh(), Slurm())}


def registry() -> tuple[ClusterKind, ...]:
    """Return all kinds in the order in which they are offered."""
    return tuple(_KINDS.values())


def get(name: str) -> ClusterKind:
    """Return the kind that is stored as ``name``. Raise KeyError for an unknown one."""
    return _KINDS[name]


def choices() -> list[tuple[str, str]]:
    """Return what is stored of every kind and what people read."""
    return [(kind.name, kind.title) for kind in registry()]


def refusals(kind: ClusterKind, link: AskedLink) -> list[str]:
    """Return why ``kind`` cannot make ``link``: a sentence that names what is asked of it and who can; [] where it can."""
    wanted = [part for part in asked_parts(link) if part not in kind.emulates]
    if not wanted:
        return []
    able = " and ".join(other.noun for other in registry() if other.emulates.issuperset(wanted))
    return [f"Only {able} can set these properties of a link; here the network is taken as it is: {', '.join(wanted)}."]
