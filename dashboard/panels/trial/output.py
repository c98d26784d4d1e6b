"""Texts of a trial: what its program printed and wrote, and the lines of its figures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from experiments import workloads
from experiments.common.plain_files import decoded
from experiments.errors import NotPlain, OutputError, StoreUnavailable, Tampered
from experiments.metrics import find
from experiments.models import Artifact, State, Trial
from experiments.workloads.kept_files import selected
from experiments.workloads.outputs import Figure

SHOWN_BYTES: Final = 200_000
"""Of longer texts the end is shown, which has the cause of a failure; the lines of figures are not marked."""
_PRINTED: Final = (Artifact.Kind.STDOUT, Artifact.Kind.STDERR, Artifact.Kind.INPUT)


@dataclass(frozen=True, slots=True)
class Mark:
    """The line of a figure, and its place on the page."""

    number: int
    file: str
    """Empty for standard output."""
    anchor: str


@dataclass(slots=True)
class ShownText:
    """A file of a trial as its page shows it."""

    artifact: Artifact
    text: str
    is_cut: bool
    marks: dict[str, Mark] = field(default_factory=dict)
    """By metric."""

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    def pieces(self) -> Iterator[tuple[str, str, str]]:
        """Yield text, anchor and labels of each marked line, and the text between two of them."""
        labels: dict[int, list[str]] = {}
        for metric, mark in self.marks.items():
            labels.setdefault(mark.number, []).append(find(metric).label)
        anchors = {mark.number: mark.anchor for mark in self.marks.values()}
        lines = enumerate(re.split(r"(?<=\n)", self.text), 1)
        for anchor, group in groupby(lines, lambda line: anchors.get(line[0], "")):
            numbered = list(group)
            yield "".join(line for _, line in numbered), anchor, ", ".join(labels.get(numbered[0][0], ()))


def texts_of(trial: Trial, artifacts: Sequence[Artifact]) -> list[ShownText]:
    """Return the printed texts, the input files, and the written files that hold figures."""
    workload = workloads.find(trial.experiment.workload, trial.configuration.parameters)
    stored = {artifact.name: artifact for artifact in artifacts if artifact.removed_at is None}
    written = selected(workload.outputs, stored) if workload else []
    texts = {name: _read(a) for name, a in stored.items() if a.kind in _PRINTED or name in written}
    shown = {name: text for name, text in texts.items() if text is not None}
    if workload and trial.state == State.FINISHED and not any(text.is_cut for text in shown.values()):
        _mark(shown, _figures(workload, trial, shown, written))
    return [text for name, text in shown.items() if text.artifact.kind in _PRINTED or text.marks]


def _read(artifact: Artifact) -> ShownText | None:
    is_cut = artifact.size_bytes > SHOWN_BYTES
    try:
        with artifact.intact() as file, file.open("rb") as stream:
            stream.seek(max(0, artifact.size_bytes - SHOWN_BYTES))
            return ShownText(artifact, decoded(stream.read()), is_cut)
    except FileNotFoundError:
        return None
    except (Tampered, NotPlain, StoreUnavailable) as error:
        return ShownText(artifact, f"({error})", False)


def _figures(
    workload: workloads.WorkloadDefinition, trial: Trial, shown: Mapping[str, ShownText], written: Sequence[str]
) -> Mapping[str, float]:
    """Return the figures of the shown texts; {} if today's parser refuses them."""
    output = next((text.text for text in shown.values() if text.artifact.kind == Artifact.Kind.STDOUT), "")
    files = {name: shown[name].text for name in written if name in shown}
    try:
        requested = {**trial.configuration.parameters, "ranks": trial.configuration.ranks}
        return workload.read(output, files, requested).figures
    except (OutputError, ValueError, LookupError, TypeError):  # a parser of a user's module may raise others
        return {}


def _mark(shown: Mapping[str, ShownText], figures: Mapping[str, float]) -> None:
    stdout = next((name for name, text in shown.items() if text.artifact.kind == Artifact.Kind.STDOUT), "")
    places = {name: f"text-{number}" for number, name in enumerate(shown, 1)}
    for metric, value in figures.items():
        for line in value.lines[:1] if isinstance(value, Figure) else ():
            name = line.file or stdout
            if name in shown:
                shown[name].marks[metric] = Mark(line.number, line.file, f"{places[name]}-line-{line.number}")
