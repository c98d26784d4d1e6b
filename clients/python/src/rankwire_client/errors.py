"""Errors of the client.

RankwireError
├── Refused     the server refused the request
├── NotReached  the server did not answer, after several attempts
├── NotMade     a file was not made in the background, or arrived damaged
└── TimeLimit   the experiment or file was not complete in time
"""

from __future__ import annotations

from dataclasses import dataclass

import httpx


class RankwireError(Exception):
    """Base class of the errors of this client."""


@dataclass(frozen=True)
class Problem:
    """A problem of a request, with the dotted ``path`` of a field or an empty one."""

    path: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        field = f"{self.path}: " if self.path else ""
        return f"{field}{self.message}" + (f" (line {self.line})" if self.line else "")


class Refused(RankwireError):
    """A refused request with ``status``, ``title`` and ``problems`` of the answer."""

    def __init__(self, status: int, title: str, problems: list[Problem]) -> None:
        self.status, self.title, self.problems = status, title, problems
        super().__init__(self.detail or f"{status} {title}")

    @property
    def detail(self) -> str:
        return "; ".join(str(problem) for problem in self.problems)

    @classmethod
    def by(cls, answer: httpx.Response) -> Refused:
        """Create the error of an answer, without problems if it is not from Rankwire."""
        try:
            errors = answer.json()["errors"]
            problems = [Problem(str(error["path"]), str(error["message"]), error.get("line")) for error in errors]
        except (ValueError, KeyError, TypeError, AttributeError):
            problems = []
        return cls(answer.status_code, answer.reason_phrase, problems)


class NotReached(RankwireError):
    """The server did not answer or was unavailable."""


class NotMade(RankwireError):
    """A background task of the server failed, or a file arrived damaged."""


class TimeLimit(RankwireError):
    """The experiment or the file was not complete within the time limit."""
