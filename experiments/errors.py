"""Expected errors of the repository, with messages for users."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Final

MOST_ERRORS: Final = 1000
"""Errors of one refusal: pages and answers list all of them."""
MOST_MESSAGE: Final = 2000
"""Characters of a message about an output."""


def alternatives(name: str, choices: Collection[str]) -> str:
    """Return "; did you mean hosts?" for a similar choice, else "; known:" and all."""
    if matches := get_close_matches(name[:64], choices, 1):
        return f"; did you mean {matches[0]}?"
    return f"; known: {', '.join(choices)}" if choices else ""


class RepositoryError(Exception):
    """Base of all expected errors of this package; its text is for users."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """One error of a specification: dotted ``path``, sentence and YAML line, if known."""

    path: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        where = ", ".join(part for part in (self.line and f"line {self.line}", self.path) if part)
        return f"{where}: {self.message}" if where else self.message


class InvalidSpec(RepositoryError):
    """The specification cannot be run as written."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = tuple(islice(errors, MOST_ERRORS))
        super().__init__("; ".join(map(str, self.errors)))

    @property
    def reason(self) -> str:
        """Return the messages without their fields, for pages without these fields."""
        return "; ".join(error.message for error in self.errors)

    def by_path(self) -> dict[str, list[str]]:
        """Return the messages by field path, for forms and REST."""
        grouped: dict[str, list[str]] = {}
        for error in self.errors:
            grouped.setdefault(error.path, []).append(error.message)
        return grouped


class QuotaExceeded(InvalidSpec):
    """The project's quotas refuse further trials."""


class CannotRestore(RepositoryError):
    """A deleted experiment cannot be restored."""


class ClusterInUse(RepositoryError):
    """The cluster has trials and cannot be removed."""


class ProgramInUse(RepositoryError):
    """Experiments use the program, so it can be retired only."""


class ProjectInUse(RepositoryError):
    """The project is not empty, or is the default, and cannot be removed."""


class LastMaintainer(RepositoryError):
    """The project would have no maintainer."""


class LastSuperuser(RepositoryError):
    """The installation would have no superuser."""


class AccountUnchanged(RepositoryError):
    """The account already has the requested state."""


class InvalidSettings(RepositoryError):
    """The settings of the cluster are invalid."""


class ReadOnly(RepositoryError):
    """Published and imported results cannot be changed."""


class CannotExport(RepositoryError):
    """The selection is empty, too large, or cannot be exported as requested."""


class CannotCompare(RepositoryError):
    """The selection has too few, too many or unknown members, or no common point."""


class CannotExplore(RepositoryError):
    """An explorer query is invalid at its ``field``."""

    def __init__(self, sentence: str, *, field: str = "") -> None:
        self.field = field
        super().__init__(sentence)


class TooManyTasks(RepositoryError):
    """The user has the maximum number of unfinished background tasks."""


class IdempotencyConflict(RepositoryError):
    """The idempotency key belongs to another request."""


class BadBundle(RepositoryError):
    """The imported results are damaged or invalid. Nothing was stored."""


class ReportChanged(RepositoryError):
    """Another user saved a newer version of the report."""


class StaleTrial(RepositoryError):
    """Another process changed the trial: the caller must stop working on it."""


class OutputError(RepositoryError):
    """The workload ended well, but its output lacks required values.

    The message is shortened: it may quote an output of any length.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message[:MOST_MESSAGE])


class Tampered(RepositoryError):
    """The stored file changed after its trial ended: it is not used."""


class NotPlain(RepositoryError):
    """The path is a link, pipe, directory or device, or the file is too long."""


class StoreUnavailable(RepositoryError, OSError):
    """The file store does not answer or has no room; a retry may help."""
