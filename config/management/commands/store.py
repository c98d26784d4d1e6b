"""Compare stored artifacts with the database: missing, changed and orphaned files."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from analysis.numbers import plural
from experiments.errors import StoreUnavailable
from experiments.models import TrialValues
from workers import store


class Command(BaseCommand):
    """``manage.py store check``: exit status 1 if there is a difference."""

    help = __doc__

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        check = parser.add_subparsers(required=True, metavar="check").add_parser("check", help=__doc__)
        check.add_argument("--hashes", action="store_true", help="read every file and compare its hash")
        check.add_argument(
            "--delete-orphans", action="store_true", help="delete files of no trial that are older than a day"
        )

        check.add_argument(
            "--values",
            action="store_true",
            help="also compare the arrays of trials with their measurements, and fix them",
        )

    def handle(
        self, *args: Any, hashes: bool = False, delete_orphans: bool = False, values: bool = False, **options: Any
    ) -> None:
        try:
            self._check(hashes=hashes, delete_orphans=delete_orphans, values=values)
        except StoreUnavailable as error:
            raise CommandError(str(error)) from None

    def _check(self, *, hashes: bool, delete_orphans: bool, values: bool) -> None:
        wrong = TrialValues.wrong() if values else []
        TrialValues.gather(wrong)
        for number in wrong:
            self.stdout.write(f"values fixed: trial {number}")
        differences = store.check(hashes=hashes)
        for title, rows in (
            ("missing", differences.missing),
            ("wrong size", differences.resized),
            ("changed", differences.changed),
        ):
            for artifact in rows:
                self.stdout.write(f"{title}: {artifact.path} (trial {artifact.trial_id})")
        if delete_orphans:
            deleted = store.delete_orphans(differences)
            for path in deleted:
                self.stdout.write(f"deleted: {path}")
        for path in differences.orphans:
            self.stdout.write(f"orphan: {path}")
        for upload in differences.unfinished:
            self.stdout.write(f"unfinished upload: {upload.path}")
        if differences:
            raise CommandError(f"files that differ from the database: {len(differences)}")
        if wrong:
            raise CommandError(
                f"the arrays of {plural(len(wrong), 'trial')} differed from the measurements, and were fixed"
            )
        self.stdout.write("files and database match")
