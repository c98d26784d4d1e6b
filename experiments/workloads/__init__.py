"""The registry of workloads. A new workload is one small file and one line here."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from experiments.workloads.base import FigureOfMerit, LoadTest, Mismatch, OwnTime, Parameters, Parsed, Phases, Workload
from experiments.workloads.command import Command
from experiments.workloads.concurrent_readers import ConcurrentReaders
from experiments.workloads.data_staging import DataStaging
from experiments.workloads.hpcc import Hpcc
from experiments.workloads.hpl import Hpl
from experiments.workloads.imb import Imb
from experiments.workloads.netpipe import NetPipe
from experiments.workloads.osu import Osu
from experiments.workloads.pingpong import PingPong
from experiments.workloads.ring import Ring
from experiments.workloads.water import Water

__all__ = [
    "FigureOfMerit",
    "LoadTest",
    "Mismatch",
    "OwnTime",
    "Parameters",
    "Parsed",
    "Phases",
    "Workload",
    "add_source",
    "built_in",
    "find",
    "get",
    "missing_packages",
    "registry",
]

_WORKLOADS: dict[str, Workload] = {
    workload.slug: workload
    for workload in (
        *(Water(), PingPong(), Ring(), ConcurrentReaders(), DataStaging()),
        *(Hpl(), Hpcc(), NetPipe(), Imb(), Osu(), Command()),
    )
}
_PYTHON_MODULES: Final = Path("/usr/lib/python3/dist-packages")
"""Where Debian's packages put modules for ``/usr/bin/python3``."""


_SOURCES: Final[list[Callable[[], Mapping[str, Workload]]]] = []


def add_source(source: Callable[[], Mapping[str, Workload]]) -> None:
    """Ask ``source`` for further workloads by name from now on; built-in ones go first."""
    _SOURCES.append(source)


def registry() -> tuple[Workload, ...]:
    """Return all workloads in the order of the picker: built-in ones, then those that people brought."""
    further = {slug: workload for source in _SOURCES for slug, workload in source().items()}
    return (*_WORKLOADS.values(), *(workload for slug, workload in further.items() if slug not in _WORKLOADS))


def built_in() -> tuple[Workload, ...]:
    """Return the workloads of Rankwire's own."""
    return tuple(_WORKLOADS.values())


def get(slug: str, parameters: Mapping[str, Any] | None = None) -> Workload:
    """Return the workload called ``slug``, as the constants ``parameters`` of a specification define it.

    Raise KeyError for an unknown one.
    """
    known = _known(slug)
    if known is None:
        raise KeyError(slug)
    return known.bind(parameters or {})


def find(slug: str, parameters: Mapping[str, Any] | None = None) -> Workload | None:
    """Return what ``get`` returns; None for an unknown one, such as the program of a published study that nobody can run here."""
    known = _known(slug)
    return None if known is None else known.bind(parameters or {})


def _known(slug: str) -> Workload | None:
    if slug in _WORKLOADS:
        return _WORKLOADS[slug]
    return next((workload for source in _SOURCES if (workload := source().get(slug)) is not None), None)


def missing_packages(workload: Workload) -> tuple[str, ...]:
    """Return the Debian packages that this machine lacks for ``workload``, in alphabetical order."""
    programs = {package for program, package in workload.programs.items() if not _installed(program)}
    modules = {package for name, package in workload.python_modules.items() if not (_PYTHON_MODULES / name).exists()}
    return tuple(sorted(programs | modules))


def _installed(program: str) -> bool:
    """Return whether a program is there; its path may be a pattern, where Debian puts the version into it."""
    if "*" in program:
        return any(Path("/").glob(program.lstrip("/")))
    return shutil.which(program) is not None
