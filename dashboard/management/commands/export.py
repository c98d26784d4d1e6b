"""Export a table of the explorer, or the table behind a chart."""

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
    help = __doc__

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", help=f"its ending selects the format: {', '.join(_ENDINGS)}; - for standard output")
        parser.add_argument("filters", nargs="*", metavar="FILTER=VALUE", help="as in the explorer: where='hosts >= 4'")
        parser.add_argument("--rows", choices=ROWS, default="trials", help="kind of rows (default: trials)")
        parser.add_argument("--every", action="store_true", help="include excluded trials")
        parser.add_argument("--form", choices=list(FORMATS), help="format, whatever the ending")
        parser.add_argument(
            "--chart",
            metavar="SLUG:NAME[:VIEW]",
            help="the table behind a chart, as CSV; t:NUMBER instead of SLUG for a trial",
        )

    def handle(self, *args: Any, file: str, filters: list[str], **options: Any) -> None:
        if options["chart"]:
            self._write_chart(file, options["chart"], filters)
            return
        form = options["form"] or ("csv" if file == "-" else _ENDINGS.get(Path(file).suffix))
        if form is None:
            raise CommandError(f"the ending of {file} is none of {', '.join(_ENDINGS)}; use --form", returncode=2)
        query = QueryDict(mutable=True)
        for text in filters:
            name, equals, value = text.partition("=")
            if not equals or name not in NAMES:
                raise CommandError(f"{text!r} is not FILTER=VALUE with one of {', '.join(sorted(NAMES))}", returncode=2)
            query.appendlist(name, value)
        query["rows"] = options["rows"]
        if options["every"]:
            query["every"] = "true"
        try:
            table = Export.of(_operator(), query, form)
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

    def _write_chart(self, file: str, chart: str, filters: list[str]) -> None:
        if filters:
            raise CommandError("a chart has no filters", returncode=2)
        charts, name, view = _chart_of(chart)
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


def _chart_of(chart: str) -> tuple[ChartTables, str, str]:
    slug, _, rest = chart.partition(":")
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
    """Return an unsaved superuser: users of the command line may see everything."""
    return get_user_model()(username="operator", is_superuser=True, is_active=True)
