"""Reading of a pasted output with the code that reads the outputs of trials."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from experiments.errors import OutputError
from experiments.workloads.command import read_figure, refuse_failed
from experiments.workloads.extractors import Extractor
from experiments.workloads.outputs import Figure, Text

MOST_CHARACTERS: Final = 100_000
TIME_LIMIT_S: Final = 2.0
"""For all figures together; a search that began before the limit ends within a second."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A figure, or the error of its reading; neither if it is optional and absent."""

    value: Figure | None = None
    error: str = ""


def read_output(
    extractors: Mapping[int, Extractor], output: str, *, file: str = "", success: str = "", failure: str = ""
) -> tuple[dict[int, Reading], str]:
    """Return the figures of an output or of a ``file``, and why the run has failed.

    Figures of other files are not among them. Raise OutputError for a text of more than ``MOST_CHARACTERS``.
    """
    if len(output) > MOST_CHARACTERS:
        raise OutputError(f"The text has {len(output)} characters, and at most {MOST_CHARACTERS} are read")
    text = Text.of(output, file, time.monotonic() + TIME_LIMIT_S)
    readings = {}
    for key, extractor in extractors.items():
        if (extractor.file is None) != (not file):
            continue
        try:
            readings[key] = Reading(read_figure(extractor, text, {file: text}))
        except OutputError as error:
            readings[key] = Reading(error=str(error))
    try:
        if not file:
            refuse_failed(text, success, failure)
    except OutputError as error:
        return readings, str(error)
    return readings, ""
