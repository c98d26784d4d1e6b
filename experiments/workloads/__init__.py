"""Registry of workloads. A new workload is one small file and one line here."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from experiments.workloads.base import (
    FigureOfMerit,
    LoadTest,
    Mismatch,
    OwnTime,
    Parameters,
    Parsed,
    Phases,
    WorkloadDefinition,
)
from experiments.workloads.command import COMMAND
from experiments.workloads.concurrent_readers import CONCURRENT_READERS
from experiments.workloads.data_staging import DATA_STAGING
from experiments.workloads.hpcc import HPCC
from experiments.workloads.imb import IMB
from experiments.workloads.linpack import HPL
from experiments.workloads.netpipe import NETPIPE
from experiments.workloads.osu import OSU
from experiments.workloads.pingpong import PINGPONG
from experiments.workloads.ring import RING
from experiments.workloads.water import WATER

__all__ = [
    "FigureOfMerit",
    "LoadTest",
    "Mismatch",
    "OwnTime",
    "Parameters",
    "Parsed",
    "Phases",
    "WorkloadDefinition",
    "add_source",
    "built_in",
    "find",
    "get",
    "is_absent",
    "missing_packages",
    "registry",
    "scaling_of",
]

_WORKLOADS: dict[str, WorkloadDefinition] = {
    workload.slug: workload
    for workload in (
        *(WATER, PINGPONG, RING, CONCURRENT_READERS, DATA_STAGING),
        *(HPL, HPCC, NETPIPE, IMB, OSU, COMMAND),
    )
}
_SOURCES: Final[list[Callable[[], Mapping[str, WorkloadDefinition]]]] = []
_PYTHON_MODULES: Final = Path("/usr/lib/python3/dist-packages")
"""Directory of the modules that Debian's packages install for ``/usr/bin/python3``."""


def add_source(source: Callable[[], Mapping[str, WorkloadDefinition]]) -> None:
    """Add a source of workloads by name; built-in ones take precedence."""
    _SOURCES.append(source)


def registry() -> tuple[WorkloadDefinition, ...]:
    """Return all workloads in the order of the picker, built-in ones first."""
    further = {slug: workload for source in _SOURCES for slug, workload in source().items()}
    return (*_WORKLOADS.values(), *(workload for slug, workload in further.items() if slug not in _WORKLOADS))


def built_in() -> tuple[WorkloadDefinition, ...]:
    """Return the workloads that come with Rankwire."""
    return tuple(_WORKLOADS.values())


def get(slug: str, parameters: Mapping[str, Any] | None = None, cluster: str = "") -> WorkloadDefinition:
    """Return the workload as constants define it on a cluster. Raise KeyError."""
    workload = find(slug, parameters, cluster)
    if workload is None:
        raise KeyError(slug)
    return workload


def find(slug: str, parameters: Mapping[str, Any] | None = None, cluster: str = "") -> WorkloadDefinition | None:
    """Return the workload as ``get`` does; None for an unknown one."""
    workload = next((source()[slug] for source in (lambda: _WORKLOADS, *_SOURCES) if slug in source()), None)
    return None if workload is None else workload.bind(parameters or {}, cluster)


def scaling_of(slug: str, specification: Mapping[str, Any]) -> Literal["strong", "weak", "throughput"]:
    """Return how an experiment scales, as stated if its workload leaves a choice.

    If each rank always has the same work, more hosts are weak scaling.
    """
    workload = find(slug, specification.get("parameters"))
    if workload is not None and workload.work_grows:
        return "weak"
    scaling: Literal["strong", "weak", "throughput"] = specification.get("scaling", "strong")
    return scaling


def program_versions(slug: str, parameters: Mapping[str, Any]) -> dict[str, int] | None:
    """Return the chosen and the latest version of a registered program."""
    program = find(slug)
    if program is None or not program.registered:
        return None
    latest = program.parameters_type.model_fields["version"].default
    chosen = parameters.get("version", latest)
    return {"chosen": chosen, "latest": latest} if isinstance(chosen, int) else None


def missing_packages(workload: WorkloadDefinition) -> tuple[str, ...]:
    """Return the Debian packages that this machine lacks for ``workload``, sorted."""
    programs = {package for program, package in workload.programs.items() if not _is_installed(program)}
    modules = {package for name, package in workload.python_modules.items() if not (_PYTHON_MODULES / name).exists()}
    return tuple(sorted(programs | modules))


def is_absent(program: str) -> bool:
    """Return whether a full path names no file of this machine."""
    try:
        return program.startswith("/") and not Path(program).exists()
    except OSError:  # it may be in a directory that this process cannot read
        return False


def _is_installed(program: str) -> bool:
    if "*" in program:  # a path in which Debian puts a version
        return any(Path("/").glob(program.lstrip("/")))
    return shutil.which(program) is not None
