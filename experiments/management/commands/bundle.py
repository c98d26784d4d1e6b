"""Write experiments or trials with all results into one bundle."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from analysis.numbers import plural
from experiments.common import plain_files
from experiments.errors import CannotExport
from experiments.exchange.bundle import ChosenTrials, write_bundle
from experiments.exchange.choice import select_experiments
from experiments.exchange.exporting import BundleOptions
from experiments.exchange.records import CAPTURES


class Command(BaseCommand):
    """Export experiments as a bundle.

    ``manage.py bundle SLUG [SLUG ...] FILE [--captures none|headers|all] [--anonymise]``
    """

    help = __doc__

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("chosen", nargs="+", metavar="SLUG", help="an experiment, or t:NUMBER for a trial")
        parser.add_argument("file", help="the zip archive to write")
        parser.add_argument("--captures", choices=CAPTURES, default="all", help="captures to include (default: all)")
        parser.add_argument(
            "--anonymise",
            action="store_true",
            help="replace addresses in captures and texts; names of hosts and users stay",
        )
        parser.add_argument("--licence", default="", help="licence of the results, as a name or a URL")

    def handle(self, *args: Any, chosen: list[str], file: str, **options: Any) -> None:
        target = Path(file)
        part = target.with_name(f"{target.name}.part")
        try:
            selection = BundleOptions(options["captures"], anonymise=options["anonymise"], licence=options["licence"])
            members: list[ChosenTrials] = select_experiments(chosen)
            with plain_files.private(), part.open("wb") as stream:
                summary = write_bundle(stream, members, selection)
            part.replace(target)
        except CannotExport as error:
            raise CommandError(str(error), returncode=2) from None
        except OSError as error:
            raise CommandError(f"{file} cannot be written: {error.strerror}.", returncode=2) from None
        finally:
            part.unlink(missing_ok=True)
        left_out = f"; {plural(summary.left_out, 'file')} of trials left out" if summary.left_out else ""
        what = f"{plural(summary.experiments, 'experiment')}, {plural(summary.trials, 'trial')}, {plural(summary.files, 'file')}"
        self.stdout.write(f"{file}: {what}{left_out}")
