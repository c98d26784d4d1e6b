"""Make a backup of the database, the files of trials and the settings, while everything runs."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.backup import backup
from config.backup.errors import KeepingError


class Command(BaseCommand):
    """``manage.py backup DIR``: a new directory below DIR, read back and checked, or none at all."""

    help = __doc__

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "directory", type=Path, metavar="DIR", help="where backups are kept, each in its own directory"
        )
        parser.add_argument("--secrets", action="store_true", help="the secret key and passwords too: keep it closed")
        parser.add_argument(
            "--accept-damaged", action="store_true", help="also where files of trials are gone or were changed"
        )

    def handle(
        self, *args: Any, directory: Path, secrets: bool = False, accept_damaged: bool = False, **options: Any
    ) -> None:
        os.nice(10)  # trials that are measured go first
        try:
            place = backup.make(directory, secrets=secrets, accept_damaged=accept_damaged, tell=self.stdout.write)
        except KeepingError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(
            "the secret key is in it: who reads it can forge sessions"
            if secrets
            else "the secret key and passwords of services are not in it (--secrets takes them along)"
        )
        self.stdout.write(f"backup made: {place}")
