"""Workloads as Python classes outside of this repository: in a directory, or in installed packages.

A package names its classes under the entry point group ``rankwire.workloads``; a directory holds files of which every concrete
``Workload`` that they define is taken. They are loaded once, by a process that starts.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from experiments.workloads.base import Workload

GROUP: Final = "rankwire.workloads"


class UnusableWorkload(Exception):
    """What somebody brought is no workload; the sentence names it."""


def load(directory: Path | None, taken: Iterable[str]) -> dict[str, Workload]:
    """Return the workloads of the installed packages and of ``directory`` by name. Raise UnusableWorkload for one that cannot be used.

    ``taken`` are names that there are already.
    """
    found: dict[str, Workload] = {}
    known = set(taken)
    for place, kind in (*_installed(), *_in_directory(directory)):
        workload = _made(place, kind)
        if workload.slug in known:
            raise UnusableWorkload(f"{place}: there is a workload {workload.slug!r} already.")
        known.add(workload.slug)
        found[workload.slug] = workload
    return found


def _installed() -> Iterator[tuple[str, Any]]:
    for entry in entry_points(group=GROUP):
        try:
            yield f"{entry.name} of the package {entry.dist.name if entry.dist else '?'}", entry.load()
        except Exception as error:
            raise UnusableWorkload(f"The workload {entry.value} cannot be loaded: {error}.") from error


def _in_directory(directory: Path | None) -> Iterator[tuple[str, Any]]:
    if directory is None:
        return
    if not directory.is_dir():
        raise UnusableWorkload(f"The directory of workloads {directory} does not exist.")
    for file in sorted(directory.glob("*.py")):
        name = f"rankwire_workloads_{file.stem}"
        described = importlib.util.spec_from_file_location(name, file)
        if described is None or described.loader is None:
            raise UnusableWorkload(f"{file} is no Python file.")
        module = importlib.util.module_from_spec(described)
        sys.modules[name] = module  # where pydantic looks names of annotations up
        try:
            described.loader.exec_module(module)
        except Exception as error:
            raise UnusableWorkload(f"{file} cannot be loaded: {type(error).__name__}: {error}.") from error
        for kind in vars(module).values():
            is_own = inspect.isclass(kind) and issubclass(kind, Workload) and kind.__module__ == name
            if is_own and not inspect.isabstract(kind):
                yield str(file), kind


def _made(place: str, kind: Any) -> Workload:
    if not (inspect.isclass(kind) and issubclass(kind, Workload)) or inspect.isabstract(kind):
        raise UnusableWorkload(f"{place}: {kind!r} is no complete class of a workload.")
    workload = kind()
    missing = [
        name
        for name in ("slug", "title", "summary", "programs", "parameters_type", "figures")
        if not hasattr(workload, name)
    ]
    if missing:
        raise UnusableWorkload(f"{place}: {kind.__name__} says no {missing[0]}.")
    return workload
