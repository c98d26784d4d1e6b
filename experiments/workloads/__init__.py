"""The registry of workloads. A new workload is one small file and one line here."""

from __future__ import annotations

import shutil

from experiments.workloads.base import FigureOfMerit, Parameters, Parsed, Workload
from experiments.workloads.water import Water

__all__ = ["FigureOfMerit", "Parameters", "Parsed", "Workload", "get", "missing_packages", "registry"]

_WORKLOADS: dict[str, Workload] = {workload.slug: workload for workload in (Water(),)}


def registry() -> tuple[Workload, ...]:
    """Return all workloads in the order of the picker."""
    return tuple(_WORKLOADS.values())


def get(slug: str) -> Workload:
    """Return the workload called ``slug``. Raise KeyError for an unknown one."""
    return _WORKLOADS[slug]


def missing_packages(workload: Workload) -> tuple[str, ...]:
    """Return the Debian packages that this machine lacks for ``workload``, in alphabetical order."""
    return tuple(sorted({package for program, package in workload.programs.items() if shutil.which(program) is None}))
