"""Any program as a workload: a definition holds the argv template, typed placeholders and the places of the results.

It is inline in a specification (the workload ``command``, which only the maintainers of a project may submit) or registered.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from pydantic import ValidationError

from analysis.numbers import plural
from experiments.errors import OutputError
from experiments.workloads.base import Mismatch, Parsed, WorkloadDefinition
from experiments.workloads.command_parameters import CONSTANTS, CommandParameters
from experiments.workloads.extractors import MAX_LINE, Extractor
from experiments.workloads.kept_files import selected
from experiments.workloads.patterns import first_line
from experiments.workloads.template import RANKS, fill, fill_text, names_in, names_in_text, with_placeholders

_DISPATCH: Final = "rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:-0}}}"


def command_workload(
    run: CommandParameters, *, slug: str, output: CommandParameters, deciding: str = "", **more: Any
) -> WorkloadDefinition:
    """Return the workload that runs ``run``, and reads its output as ``output`` says; ``more`` are further fields of it."""
    runs = _Run(run)
    extractors = tuple(Extractor.model_validate(each) for each in output.extract)
    figures = tuple(extractor.figure(slug) for extractor in extractors)
    directed = next((figure.id for figure in figures if figure.direction != "neutral"), "elapsed_s")
    return WorkloadDefinition(
        slug=slug,
        command=runs.command,
        check=runs.check,
        files=runs.files,
        decks=runs.decks,
        filled=runs.filled,
        environment=runs.environment,
        threads=_threads,
        estimate_s=lambda parameters, *, ranks: 10.0,  # nothing is known of the program before its first trial
        unused=frozenset() if run.decks else unused(run),
        parse=_Output(slug, extractors, output.success, output.failure).parse,
        outputs=tuple(dict.fromkeys(each.file for each in extractors if each.file is not None)),
        keeps=tuple(output.keep),
        figures=figures,
        decides=f"{slug}.{deciding}" if deciding else directed,
        **more,
    )


def undefined(definition: CommandParameters) -> Iterator[tuple[str, str]]:
    """Yield (field, name) of placeholders that are used in argv items and paths, and not defined."""
    known = {*definition.placeholders, RANKS}
    for field, items in _templates(definition).items():
        yield from ((field, name) for item in items for name in names_in(item) if name not in known)


def unused(definition: CommandParameters) -> frozenset[str]:
    """Return the placeholders that reach nothing of the run; a deck on a cluster may still use them (`filled`)."""
    used = {name for items in _templates(definition).values() for item in items for name in names_in(item)}
    texts = (*definition.inputs.values(), *definition.environment.values())
    return frozenset(definition.placeholders).difference(used, *map(names_in_text, texts))


def _templates(definition: CommandParameters) -> dict[str, list[str]]:
    parts = [item for part in definition.parts for item in part["program"]]
    return {"program": definition.program, "parts": parts, "decks": list(definition.decks.values())}


@dataclass(frozen=True, slots=True)
class _Run:
    """What a definition runs, as the functions of a workload."""

    definition: CommandParameters

    def command(self, parameters: Any, *, ranks: int) -> tuple[str, ...]:
        run, values = self.definition, self._values(parameters, ranks)
        argv = _contained(fill(run.program, values), run.container)
        parts = {part["from_rank"]: _contained(fill(part["program"], values), run.container) for part in run.parts}
        return _with_modules(_dispatched(argv, parts), run.modules, self.environment(parameters, ranks=ranks))

    def check(self, parameters: Any, *, ranks: int) -> None:
        for field, name in undefined(self.definition):
            raise Mismatch(field, f"{{{name}}} is not defined under placeholders")
        last = max((part["from_rank"] for part in self.definition.parts), default=0)
        if last >= ranks:
            raise Mismatch("parts", f"rank {last} has a program of its own, and there are only {plural(ranks, 'rank')}")
        self.command(parameters, ranks=ranks)

    def files(self, parameters: Any, *, ranks: int) -> Mapping[str, str]:
        return self._filled(self.definition.inputs, parameters, ranks)

    def decks(self, parameters: Any, *, ranks: int) -> Mapping[str, str]:
        paths = self.definition.decks
        return dict(zip(paths, fill(list(paths.values()), self._values(parameters, ranks)), strict=True))

    def filled(self, parameters: Any, texts: Mapping[str, str], *, ranks: int) -> Mapping[str, str]:
        left = unused(self.definition).difference(*map(names_in_text, texts.values())) if texts else ()
        for name in sorted(left):
            raise Mismatch(name, f"{name} changes nothing: neither command nor input files have {{{name}}}")
        return self._filled(texts, parameters, ranks)

    def environment(self, parameters: Any, *, ranks: int) -> Mapping[str, str]:
        return self._filled(self.definition.environment, parameters, ranks)

    def _filled(self, texts: Mapping[str, str], parameters: Any, ranks: int) -> dict[str, str]:
        values = self._values(parameters, ranks)
        return {name: fill_text(text, values) for name, text in texts.items()}

    def _values(self, parameters: Any, ranks: int) -> dict[str, Any]:
        return {**{name: getattr(parameters, name) for name in self.definition.placeholders}, RANKS: ranks}


@dataclass(frozen=True, slots=True)
class _Output:
    """How the output of a command is read."""

    slug: str
    extractors: tuple[Extractor, ...]
    success: str
    failure: str

    def parse(self, output: str, files: Mapping[str, str]) -> Parsed:
        failed = _first_line(self.failure, output) if self.failure else None
        if failed is not None:
            raise OutputError(f"the program said that it failed: {failed.strip().rstrip('.')}")
        if self.success and _first_line(self.success, output) is None:
            raise OutputError(f"no line of the standard output matches /{self.success}/, which a good run prints")
        figures: dict[str, float] = {}
        for extractor in self.extractors:
            texts = [output] if extractor.file is None else [files[name] for name in selected([extractor.file], files)]
            value = extractor.read(*texts)
            if value is not None:
                figures[f"{self.slug}.{extractor.name}"] = value
            elif extractor.required:
                raise OutputError(f"{extractor.name} is not in {extractor.file or 'the output'}")
        return Parsed(figures)


def _threads(parameters: Any) -> int:
    # A placeholder of this name takes the place of the parameter: the program's own value counts.
    return max(parameters.threads, 1) if isinstance(parameters.threads, int) else 1


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


def _inline(definition: CommandParameters) -> WorkloadDefinition:
    later = {"decks": {}, "environment": {}, "modules": [], "container": "", "parts": []}
    return command_workload(
        definition,
        slug="command",
        output=definition,
        title="Any command",
        summary="A program of your own with placeholders and figures of merit; for maintainers",
        restricted=True,
        parameters_type=with_placeholders(CommandParameters, definition.placeholders),
        constants=CONSTANTS,
        reading=frozenset({"extract", "success", "failure", "keep"}),
        brought=("program",),
        later_defaults=later if "threads" in definition.placeholders else {**later, "threads": 1},
        variant=_defined,
    )


def _defined(constants: Mapping[str, Any]) -> WorkloadDefinition | None:
    definition = {name: value for name, value in constants.items() if name in CONSTANTS}
    return _parsed(json.dumps(definition, sort_keys=True, default=str)) if "program" in definition else None


@lru_cache(maxsize=64)  # every value of a sweep needs it, and building a model takes a millisecond
def _parsed(definition: str) -> WorkloadDefinition | None:
    try:
        return _inline(CommandParameters.model_validate_json(definition))
    except ValidationError:
        return None  # each wrong constant is reported at its own field


COMMAND: Final = _inline(CommandParameters())
"""Without a program and placeholders, until it is bound to those of a specification."""
