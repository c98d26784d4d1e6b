"""Parts of the texts that a trial printed and wrote, and lines of its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np
from django.conf import settings

from analysis import numbers
from experiments import workloads
from experiments.common.plain_files import decoded
from experiments.errors import NotPlain, OutputError, StoreUnavailable, Tampered
from experiments.metrics import find
from experiments.models import Artifact, State, Trial
from experiments.workloads.kept_files import MOST_READ_BYTES, selected
from experiments.workloads.outputs import Figure, Line

SHOWN_LINES: Final = 2_000
"""Of longer texts the end is shown, which has the cause of a failure, or the lines around the requested one."""
SHOWN_CHARACTERS: Final = 2_000
MOST_MATCHES: Final = 200
MOST_COUNTED: Final = 10_000
"""Of more lines that match a search this number is shown as the least."""
_BLOCK_BYTES: Final = 1 << 20
"""Of a text are searched at once: casefolding takes 12 bytes a character."""
_MARKED_BYTES: Final = 4_000_000
"""The figures of longer outputs are not looked up unless one is requested: parsing takes a second."""
_PRINTED: Final = (Artifact.Kind.STDOUT, Artifact.Kind.STDERR, Artifact.Kind.INPUT)


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A line as the page shows it."""

    number: int
    text: str
    omitted: int
    """Characters beyond SHOWN_CHARACTERS."""
    figures: str
    """Labels of the figures that were read from it."""
    is_match: bool


@dataclass(frozen=True, slots=True)
class ShownText:
    """A part of a file, and the lines of the file that match a search."""

    artifact: Artifact
    lines: Sequence[ShownLine] = ()
    total: int = 0
    line: int | None = None
    """The requested line, or the first match."""
    matches: Sequence[ShownLine] = ()
    match_count: int = 0
    problem: str = ""

    @property
    def has_more_matches(self) -> bool:
        return self.match_count >= MOST_COUNTED

    @property
    def first(self) -> int:
        return self.lines[0].number if self.lines else 0

    @property
    def last(self) -> int:
        return self.lines[-1].number if self.lines else 0


def text_files(trial: Trial, artifacts: Sequence[Artifact]) -> list[Artifact]:
    """Return printed texts, input files and parsed files, the most useful first."""
    workload = workloads.find(trial.experiment.workload, trial.configuration.parameters)
    stored = [artifact for artifact in artifacts if artifact.removed_at is None]
    written = selected(workload.outputs, [artifact.name for artifact in stored]) if workload else []
    texts = [artifact for artifact in stored if artifact.kind in _PRINTED or artifact.name in written]
    is_failed = trial.state == State.FAILED

    def rank(artifact: Artifact) -> tuple[bool, bool, int]:
        order = _PRINTED.index(artifact.kind) if artifact.kind in _PRINTED else len(_PRINTED)
        cause_first = is_failed and artifact.kind == Artifact.Kind.STDERR
        return not artifact.size_bytes, not cause_first, order

    return sorted(texts, key=rank)


def line_of(trial: Trial, files: Sequence[Artifact], metric: str) -> tuple[Artifact, int] | None:
    """Return the file and the line from which a figure was read; None if unknown."""
    line = _figures(trial, files).get(metric)
    artifact = next((artifact for artifact in files if line and artifact.name == line.file), None)
    return (artifact, line.number) if artifact and line else None


def shown_text(
    trial: Trial, files: Sequence[Artifact], artifact: Artifact, *, line: int | None = None, words: str = ""
) -> ShownText:
    """Return the part of a file around ``line`` or the first match, else its end."""
    try:
        text = _content(artifact)
    except FileNotFoundError:
        return ShownText(artifact, problem=f"{artifact.name} is missing on disk.")
    except (Tampered, NotPlain, StoreUnavailable) as error:
        return ShownText(artifact, problem=str(error))
    lines, sought = _Lines(text), words.casefold()
    total = len(lines)
    matches = list(islice(lines.containing(sought), MOST_COUNTED)) if sought else []
    line = min(max(1, line), total) if line and total else matches[0] if matches else None
    last = min(total, max(SHOWN_LINES, line + SHOWN_LINES // 2)) if line else total
    labels = _labels(trial, files, artifact)

    def part(number: int) -> ShownLine:
        full = lines[number].removesuffix("\r")
        omitted = max(0, len(full) - SHOWN_CHARACTERS)
        return ShownLine(
            number,
            full[:SHOWN_CHARACTERS],
            omitted,
            ", ".join(labels.get(number, ())),
            bool(sought) and sought in full.casefold(),
        )

    return ShownText(
        artifact,
        lines=[part(number) for number in range(max(1, last - SHOWN_LINES + 1), last + 1)],
        total=total,
        line=line,
        matches=[part(number) for number in matches[:MOST_MATCHES]],
        match_count=len(matches),
    )


class _Lines:
    """Lines of a text from 1, by the places of their ends.

    A list of texts would take twenty times the memory of the file.
    """

    def __init__(self, text: str) -> None:
        self._content = (text if text.endswith("\n") or not text else f"{text}\n").encode()
        self._ends = np.flatnonzero(np.frombuffer(self._content, np.uint8) == ord("\n"))

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, number: int) -> str:
        return self._content[self._end(number - 1) + 1 : self._end(number)].decode()

    def containing(self, words: str) -> Iterator[int]:
        """Yield the numbers of lines with ``words``, which are casefolded."""
        before = 0
        while before < len(self):
            start = self._end(before) + 1
            last = max(before + 1, int(np.searchsorted(self._ends, start + _BLOCK_BYTES)))
            block = self._content[start : self._end(last) + 1].decode().casefold()
            number, start = before + 1, 0
            while (match := block.find(words, start)) >= 0:
                number += block.count("\n", start, match)
                yield number
                start = block.index("\n", match) + 1
                number += 1
            before = last

    def _end(self, number: int) -> int:
        return int(self._ends[number - 1]) if number else -1


def _content(artifact: Artifact) -> str:
    longest = 2 * settings.OUTPUT_LIMIT_BYTES  # as trials store at most
    if artifact.size_bytes > longest:
        raise NotPlain(f"{artifact.name} has more than {numbers.amount(longest, 'B')}: download it.")
    return decoded(artifact.content())


def _labels(trial: Trial, files: Sequence[Artifact], artifact: Artifact) -> Mapping[int, list[str]]:
    """Return the labels of the figures of a file by line."""
    labels: dict[int, list[str]] = {}
    if sum(file.size_bytes for file in files) <= _MARKED_BYTES:
        for metric, line in _figures(trial, files).items():
            if line.file == artifact.name:
                labels.setdefault(line.number, []).append(find(metric).label)
    return labels


def _figures(trial: Trial, files: Sequence[Artifact]) -> dict[str, Line]:
    """Return the first line of each figure, with the name of its file.

    {} if today's parser refuses the output.
    """
    workload = workloads.find(trial.experiment.workload, trial.configuration.parameters)
    stdout = next((artifact for artifact in files if artifact.kind == Artifact.Kind.STDOUT), None)
    if workload is None or trial.state != State.FINISHED or sum(file.size_bytes for file in files) > MOST_READ_BYTES:
        return {}
    requested = {**trial.configuration.parameters, "ranks": trial.configuration.ranks}
    try:
        written = {artifact.name: _content(artifact) for artifact in files if artifact.kind not in _PRINTED}
        figures = workload.read(_content(stdout) if stdout else "", written, requested).figures
    except (Tampered, NotPlain, OSError, OutputError, ValueError, LookupError, TypeError):
        return {}  # a parser of a user's module may raise others than OutputError
    lines = {metric: value.lines[0] for metric, value in figures.items() if isinstance(value, Figure) and value.lines}
    name = stdout.name if stdout else ""
    return {metric: Line(line.number, line.text, line.file or name) for metric, line in lines.items()}
