"""What can go wrong.

RankwireError
├── Refused     the server answered that it does not do this
├── NotReached  there was no answer, also not after several attempts
├── NotMade     what the server was to make in the background was not made
└── TimeLimit   the experiment was not over in time
"""

from __future__ import annotations

from dataclasses import dataclass

import httpx


class RankwireError(Exception):
    """Anything that this client raises by itself."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong; ``path`` is the dotted path of the field, empty for the request as a whole."""

    path: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{where}{self.message}" + (f" (line {self.line})" if self.line else "")


class Refused(RankwireError):
    """The server refused a request: ``status`` and ``title`` of the answer, and each of its problems."""

    def __init__(self, status: int, title: str, problems: list[Problem]) -> None:
        self.status, self.title, self.problems = status, title, problems
        super().__init__(self.detail or f"{status} {title}")

    @property
    def detail(self) -> str:
        return "; ".join(str(problem) for problem in self.problems)

    @classmethod
    def by(cls, answer: httpx.Response) -> Refused:
        """Return what ``answer`` tells; one that is not in the shape of REST has no problems."""
        try:
            told = answer.json()["errors"]
            problems = [Problem(str(each["path"]), str(each["message"]), each.get("line")) for each in told]
        except (ValueError, KeyError, TypeError, AttributeError):
            problems = []
        return cls(answer.status_code, answer.reason_phrase, problems)


class NotReached(RankwireError):
    """No answer came, or only that the server is not there at the moment."""


class NotMade(RankwireError):
    """A file that the server was to make in the background was not made (the sentence is the server's), or did not arrive whole."""


class TimeLimit(RankwireError):
    """Waiting ended before the experiment did, or before a table was made."""
