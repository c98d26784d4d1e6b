"""Back up the database, artifacts and settings of a running installation."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.backup import backup
from config.backup.errors import BackupError


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("directory", type=Path, metavar="DIR", help="directory of all backups")
        parser.add_argument("--secrets", action="store_true", help="include the secret key and passwords")
        parser.add_argument("--accept-damaged", action="store_true", help="accept missing and changed artifacts")

    def handle(
        self, *args: Any, directory: Path, secrets: bool = False, accept_damaged: bool = False, **options: Any
    ) -> None:
        os.nice(10)  # running trials have priority
        try:
            path = backup.make(directory, secrets=secrets, accept_damaged=accept_damaged, report=self.stdout.write)
        except BackupError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(
            "the backup has the secret key, which can forge sessions"
            if secrets
            else "the backup has no secret key and no passwords (include them with --secrets)"
        )
        self.stdout.write(f"backup made: {path}")
