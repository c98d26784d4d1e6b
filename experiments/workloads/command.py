"""Any program as a workload: its specification holds the argv template, typed placeholders and where the results stand.

It says itself what is executed, so only the maintainers of a project may submit it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Final, Self, TypeVar

from pydantic import ValidationError

from analysis.numbers import plural
from experiments.errors import OutputError
from experiments.workloads.base import FigureOfMerit, Mismatch, Parameters, Parsed, Workload
from experiments.workloads.command_parameters import CommandParameters
from experiments.workloads.extractors import MAX_LINE, Extractor
from experiments.workloads.kept_files import selected
from experiments.workloads.patterns import first_line
from experiments.workloads.template import (
    RANKS,
    Placeholder,
    fill,
    fill_text,
    names_in,
    names_in_text,
    with_placeholders,
)

__all__ = ["Command", "CommandParameters", "Extractor", "Placeholder"]

_DISPATCH: Final = "rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:-0}}}"

_Kind = TypeVar("_Kind", bound="Command")


class Command(Workload):
    """A program that the specification defines. Unbound it has no placeholders; ``bind`` gives it those of a specification."""

    slug = "command"
    title = "Any command"
    summary = "A program of your own with placeholders and figures of merit; for maintainers"
    programs: ClassVar[Mapping[str, str]] = {}
    restricted = True
    reading = frozenset({"extract", "success", "failure", "keep"})
    brought = ("program",)
    constants = tuple(name for name in CommandParameters.model_fields if name != "threads")
    parameters_type: type[Parameters] = CommandParameters
    figures: tuple[FigureOfMerit, ...] = ()

    def __init__(self, definition: CommandParameters | None = None) -> None:
        self._extractors: tuple[Extractor, ...] = ()
        self._success = self._failure = ""
        self._own_threads = False
        self._left_to_decks: frozenset[str] = frozenset()
        if definition is None:
            return
        placeholders = {name: Placeholder.model_validate(each) for name, each in definition.placeholders.items()}
        self._own_threads = "threads" in placeholders
        self.parameters_type = with_placeholders(CommandParameters, placeholders)
        unused = frozenset(placeholders).difference(_used(definition))
        # What a deck on a cluster uses is known when it is read: see `filled`.
        self.unused, self._left_to_decks = (frozenset(), unused) if definition.decks else (unused, frozenset())
        self._read_as(definition)

    def _read_as(self, definition: CommandParameters) -> None:
        """Take from ``definition`` what it says of the output."""
        self._extractors = tuple(Extractor.model_validate(each) for each in definition.extract)
        self._success, self._failure = definition.success, definition.failure
        self.figures = tuple(extractor.figure(self.slug) for extractor in self._extractors)
        self.decides = next((figure.id for figure in self.figures if figure.direction != "neutral"), "elapsed_s")
        self.outputs = tuple(dict.fromkeys(e.file for e in self._extractors if e.file is not None))
        self.keeps = tuple(definition.keep)

    def bind(self, parameters: Mapping[str, Any]) -> Self:
        """Return the command that these constants define; without a valid definition this very workload."""
        definition = {name: value for name, value in parameters.items() if name in self.constants}
        if "program" not in definition:
            return self
        return _bound(type(self), json.dumps(definition, sort_keys=True, default=str)) or self

    @property
    def later_defaults(self) -> Mapping[str, Any]:
        words = {"decks": {}, "environment": {}, "modules": [], "container": "", "parts": []}
        return words if self._own_threads else {**words, "threads": 1}

    def _definition(self, parameters: Any) -> Any:
        """Return what is run: a CommandParameters, which these parameters themselves are."""
        return parameters

    def command(self, parameters: Any, *, ranks: int) -> tuple[str, ...]:
        definition, values = self._definition(parameters), self._values(parameters, ranks)
        argv = _contained(fill(definition.program, values), definition.container)
        parts = {
            part["from_rank"]: _contained(fill(part["program"], values), definition.container)
            for part in definition.parts
        }
        given = self.environment(parameters, ranks=ranks)
        return _with_modules(_dispatched(argv, parts), definition.modules, given)

    def files(self, parameters: Any, *, ranks: int) -> Mapping[str, str]:
        values = self._values(parameters, ranks)
        return {name: fill_text(text, values) for name, text in self._definition(parameters).inputs.items()}

    def decks(self, parameters: Any, *, ranks: int) -> Mapping[str, str]:
        paths, values = self._definition(parameters).decks, self._values(parameters, ranks)
        return dict(zip(paths, fill(list(paths.values()), values), strict=True))

    def filled(self, parameters: Any, texts: Mapping[str, str], *, ranks: int) -> Mapping[str, str]:
        used = set().union(*map(names_in_text, texts.values()))
        if unused := sorted(self._left_to_decks - used):
            raise Mismatch(
                unused[0], f"{unused[0]} changes nothing: neither command nor input files have {{{unused[0]}}}"
            )
        values = self._values(parameters, ranks)
        return {name: fill_text(text, values) for name, text in texts.items()}

    def environment(self, parameters: Any, *, ranks: int) -> Mapping[str, str]:
        values = self._values(parameters, ranks)
        return {name: fill_text(text, values) for name, text in self._definition(parameters).environment.items()}

    def _values(self, parameters: Any, ranks: int) -> dict[str, Any]:
        names = self._definition(parameters).placeholders
        return {**{name: getattr(parameters, name) for name in names}, RANKS: ranks}

    def threads(self, parameters: Any) -> int:
        # A placeholder of this name takes the place of the parameter: what the program is told is what counts.
        return max(parameters.threads, 1) if isinstance(parameters.threads, int) else 1

    def check(self, parameters: Any, *, ranks: int) -> None:
        definition = self._definition(parameters)
        known = {*definition.placeholders, RANKS}
        for field, programs in (
            ("program", [definition.program]),
            ("parts", [part["program"] for part in definition.parts]),
            ("decks", [list(definition.decks.values())]),
        ):
            unknown = [name for argv in programs for item in argv for name in names_in(item) if name not in known]
            if unknown:
                raise Mismatch(field, f"{{{unknown[0]}}} is not defined under placeholders")
        last = max((part["from_rank"] for part in definition.parts), default=0)
        if last >= ranks:
            raise Mismatch("parts", f"rank {last} has a program of its own, and there are only {plural(ranks, 'rank')}")
        self.command(parameters, ranks=ranks)

    def parse(self, output: str, files: Mapping[str, str]) -> Parsed:
        self._require_good_words(output)
        figures: dict[str, float] = {}
        for extractor in self._extractors:
            wanted = () if extractor.file is None else selected([extractor.file], files)
            value = (
                extractor.read(output) if extractor.file is None else extractor.read(*(files[name] for name in wanted))
            )
            if value is not None:
                figures[f"{self.slug}.{extractor.name}"] = value
            elif extractor.required:
                where = extractor.file or "the output"
                raise OutputError(f"{extractor.name} is not in {where}")
        return Parsed(figures)

    def _require_good_words(self, output: str) -> None:
        """Raise OutputError for a program that says that it failed and returns 0 all the same."""
        failed = _first_line(self._failure, output) if self._failure else None
        if failed is not None:
            raise OutputError(f"the program said that it failed: {failed.strip().rstrip('.')}")
        if self._success and _first_line(self._success, output) is None:
            raise OutputError(f"no line of the standard output matches /{self._success}/, which a good run prints")

    def estimate_s(self, parameters: Any, *, ranks: int) -> float:
        return 10.0  # nothing is known of the program before its first trial


@lru_cache(
    maxsize=64
)  # asked for every value and every configuration of a sweep, and building a model takes a millisecond
def _bound(kind: type[_Kind], definition: str) -> _Kind | None:
    try:
        return kind(CommandParameters.model_validate_json(definition))
    except ValidationError:
        return None  # each wrong constant is told at its own field


def _used(definition: CommandParameters) -> set[str]:
    """The placeholders that reach the run."""
    items = [*definition.program, *(item for part in definition.parts for item in part["program"])]
    items += definition.decks.values()
    texts = [*definition.inputs.values(), *definition.environment.values()]
    return {name for item in items for name in names_in(item)}.union(*map(names_in_text, texts))


def _contained(argv: Sequence[str], image: str) -> tuple[str, ...]:
    """The program in a container. Apptainer shows it the working directory and hands on the environment, MPI's variables too."""
    return ("apptainer", "exec", image, *argv) if image else tuple(argv)


def _dispatched(argv: tuple[str, ...], parts: Mapping[int, tuple[str, ...]]) -> tuple[str, ...]:
    """One command for all ranks, which becomes the program of its rank: every launcher can start it, in one world."""
    if not parts:
        return argv
    branches = [f'[ "$rank" -ge {first} ] && exec {shlex.join(parts[first])}' for first in sorted(parts, reverse=True)]
    return ("/bin/sh", "-c", "\n".join([_DISPATCH, *branches, f"exec {shlex.join(argv)}"]))


def _with_modules(argv: tuple[str, ...], modules: Sequence[str], given: Mapping[str, str]) -> tuple[str, ...]:
    """“module” is a function of login shells. Their profiles set PATH and more anew: what was given is said again after them, so
    that modules extend it."""
    if not modules:
        return argv
    said = (
        f"export {' '.join(f'{name}={shlex.quote(text)}' for name, text in sorted(given.items()))}; " if given else ""
    )
    return ("/bin/bash", "-lc", f'{said}module load {shlex.join(modules)} && exec "$@"', "bash", *argv)


def _first_line(pattern: str, output: str) -> str | None:
    try:
        return first_line(pattern, (line[:MAX_LINE] for line in output.splitlines()))
    except ValueError as error:
        raise OutputError(f"/{pattern}/ in the output: {error}") from None
