"""Workloads whose Python program a trial ships with its inputs and stores."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from experiments.errors import OutputError
from experiments.workloads.base import Mismatch, Parameters, Parsed

PROGRAMS: Final = Path(__file__).parent.parent / "programs"


def shipped(
    why_two_ranks: str, program: str, *modules: str, options: Callable[[Any], Mapping[str, Any]] = Parameters.model_dump
) -> dict[str, Any]:
    """Return the fields of a workload that ships ``program`` and needs two ranks.

    ``modules`` are what the program imports. ``options`` gives its options by name: ``events_per_job`` is ``--events-per-job``.
    """
    isolation = ("-E", "-s") if modules else ("-I",)  # isolated, a program imports no file beside it

    def command(parameters: Any, *, ranks: int) -> tuple[str, ...]:
        return ("/usr/bin/python3", *isolation, program, *_words(options(parameters)))

    def files(parameters: Any, *, ranks: int) -> Mapping[str, str]:
        return {name: (PROGRAMS / name).read_text() for name in (program, *modules)}

    def check(parameters: Any, *, ranks: int) -> None:
        if ranks < 2:
            raise Mismatch("hosts", f"{why_two_ranks}; take two hosts or two ranks per host")

    return {"command": command, "files": files, "check": check}


def _words(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        yield from (f"--{name.replace('_', '-')}", f"{value:g}" if isinstance(value, float) else str(value))


def json_result(name: str, read: Callable[[Any], Parsed]) -> Callable[[str, Mapping[str, str]], Parsed]:
    """Return the parser of a program that writes its result to the JSON file ``name``."""

    def parse(output: str, files: Mapping[str, str]) -> Parsed:
        if name not in files:
            raise OutputError(f"the program wrote no {name}: the run did not reach its end")
        try:
            return read(json.loads(files[name]))
        except (ValueError, KeyError, TypeError) as error:
            raise OutputError(f"{name} is not what the program writes: {type(error).__name__}: {error}") from None

    return parse
