"""Figures of a pasted output, read by the patterns of the form."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from dashboard.panels.program.definition import figure_of, rows_of
from experiments.errors import InvalidSpec, OutputError
from experiments.workloads.command import met_checks
from experiments.workloads.extractors import Extractor
from experiments.workloads.output_trial import MOST_CHARACTERS, Reading, read_output

_SOURCES = ("regex", "json_pointer", "csv_column")


@dataclass(frozen=True, slots=True)
class FormFigure:
    """A row of figures; ``reading`` is None if the pasted text is not its source."""

    name: str
    unit: str
    error_place: str
    reading_place: str
    errors: Sequence[str]
    reading: Reading | None

    @property
    def value(self) -> float | None:
        return self.reading.value if self.reading else None

    @property
    def lines(self) -> list[int]:
        value = self.reading.value if self.reading else None
        return [] if value is None else sorted({line.number for line in value.lines})

    @property
    def more_lines(self) -> int:
        return len(self.lines) - 3

    @property
    def all_errors(self) -> list[str]:
        return [*self.errors, *([self.reading.error] if self.reading and self.reading.error else [])]

    @property
    def why_not(self) -> str:
        """Return why there is no value."""
        if self.all_errors:
            return "see its pattern"
        return "not in this text" if self.reading else "not read yet"


def read_form(texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the figures and the marked lines of the pasted output for the template."""
    sample, file = texts.get("sample", "").replace("\r\n", "\n"), texts.get("sample_file", "").strip()
    rows = rows_of(texts, "extract")
    extractors, errors = _extractors(rows)
    readings: Mapping[int, Reading] = {}
    refused = ""
    met: tuple[str, ...] = ()
    if sample.strip():
        patterns = {name: texts.get(name, "").strip() for name in ("success", "failure")}
        try:
            readings, refused = read_output(extractors, sample, file=file, **patterns)
            met = () if refused or file else met_checks(**patterns)
        except OutputError as error:
            refused, sample = str(error), ""
    figures = [
        FormFigure(
            row.get("label") or row.get("name") or f"Figure {number + 1}",
            row.get("unit") or "1",
            f"err-extract-{number}-regex",
            f"read-extract-{number}",
            errors.get(number, ()),
            readings.get(number),
        )
        for number, row in rows.items()
    ]
    return {
        "most_characters": MOST_CHARACTERS,
        "sample": sample,
        "sample_file": file,
        "refused": refused,
        "met_checks": met,
        "figures": figures,
        "count": sum(figure.value is not None for figure in figures),
        "lines": _marked(sample, figures),
    }


def _extractors(rows: Mapping[int, Mapping[str, str]]) -> tuple[dict[int, Extractor], dict[int, list[str]]]:
    """Return the figures of finished rows by number, and the errors of patterns."""
    extractors, errors = {}, {}
    for number, row in rows.items():
        if not any(map(row.get, _SOURCES)):
            continue
        try:
            extractors[number] = Extractor.model_validate(figure_of({**row, "name": row.get("name") or "figure"}))
        except InvalidSpec as error:
            errors[number] = [e.message for e in error.errors if e.path in _SOURCES]
    return extractors, errors


def _marked(sample: str, figures: Sequence[FormFigure]) -> list[tuple[int, str, str]]:
    """Return number, text and figures of marked lines and of the text between them."""
    labels: dict[int, list[str]] = {}
    for figure in figures:
        for number in figure.lines:
            labels.setdefault(number, []).append(figure.name)
    lines = enumerate(re.split(r"(?<=\n)", sample.rstrip("\n")), 1) if sample else ()
    pieces = []
    for mark, group in groupby(lines, lambda line: line[0] if line[0] in labels else 0):
        pieces.append((mark, "".join(text for _, text in group), ", ".join(labels.get(mark, ()))))
    return pieces
