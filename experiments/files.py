"""Files of trials: directories, stored analyses and unread results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import zstandard
from django.conf import settings
from django.db.models import F
from pydantic import ValidationError

from analysis.mpi.calls import Calls, NotATrace, from_bytes
from experiments import store
from experiments.common import plain_files
from experiments.common.counter_reports import checked_reports
from experiments.errors import NotPlain, Tampered
from experiments.models import Artifact, Trial, TrialResult

ANALYSIS_NAME: Final = "analysis.json.zst"
MPI_PROFILE_NAME: Final = "mpi-profile.json.zst"
"""The tables of `analysis.mpi.profile.tables`."""
COUNTERS_NAME: Final = "counters.json.zst"
"""Reports of all counter sources, by host and source (`workers.hosts.counters`)."""
MPI_CALLS_NAME: Final = "mpi-calls.zst"
"""All MPI calls (`analysis.mpi.calls`) of a trial with ``profile: trace``."""
MEASURED_NAME: Final = "measured.json"
"""Measurements of a trial whose output its parser refused, until a better parser reads it."""
_MOST_BYTES: Final = 256 << 20
"""Of an unpacked table: imported files are not trusted."""
_MEASURED: Final = ("measurements", "not_available", "trust", "trust_reasons", "environment", "conditions")


_present: ContextVar[ImportedTables | None] = ContextVar("imported_tables", default=None)


@dataclass(slots=True)
class ImportedTables:
    """Use of stored tables of imported trials, which are not trusted, in a request."""

    are_left_out: bool = False
    were_read: bool = False

    @classmethod
    @contextmanager
    def noted(cls, *, are_left_out: bool = False) -> Iterator[None]:
        """Record inside whether they are read; ``are_left_out``: none is."""
        token = _present.set(cls(are_left_out))
        try:
            yield
        finally:
            _present.reset(token)

    @staticmethod
    def present() -> ImportedTables | None:
        """Return the use in this request; None outside of one."""
        return _present.get()


def is_left_out(origin: dict[str, Any]) -> bool:
    """Return whether tables of trials from ``origin`` are left out; record the use."""
    tables = _present.get()
    if tables is None or not origin:
        return False
    tables.were_read = True
    return tables.are_left_out


def trial_directory(trial: Trial) -> Path:
    """Return the directory of a trial's files. It need not exist."""
    return Path(settings.VAR) / "trials" / str(trial.pk)


def write_analysis(file: Path, analysis: dict[str, Any]) -> None:
    """Write the analysis of a capture, or the profile of a trial, as compressed JSON."""
    plain_files.write(file, zstandard.compress(json.dumps(analysis, separators=(",", ":")).encode()))


def read_analysis(trial: Trial) -> dict[str, Any] | None:
    """Return the stored analysis of a trial's capture; None if missing or changed."""
    return dict(read_analyses([trial.pk])).get(trial.pk)


def read_analyses(trials: Sequence[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield trials with their stored analyses, without missing or changed ones."""
    stored = Artifact.objects.filter(trial__in=trials, kind=Artifact.Kind.ANALYSIS, removed_at=None)
    for artifact in stored.annotate(origin=F("trial__experiment__origin")):
        if is_left_out(artifact.origin):
            continue
        if (content := _believed(artifact)) is not None and (table := _unpacked(content)) is not None:
            yield artifact.trial_id, table


def read_mpi_profile(trial: Trial) -> dict[str, Any] | None:
    """Return the tables of a trial's time inside MPI; None if missing or changed."""
    content = _named(trial, MPI_PROFILE_NAME)
    return None if content is None else _unpacked(content)


def read_counters(trial: Trial) -> dict[str, Any] | None:
    """Return the reports of a trial's counters; None if missing, changed or malformed."""
    content = _named(trial, COUNTERS_NAME)
    try:
        return None if content is None else checked_reports(_unpacked(content))
    except ValidationError:
        return None


def read_mpi_calls(trial: Trial) -> Calls | None:
    """Return the calls of a trial's ranks; None if missing or changed."""
    content = _named(trial, MPI_CALLS_NAME)
    try:
        return None if content is None else from_bytes(content)
    except NotATrace:
        return None


def write_measured(file: Path, result: TrialResult) -> None:
    """Write the part of a result that does not come from the program's output."""
    plain_files.write(file, json.dumps({name: getattr(result, name) for name in _MEASURED}).encode())


def read_measured(trial: Trial) -> TrialResult | None:
    """Return the result that ``write_measured`` stored; None if missing or changed."""
    content = _named(trial, MEASURED_NAME)
    return None if content is None else TrialResult(**json.loads(content))


def deliver(trial: Trial, artifacts: Sequence[Artifact]) -> None:
    """Copy the files of a trial to the store and set the paths of its unsaved rows.

    Nothing to do if the store is this directory. Call again with all rows after a failure. Raise StoreUnavailable, NotPlain, OSError.
    """
    target = store.current()
    if target.is_here:
        return
    prefix, directory = target.place_of(trial.pk), trial_directory(trial)
    delivered = []
    try:
        for artifact in artifacts:
            path = f"{prefix}/{artifact.file.relative_to(directory).as_posix()}"
            delivered.append(path)
            target.put(artifact.file, path)
    except BaseException:
        target.give_back(delivered)
        raise
    for artifact, path in zip(artifacts, delivered, strict=True):
        artifact.path = path


def take_back(artifacts: Sequence[Artifact]) -> None:
    """Remove delivered files whose rows were not stored, unless the commit succeeded."""
    target, paths = store.current(), [artifact.path for artifact in artifacts]
    if not target.is_here:
        named = set(Artifact.objects.filter(path__in=paths).values_list("path", flat=True))
        target.give_back([path for path in paths if path not in named])


def forget_delivered(trial: Trial) -> None:
    """Remove the local directory of a trial if the store is remote."""
    if not store.current().is_here:
        plain_files.discard(trial_directory(trial))


def _named(trial: Trial, name: str) -> bytes | None:
    artifact = trial.artifacts.filter(name=name, removed_at=None).first()
    if artifact is None or is_left_out(trial.experiment.origin):
        return None
    return _believed(artifact)


def _believed(artifact: Artifact) -> bytes | None:
    try:
        return artifact.content()
    except (Tampered, NotPlain, OSError):
        return None


def _unpacked(content: bytes) -> dict[str, Any] | None:
    """Return a stored table; None if it is damaged, or longer than any trial's."""
    try:
        with zstandard.ZstdDecompressor().stream_reader(content) as stream:
            text = stream.read(_MOST_BYTES + 1)
        table = json.loads(text) if len(text) <= _MOST_BYTES else None
    except (zstandard.ZstdError, ValueError, RecursionError):
        return None
    return table if isinstance(table, dict) else None
