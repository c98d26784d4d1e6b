"""Expected errors of the repository, each with a sentence for the reader."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class RepositoryError(Exception):
    """Base of all expected errors of this package; its text is for the reader."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """One error of a specification: dotted ``path`` of the field, a sentence, and the YAML line where there is one."""

    path: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        where = ", ".join(part for part in (self.line and f"line {self.line}", self.path) if part)
        return f"{where}: {self.message}" if where else self.message


class InvalidSpec(RepositoryError):
    """The specification cannot be run as written."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(map(str, self.errors)))

    def by_path(self) -> dict[str, list[str]]:
        """Return the messages grouped by field path, for forms and REST."""
        grouped: dict[str, list[str]] = {}
        for error in self.errors:
            grouped.setdefault(error.path, []).append(error.message)
        return grouped


class NotBroughtBack(RepositoryError):
    """A deleted experiment was forgotten, or what it refers to is gone."""


class ClusterInUse(RepositoryError):
    """A cluster was to be removed that trials name."""


class ProjectInUse(RepositoryError):
    """A project was to be removed that holds experiments or reports, or that every installation has."""


class LastMaintainer(RepositoryError):
    """The only maintainer of a project was to become less, or to leave."""


class LastSuperuser(RepositoryError):
    """Nobody would be left who can administer the installation."""


class AccountAsItIs(RepositoryError):
    """What was asked for cannot be done to the account as it is: it is closed already, or locked out of nothing."""


class InvalidSettings(RepositoryError):
    """The cluster cannot be used as it is set up."""


class ReadOnly(RepositoryError):
    """Published results are cited, never changed; imported ones were measured elsewhere."""


class CannotExport(RepositoryError):
    """There is nothing to put into a bundle, too much of it, or not in the way that was asked for."""


class CannotCompare(RepositoryError):
    """Too few, too many, unknown, or nothing in common."""


class CannotExplore(RepositoryError):
    """A name, a condition or a moment that cannot be meant; ``field`` is where it stands in the question."""

    def __init__(self, sentence: str, *, field: str = "") -> None:
        self.field = field
        super().__init__(sentence)


class TooMuchAtOnce(RepositoryError):
    """As many tasks of a person wait or run as may."""


class KeyOfAnother(RepositoryError):
    """A key that says "this request once" came with another request before."""


class BadBundle(RepositoryError):
    """Results that were brought here cannot be believed; the text names the file and says why. Nothing of them was stored."""


class ReportChanged(RepositoryError):
    """A version of a report was written from one that is no longer the newest."""


class StaleTrial(RepositoryError):
    """Another process moved the trial on; whoever gets this must stop working on it."""


class OutputError(RepositoryError):
    """The workload ended well but its output lacks what the parser needs."""


class Tampered(RepositoryError):
    """A stored file has another content than when its trial ended: it is neither served nor analysed."""


class NotPlain(RepositoryError):
    """A link, a pipe, a directory or a device in the place of a file, or a file that is too long."""


class StoreAway(RepositoryError, OSError):
    """Nothing is known of a file, since its store does not answer: it may be all right, and asking again may help."""
