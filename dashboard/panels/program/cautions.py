"""Likely mistakes of a definition that is valid: the user decides."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from typing import Any, Final

from experiments.metrics import distinct_label
from experiments.workloads.extractors import Extractor

_OF_A_SHELL: Final = re.compile(r"\|\|?|&&?|;|\d?>{1,2}&?\d?|\d?<{1,2}|\$\(.*|`.*|\d?>{1,2}[\w./].*")
"""Whole arguments that only a shell understands."""


def cautions_in(definition: Mapping[str, Any]) -> list[str]:
    """Return the cautions of a definition in sentences."""
    return list(_cautions_in(definition))


def _cautions_in(definition: Mapping[str, Any]) -> Iterator[str]:
    program, *arguments = definition["program"]
    if odd := next(filter(_OF_A_SHELL.fullmatch, arguments), None):
        yield f"No shell runs the command: the program gets {odd} as an argument. Write a script for pipes and redirections."
    if "/" not in program:
        if shutil.which(program) is None:
            yield f"{program} is not in the PATH of this server. Give the full path that it has on the hosts."
    elif not program.startswith("/") and program.removeprefix("./") not in _own_files(definition):
        yield f"{program} starts in the empty directory of each trial. Give the full path that it has on the hosts."
    if not definition.get("extract"):
        yield "Without a figure, trials measure the elapsed time and the network, but no number of the output."
    for figure in definition.get("extract", ()):
        title = Extractor.model_validate(figure).figure("").label
        if (label := distinct_label(title)) != title:
            yield f"Rankwire also measures “{title}”: pages show this figure as “{label}”. Enter another title to avoid the suffix."


def _own_files(definition: Mapping[str, Any]) -> set[str]:
    return {*definition.get("inputs", ()), *definition.get("decks", ())}
