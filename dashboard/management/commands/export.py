"""Write what the explorer finds to a file: trials with everything measured, single measurements, or medians of configurations."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.http import QueryDict

from dashboard.background.exports import FORMATS, Export
from dashboard.requests.explore import NAMES, ROWS
from experiments.errors import CannotExplore
from experiments.pure import plain_files

_ENDINGS: Final = {".csv": "csv", ".json": "json", ".jsonl": "jsonl", ".parquet": "parquet"}


class Command(BaseCommand):
    """``manage.py export FILE [--rows trials] [--every] [FILTER=VALUE ...]``."""

    help = __doc__

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", help=f"its ending says the form: {', '.join(_ENDINGS)}; - for standard output")
        parser.add_argument("filters", nargs="*", metavar="FILTER=VALUE", help="as in the explorer: where='hosts >= 4'")
        parser.add_argument("--rows", choices=ROWS, default="trials", help="what stands in a row (default: trials)")
        parser.add_argument("--every", action="store_true", help="also trials that enter no statistics")
        parser.add_argument("--form", choices=list(FORMATS), help="whatever the file is called")

    def handle(self, *args: Any, file: str, filters: list[str], **options: Any) -> None:
        form = options["form"] or ("csv" if file == "-" else _ENDINGS.get(Path(file).suffix))
        if form is None:
            raise CommandError(f"the ending of {file} is none of {', '.join(_ENDINGS)}; say --form", returncode=2)
        given = QueryDict(mutable=True)
        for each in filters:
            name, equals, value = each.partition("=")
            if not equals or name not in NAMES:
                raise CommandError(f"{each!r} is not FILTER=VALUE with one of {', '.join(sorted(NAMES))}", returncode=2)
            given.appendlist(name, value)
        given["rows"] = options["rows"]
        if options["every"]:
            given["every"] = "true"
        try:
            table = Export.of(_operator(), given, form)
        except CannotExplore as error:
            raise CommandError(str(error), returncode=2) from None
        if file == "-":
            for piece in table.body():
                sys.stdout.buffer.write(piece)
            return
        with plain_files.private(), Path(file).open("wb") as stream:
            for piece in table.body():
                stream.write(piece)
        self.stdout.write(f"{file}: {table.total} {'configurations' if options['rows'] == ROWS[0] else 'trials'}")


def _operator() -> Any:
    """Who has the command line has everything: somebody who may see all of it, and is nobody's account."""
    return get_user_model()(username="operator", is_superuser=True, is_active=True)
