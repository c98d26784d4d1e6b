"""Registry of the kinds of cluster.

A new kind is one class and one line here, and a launcher in the module of ``workers.launchers`` that has its name.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from experiments.cluster_kinds.base import ClusterKind
from experiments.cluster_kinds.links import AskedLink, asked_parts, part_of, written_parts
from experiments.cluster_kinds.local import Local
from experiments.cluster_kinds.scheduler import Flux, Gridengine, Lsf, Pbs, Slurm
from experiments.cluster_kinds.ssh import Ssh
from experiments.cluster_kinds.testbed import Testbed
from experiments.specification.parameters import LINK_PARAMETERS, Link

__all__ = ["AskedLink", "ClusterKind", "choices", "get", "refusals", "refused_settings", "registry"]

_KINDS: Final[dict[str, ClusterKind]] = {
    kind.name: kind for kind in (Testbed(), Local(), Ssh(), Slurm(), Pbs(), Lsf(), Flux(), Gridengine())
}


def registry() -> tuple[ClusterKind, ...]:
    """Return all kinds in the order of their offer."""
    return tuple(_KINDS.values())


def get(name: str) -> ClusterKind:
    """Return the kind that is stored as ``name``. Raise KeyError for an unknown one."""
    return _KINDS[name]


def choices() -> list[tuple[str, str]]:
    """Return the stored name and the title of every kind."""
    return [(kind.name, kind.title) for kind in registry()]


def refusals(kind: ClusterKind, link: AskedLink) -> list[str]:
    """Return why ``kind`` cannot make ``link``, in a sentence; [] if it can."""
    parts = [part for part in asked_parts(link) if part not in kind.emulates]
    listed = ", ".join(parts)
    words = f"Only {_able(parts)} can set these properties of a link; here the network is taken as it is: {listed}."
    return [words] if parts else []


def refused_settings(kind: ClusterKind, link: Link, swept: Collection[str]) -> dict[str, str]:
    """Return why ``kind`` cannot make the written link, by field; {} if it can."""
    parts = {f"link.{name}": part for name, part in written_parts(link).items()}
    parts |= {f"sweep.{name}": part_of(name.removeprefix("link.")) for name in swept if name in LINK_PARAMETERS}
    return {
        field: f"only {_able([part])} can set it; the network of {kind.noun} is taken as it is"
        for field, part in parts.items()
        if part not in kind.emulates
    }


def refused_ideal_runs(kind: ClusterKind) -> str:
    """Return why ``kind`` has no ideal network; empty if it has one."""
    needed = ("bandwidth", "delay")
    if kind.emulates.issuperset(needed):
        return ""
    return f"only {_able(needed)} can make an ideal network; that of {kind.noun} is taken as it is"


def _able(parts: Collection[str]) -> str:
    return " and ".join(other.noun for other in registry() if other.emulates.issuperset(parts))
