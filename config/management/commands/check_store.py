"""Hold the files of trials against the rows of the database: what is missing, what was changed, what belongs to nobody."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from analysis.numbers import plural
from workers import store


class Command(BaseCommand):
    """``manage.py check_store``: a line for whatever does not agree; its exit status is 1 where something does not."""

    help = __doc__

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--hashes", action="store_true", help="read every file and compare its hash")
        parser.add_argument("--remove-orphans", action="store_true", help="remove files that belong to no trial")

    def handle(self, *args: Any, hashes: bool = False, remove_orphans: bool = False, **options: Any) -> None:
        disagreeing = store.check(hashes=hashes)
        for title, rows in (("missing", disagreeing.missing), ("changed", disagreeing.changed)):
            for artifact in rows:
                self.stdout.write(f"{title}: {artifact.path} (trial {artifact.trial_id})")
        for path in disagreeing.orphans:
            self.stdout.write(f"nobody's: {path}")
        if remove_orphans:
            self.stdout.write(f"removed {plural(store.remove_orphans(disagreeing), 'orphan')}")
            disagreeing.orphans.clear()
        if disagreeing:
            wrong = len(disagreeing.missing) + len(disagreeing.changed) + len(disagreeing.orphans)
            raise CommandError(f"{plural(wrong, 'file')} and the database do not agree")
        self.stdout.write("files and database agree")
