"""Put a backup in the place of what is here, once all of it is known to be whole."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.keeping import restore
from config.keeping.errors import KeepingError
from config.services.errors import ServiceError


class Command(BaseCommand):
    """``manage.py restore DIR``: DIR is a backup, or a directory of backups, of which the newest is taken."""

    help = __doc__
    requires_migrations_checks = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "directory", type=Path, metavar="DIR", help="a backup, or where several are: then the newest"
        )
        parser.add_argument(
            "--replace", action="store_true", help="also where there are experiments or accounts already"
        )

    def handle(self, *args: Any, directory: Path, replace: bool = False, **options: Any) -> None:
        try:
            place = restore.chosen(directory)
            self.stdout.write(f"restoring {place}")
            for note in restore.put_back(place, replace=replace, tell=self.stdout.write):
                self.stdout.write(note)
        except (KeepingError, ServiceError) as error:
            raise CommandError(f"{error}; nothing was changed") from None
        self.stdout.write("the backup was put back")
