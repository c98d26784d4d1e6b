"""Any program as a workload, from a definition.

The definition is inline in a specification (the workload ``command``, which only the maintainers of a project may submit) or
registered, in versions. The commands that run have a version, which is part of every configuration, so that a trial can be repeated
as it was. Reading the output has none: the latest definition reads the outputs of all versions.
"""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final

from pydantic import AfterValidator, ValidationError, create_model

from analysis.numbers import plural
from experiments.errors import OutputError
from experiments.workloads.base import Mismatch, Parameters, Parsed, WorkloadDefinition
from experiments.workloads.definition import CONSTANTS, READING, CommandParameters, ProgramDefinition
from experiments.workloads.extractors import Extractor
from experiments.workloads.fields import parameter
from experiments.workloads.kept_files import selected
from experiments.workloads.outputs import Figure, Line, Text
from experiments.workloads.patterns import search
from experiments.workloads.template import RANKS, fill, fill_text, names_in_text, with_placeholders

_DISPATCH: Final = "rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:-0}}}"


def _workload(
    run: CommandParameters, *, slug: str, output: CommandParameters, deciding: str = "", **more: Any
) -> WorkloadDefinition:
    """Return the workload that runs ``run`` and reads its output by ``output``."""
    extractors = tuple(map(Extractor.model_validate, output.extract))
    figures = tuple(extractor.figure(slug) for extractor in extractors)
    directed = next((figure.id for figure in figures if figure.direction != "neutral"), "elapsed_s")
    return WorkloadDefinition(
        slug=slug,
        command=partial(_command, run),
        check=partial(_check, run),
        files=lambda parameters, *, ranks: _filled(run, run.inputs, parameters, ranks),
        decks=partial(_decks, run),
        filled=partial(_filled_decks, run),
        environment=lambda parameters, *, ranks: _filled(run, run.environment, parameters, ranks),
        threads=_threads,
        estimate_s=lambda parameters, *, ranks: 10.0,  # nothing is known of the program before its first trial
        unused=frozenset() if run.decks else run.unused(),
        parse=partial(_parse, slug, extractors, output),
        outputs=tuple(dict.fromkeys(extractor.file for extractor in extractors if extractor.file is not None)),
        keeps=tuple(output.keep),
        output_checks=met_checks(output.success, output.failure),
        figures=figures,
        decides=f"{slug}.{deciding}" if deciding else directed,
        **more,
    )


def _values(run: CommandParameters, parameters: Any, ranks: int) -> dict[str, Any]:
    return {**{name: getattr(parameters, name) for name in run.placeholders}, RANKS: ranks}


def _filled(run: CommandParameters, texts: Mapping[str, str], parameters: Any, ranks: int) -> dict[str, str]:
    values = _values(run, parameters, ranks)
    return {name: fill_text(text, values) for name, text in texts.items()}


def _command(run: CommandParameters, parameters: Any, *, ranks: int) -> tuple[str, ...]:
    values = _values(run, parameters, ranks)
    # Apptainer mounts the working directory and passes the environment on, MPI's variables too.
    container = ("apptainer", "exec", run.container) if run.container else ()
    argv = (*container, *fill(run.program, values))
    parts = {part["from_rank"]: (*container, *fill(part["program"], values)) for part in run.parts}
    return _with_modules(_dispatched(argv, parts), run.modules, _filled(run, run.environment, parameters, ranks))


def _check(run: CommandParameters, parameters: Any, *, ranks: int) -> None:
    for field, name in run.undefined():
        raise Mismatch(field, f"{{{name}}} is not defined: add a parameter of this name (placeholders)")
    last = max((part["from_rank"] for part in run.parts), default=0)
    if last >= ranks:
        raise Mismatch("parts", f"rank {last} has a program of its own, and there are only {plural(ranks, 'rank')}")
    _command(run, parameters, ranks=ranks)


def _decks(run: CommandParameters, parameters: Any, *, ranks: int) -> Mapping[str, str]:
    return dict(zip(run.decks, fill(list(run.decks.values()), _values(run, parameters, ranks)), strict=True))


def _filled_decks(
    run: CommandParameters, parameters: Any, texts: Mapping[str, str], *, ranks: int
) -> Mapping[str, str]:
    for name in sorted(run.unused().difference(*map(names_in_text, texts.values()))) if texts else ():
        raise Mismatch(name, f"{name} changes nothing: neither command nor input files have {{{name}}}")
    return _filled(run, texts, parameters, ranks)


def _threads(parameters: Any) -> int:
    # A placeholder of this name takes the place of the parameter: the program's own value counts.
    return max(parameters.threads, 1) if isinstance(parameters.threads, int) else 1


def _parse(
    slug: str, extractors: Sequence[Extractor], definition: CommandParameters, output: str, files: Mapping[str, str]
) -> Parsed:
    printed = Text(output)
    refuse_failed(printed, definition.success, definition.failure)
    written = {name: Text.of(text, name) for name, text in files.items()}
    figures = {f"{slug}.{extractor.name}": read_figure(extractor, printed, written) for extractor in extractors}
    return Parsed({name: value for name, value in figures.items() if value is not None})


def refuse_failed(printed: Text, success: str, failure: str) -> None:
    """Raise OutputError if the standard output is that of a failed run."""
    failed = _first_line(failure, printed) if failure else None
    if failed is not None:
        raise failed.refused("the program says that it failed")
    if success and _first_line(success, printed) is None:
        raise OutputError(f"no line of the standard output matches /{success}/, which a good run prints")


def met_checks(success: str, failure: str) -> tuple[str, ...]:
    """Return what ``refuse_failed`` found in the output of a good run, in words."""
    checks = ((success, f"a line matches /{success}/"), (failure, f"no line matches /{failure}/"))
    return tuple(words for pattern, words in checks if pattern)


def read_figure(extractor: Extractor, printed: Text, written: Mapping[str, Text]) -> Figure | None:
    """Return a figure of the standard output or of written files by name.

    None if it is not there and need not be. Raise OutputError.
    """
    texts = [printed] if extractor.file is None else [written[name] for name in selected([extractor.file], written)]
    value = extractor.read(*texts)
    if value is None and extractor.required:
        why = " (its pattern matches no line)" if extractor.regex else ""
        raise OutputError(f"{extractor.name} is not in {extractor.file or 'the output'}{why}")
    return value


def _first_line(pattern: str, output: Text) -> Line | None:
    texts = (output,) if output.untagged is None else (output, output.untagged)
    try:
        return next((line for text in texts for line, _ in search(pattern, text)), None)
    except ValueError as error:
        raise OutputError(f"/{pattern}/ in the output: {error}") from None


def _dispatched(argv: tuple[str, ...], parts: Mapping[int, tuple[str, ...]]) -> tuple[str, ...]:
    """Return one command for all ranks, which becomes the program of its rank."""
    if not parts:
        return argv
    branches = [f'[ "$rank" -ge {first} ] && exec {shlex.join(parts[first])}' for first in sorted(parts, reverse=True)]
    return ("/bin/sh", "-c", "\n".join([_DISPATCH, *branches, f"exec {shlex.join(argv)}"]))


def _with_modules(argv: tuple[str, ...], modules: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command in a login shell that loads the modules, if there are any.

    Profiles set PATH and more anew, so the environment is exported again after them, and modules extend it.
    """
    if not modules:
        return argv
    variables = " ".join(f"{name}={shlex.quote(text)}" for name, text in sorted(environment.items()))
    exported = f"export {variables}; " if variables else ""
    return ("/bin/bash", "-lc", f'{exported}module load {shlex.join(modules)} && exec "$@"', "bash", *argv)


def _inline(definition: CommandParameters) -> WorkloadDefinition:
    later = {"decks": {}, "environment": {}, "modules": [], "container": "", "parts": []}
    return _workload(
        definition,
        slug="command",
        output=definition,
        title="Any command",
        summary="A program of your own with placeholders and figures of merit; for maintainers",
        restricted=True,
        parameters_type=with_placeholders(CommandParameters, definition.placeholders),
        constants=CONSTANTS,
        reading=READING,
        brought=("program",),
        later_defaults=later if "threads" in definition.placeholders else {**later, "threads": 1},
        variant=_defined,
    )


def _defined(constants: Mapping[str, Any], cluster: str) -> WorkloadDefinition | None:
    definition = {name: value for name, value in constants.items() if name in CONSTANTS}
    return _cached_inline(json.dumps(definition, sort_keys=True, default=str)) if "program" in definition else None


@functools.lru_cache(maxsize=64)  # every value of a sweep needs it, and building a model takes a millisecond
def _cached_inline(definition: str) -> WorkloadDefinition | None:
    try:
        return _inline(CommandParameters.model_validate_json(definition))
    except ValidationError:
        return None  # each wrong constant is reported at its own field


COMMAND: Final = _inline(CommandParameters())
"""Without a program and placeholders, until it is bound to those of a specification."""


def programs_from(definitions: Iterable[tuple[int, ProgramDefinition]]) -> dict[str, WorkloadDefinition]:
    """Return the registered programs by name from (version, definition) rows."""
    by_name: dict[str, dict[int, ProgramDefinition]] = {}
    for version, definition in definitions:
        by_name.setdefault(definition.name, {})[version] = definition
    return {name: _registered(versions) for name, versions in sorted(by_name.items())}


def _registered(versions: Mapping[int, ProgramDefinition]) -> WorkloadDefinition:
    """Return a registered program in its latest version.

    The constant ``version`` selects another one. Submitters may run it: a maintainer defined what is executed.
    """
    latest = versions[max(versions)]

    @functools.cache
    def workload(version: int, cluster: str = "") -> WorkloadDefinition:
        definition = versions[version]

        def variant(constants: Mapping[str, Any], cluster: str) -> WorkloadDefinition:
            chosen = constants.get("version")
            chosen = chosen if isinstance(chosen, int) and chosen in versions else version
            return workload(chosen, cluster if cluster in versions[chosen].clusters else "")

        return _workload(
            definition.on(cluster),
            slug=latest.name,
            output=latest,
            deciding=latest.deciding,
            title=latest.title or latest.name,
            summary=latest.summary,
            registered=True,
            retired=latest.retired,
            parameters_type=_parameters_of(definition, version, tuple(versions)),
            constants=("version",),
            brought=("version",),
            pinned=("version",),
            variant=variant,
        )

    return workload(max(versions))


def _parameters_of(definition: ProgramDefinition, version: int, versions: tuple[int, ...]) -> type[Parameters]:
    """Return the parameters of users: placeholders, threads, and the version."""

    def known_version(number: int) -> int:
        if number not in versions:
            *first, last = map(str, sorted(versions))
            raise ValueError(f"has no version {number}, only {' and '.join(filter(None, (', '.join(first), last)))}")
        return number

    described = "Of the registered program; a new one begins when what is run changes."
    threads = parameter(definition.threads, "Threads", "Threads of each rank.", ge=1, le=1024)
    base = create_model(
        "ProgramParameters",
        __base__=Parameters,
        threads=(int, threads),
        version=(Annotated[int, AfterValidator(known_version)], parameter(version, "Version", described)),
    )
    return with_placeholders(base, definition.placeholders)
