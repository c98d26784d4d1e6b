"""Hold the files of trials against the rows of the database: what is missing, what was changed, what belongs to nobody."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from analysis.numbers import plural
from experiments.errors import StoreAway
from experiments.models import TrialValues
from workers import store


class Command(BaseCommand):
    """``manage.py store check``: a line for whatever does not agree; its exit status is 1 where something does not."""

    help = __doc__

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        check = parser.add_subparsers(required=True, metavar="check").add_parser("check", help=__doc__)
        check.add_argument("--hashes", action="store_true", help="read every file and compare its hash")
        check.add_argument(
            "--delete-orphans", action="store_true", help="delete what belongs to no trial and is older than a day"
        )

        check.add_argument(
            "--values",
            action="store_true",
            help="also hold the arrays of trials against their measurements, and mend them",
        )

    def handle(
        self, *args: Any, hashes: bool = False, delete_orphans: bool = False, values: bool = False, **options: Any
    ) -> None:
        try:
            self._check(hashes=hashes, delete_orphans=delete_orphans, values=values)
        except StoreAway as error:
            raise CommandError(str(error)) from None

    def _check(self, *, hashes: bool, delete_orphans: bool, values: bool) -> None:
        wrong = TrialValues.wrong() if values else []
        TrialValues.gather(wrong)
        for number in wrong:
            self.stdout.write(f"values written anew: trial {number}")
        disagreeing = store.check(hashes=hashes)
        for title, rows in (
            ("missing", disagreeing.missing),
            ("wrong size", disagreeing.resized),
            ("changed", disagreeing.changed),
        ):
            for artifact in rows:
                self.stdout.write(f"{title}: {artifact.path} (trial {artifact.trial_id})")
        if delete_orphans:
            deleted = store.delete_orphans(disagreeing)
            for path in deleted:
                self.stdout.write(f"deleted: {path}")
        for path in disagreeing.orphans:
            self.stdout.write(f"nobody's: {path}")
        for upload in disagreeing.unfinished:
            self.stdout.write(f"unfinished upload: {upload.path}")
        if disagreeing:
            raise CommandError(f"{plural(len(disagreeing), 'file')} and the database do not agree")
        if wrong:
            raise CommandError(f"the arrays of {plural(len(wrong), 'trial')} were not what their measurements say")
        self.stdout.write("files and database agree")
