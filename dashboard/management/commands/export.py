"""Write what the explorer finds to a file: trials with everything measured, single measurements, or medians of configurations; or the
table behind a chart of an experiment or a trial.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.http import QueryDict

from dashboard.background.exports import FORMATS, Export
from dashboard.charts.tables import ChartTables
from dashboard.panels.parts import chart_tables as experiment_charts
from dashboard.panels.trial import chart_tables as trial_charts
from dashboard.requests.explore import NAMES, ROWS
from experiments.common import plain_files
from experiments.errors import CannotExplore
from experiments.models import Experiment, Trial

_ENDINGS: Final = {".csv": "csv", ".json": "json", ".jsonl": "jsonl", ".parquet": "parquet"}


class Command(BaseCommand):
    """``manage.py export FILE [--rows trials] [--every] [FILTER=VALUE ...]``, ``manage.py export FILE --chart SLUG:NAME``."""

    help = __doc__

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", help=f"its ending says the form: {', '.join(_ENDINGS)}; - for standard output")
        parser.add_argument("filters", nargs="*", metavar="FILTER=VALUE", help="as in the explorer: where='hosts >= 4'")
        parser.add_argument("--rows", choices=ROWS, default="trials", help="what stands in a row (default: trials)")
        parser.add_argument("--every", action="store_true", help="also trials that enter no statistics")
        parser.add_argument("--form", choices=list(FORMATS), help="whatever the file is called")
        parser.add_argument(
            "--chart",
            metavar="SLUG:NAME[:VIEW]",
            help="the table behind a chart, as CSV; of a trial with t:NUMBER in place of SLUG",
        )

    def handle(self, *args: Any, file: str, filters: list[str], **options: Any) -> None:
        if options["chart"]:
            self._write_chart(file, options["chart"], filters)
            return
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

    def _write_chart(self, file: str, wanted: str, filters: list[str]) -> None:
        if filters:
            raise CommandError("a chart has no filters", returncode=2)
        charts, name, view = _chart_of(wanted)
        try:
            text = charts.table(name, view or None).csv()
        except LookupError as error:
            raise CommandError(str(error.args[0]), returncode=2) from None
        if file == "-":
            sys.stdout.write(text)
            return
        with plain_files.private():
            Path(file).write_text(text, encoding="utf-8", newline="")
        self.stdout.write(f"{file}: the chart {name} of {charts.of}")


def _chart_of(wanted: str) -> tuple[ChartTables, str, str]:
    slug, _, rest = wanted.partition(":")
    if slug == "t":
        number, _, rest = rest.partition(":")
        trial = Trial.objects.filter(pk=number).first() if number.isascii() and number.isdecimal() else None
        if trial is None:
            raise CommandError(f"there is no trial {number!r}", returncode=2)
        charts = trial_charts.charts_of(trial)
    else:
        experiment = Experiment.objects.filter(slug=slug).first()
        if experiment is None:
            raise CommandError(f"there is no experiment {slug!r}", returncode=2)
        charts = experiment_charts.charts_of(experiment)
    name, _, view = rest.partition(":")
    return charts, name, view


def _operator() -> Any:
    """Who has the command line has everything: somebody who may see all of it, and is nobody's account."""
    return get_user_model()(username="operator", is_superuser=True, is_active=True)
