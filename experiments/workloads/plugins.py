"""Workloads in Python modules of a directory or of installed packages.

A package names its definitions under the entry point group ``rankwire.workloads``; of the files of a directory every
``WorkloadDefinition`` that they define is taken. They are loaded once, when a process starts.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from experiments.workloads.base import WorkloadDefinition

GROUP: Final = "rankwire.workloads"


class UnusableWorkload(Exception):
    """A module or package without a usable workload; the sentence names it."""


def load(directory: Path | None, built_in: Sequence[WorkloadDefinition]) -> dict[str, WorkloadDefinition]:
    """Return the workloads of packages and of ``directory``. Raise UnusableWorkload."""
    workloads: dict[str, WorkloadDefinition] = {}
    names = {workload.slug for workload in built_in}
    for source, workload in (*_installed(), *_in_directory(directory)):
        if workload in (*built_in, *workloads.values()):
            continue  # a module imported it, or has a second name for it
        if not isinstance(workload, WorkloadDefinition):
            raise UnusableWorkload(f"{source}: {workload!r} is no WorkloadDefinition.")
        if workload.slug in {*names, *workloads}:
            raise UnusableWorkload(f"{source}: there is a workload {workload.slug!r} already.")
        workloads[workload.slug] = workload
    return workloads


def _installed() -> Iterator[tuple[str, Any]]:
    for entry in entry_points(group=GROUP):
        try:
            yield f"{entry.name} of the package {entry.dist.name if entry.dist else '?'}", entry.load()
        except Exception as error:
            raise UnusableWorkload(f"The workload {entry.value} cannot be loaded: {error}.") from error


def _in_directory(directory: Path | None) -> Iterator[tuple[str, Any]]:
    if directory is not None and not directory.is_dir():
        raise UnusableWorkload(f"The directory of workloads {directory} does not exist.")
    for file in sorted(directory.glob("*.py")) if directory is not None else ():
        name = f"rankwire_workloads_{file.stem}"
        spec: Any = importlib.util.spec_from_file_location(name, file)
        module = sys.modules[name] = importlib.util.module_from_spec(spec)  # pydantic resolves annotations there
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise UnusableWorkload(f"{file} cannot be loaded: {type(error).__name__}: {error}.") from error
        yield from ((str(file), value) for value in vars(module).values() if isinstance(value, WorkloadDefinition))
