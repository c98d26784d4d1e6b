"""Programs whose file changed between the trials of an experiment."""

from __future__ import annotations

import hashlib
import os
import stat
from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from django.db.models import QuerySet
from django.utils import timezone

from analysis.scaling import ProgramFile
from experiments.models import Environment, Experiment, State, Trial

_PARTS: Final = ("program", "script")
"""Recorded files of a trial: the executable, and the script that it interprets."""
_MOST_HASHED_BYTES: Final = 64 << 20
Ran = tuple[int, int | None, datetime | None]
"""Configuration, environment and start of a trial."""
Ended = tuple[Any, datetime | None]
"""The recorded files of a finished trial, and its start."""


def changed_programs(trials: Iterable[Ran]) -> tuple[tuple[ProgramFile, ...], ...]:
    """Return the files of each changed program, in the order of their trials.

    A program is what one configuration runs, under whatever path, and what others run under the same path. No query if all trials have
    one environment.
    """
    ran = sorted(
        ((configuration, environment, at) for configuration, environment, at in trials if environment is not None),
        key=lambda trial: trial[2] or datetime.min.replace(tzinfo=UTC),
    )
    keys = {environment for _, environment, _ in ran}
    if len(keys) < 2:
        return ()
    facts = dict(Environment.objects.filter(pk__in=keys).values_list("pk", "facts__program"))
    changed = []
    for part in _PARTS:
        programs: dict[str, str] = {}
        files: dict[str, dict[str, list[tuple[str, datetime | None]]]] = defaultdict(lambda: defaultdict(list))
        of_configuration: dict[int, str] = {}
        for configuration, environment, started in ran:
            path, digest = _file(facts.get(environment), part)
            if not digest:
                continue
            program = programs.setdefault(path, of_configuration.get(configuration, path))
            of_configuration.setdefault(configuration, program)
            files[program][digest].append((path, started))
        changed += [
            tuple(
                ProgramFile(used[-1][0], digest, len(used), written(used[0][1])) for digest, used in by_digest.items()
            )
            for by_digest in files.values()
            if len(by_digest) > 1
        ]
    return tuple(changed)


def _file(program: Any, part: str) -> tuple[str, str | None]:
    """Return path and hash of a recorded file; imported facts may lack it."""
    facts = program if part == "program" or not isinstance(program, dict) else program.get(part)
    return (str(facts.get("path")), facts.get("sha256")) if isinstance(facts, dict) else ("", None)


def written(moment: datetime | None) -> str:
    """Return a moment in words: "5 Nov 2026, 14:03"."""
    if moment is None:
        return ""
    local = timezone.localtime(moment)
    return f"{local.day} {local:%b %Y, %H:%M}"


def last_program(trials: QuerySet[Trial]) -> Ended:
    """Return the files and the start of the last finished one of ``trials``."""
    finished = trials.filter(state=State.FINISHED, environment__isnull=False).order_by("-pk")
    return finished.values_list("environment__facts__program", "running_at").first() or (None, None)


def replaced_file(experiment: Experiment, last: Ended) -> tuple[str, datetime | None] | None:
    """Return the file that changed since the ``last`` trial, and that trial's start.

    Only on clusters of this machine, for files that this process can read.
    """
    if experiment.cluster is None or not experiment.cluster.traits.on_this_machine or experiment.is_imported:
        return None
    return _replaced(last)


def replaced_of_command(words: Collection[str], trials: QuerySet[Trial]) -> tuple[str, datetime | None] | None:
    """Return the file in ``words`` that changed since its last trial, as above."""
    files = {os.path.realpath(word) for word in words if word.startswith("/")}  # as trials record them
    recorded = Environment.objects.filter(facts__program__path__in=files)
    return _replaced(last_program(trials.filter(environment__in=recorded)), files)


def _replaced(last: Ended, among: Collection[str] | None = None) -> tuple[str, datetime | None] | None:
    program, started = last
    files = (_file(program, part) for part in _PARTS)
    changed = (path for path, digest in files if digest and _present(path) not in (None, digest))
    path = next((path for path in changed if among is None or path in among), None)
    return None if path is None else (path, started)


def _present(path: str) -> str | None:
    """Return the hash of a regular file; None if it is absent, unreadable or long."""
    try:
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_HASHED_BYTES:
            return None
        return _hash(path, status.st_mtime_ns, status.st_size)
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=64)
def _hash(path: str, _changed_ns: int, _size: int) -> str:
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
