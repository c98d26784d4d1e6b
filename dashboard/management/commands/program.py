"""Register a program from a YAML file, or print a registered one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from experiments.errors import InvalidSpec
from experiments.models import Program
from experiments.specification.yaml_lines import dump
from workers import queue


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, help="a YAML file with the definition")
        parser.add_argument("--show", metavar="NAME", help="print the definition of a registered program")

    def handle(self, *args: Any, file: Path | None = None, show: str | None = None, **options: Any) -> None:
        if (file is None) == (show is None):
            raise CommandError("give a file, or --show NAME", returncode=2)
        if show is not None:
            registered = Program.latest(show)
            if registered is None:
                raise CommandError(f"there is no registered program {show!r}", returncode=2)
            self.stdout.write(dump(dict(registered.definition)))
        elif file is not None:
            program = _register(file)
            self.stdout.write(
                f"{program.slug}: version {program.version}; use it in specifications as workload: {program.slug}"
            )


def _register(file: Path) -> Program:
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file}: {getattr(error, 'strerror', None) or 'is not text'}", returncode=2) from None
    try:
        return queue.register_program_yaml(text)
    except InvalidSpec as error:
        raise CommandError("\n".join(f"{file}: {e}" for e in error.errors), returncode=2) from None
