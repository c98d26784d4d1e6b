"""Put a backup in the place of what is here, once all of it is known to be whole."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.backup import restore
from config.backup.errors import KeepingError
from config.services.errors import ServiceError


class Command(BaseCommand):
    """``manage.py restore DIR``: DIR is a backup, or a directory of backups, of which the newest is taken."""

    help = __doc__
    requires_migrations_checks = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "directory",
            type=Path,
            metavar="DIR",
            help="a backup, or where several are: then the newest; - is a tar archive of one on standard input",
        )
        parser.add_argument(
            "--replace", action="store_true", help="also where there are experiments or accounts already"
        )
        parser.add_argument("--check", action="store_true", help="change nothing: check the backup and show its effect")

    def handle(self, *args: Any, directory: Path, replace: bool = False, check: bool = False, **options: Any) -> None:
        try:
            with ExitStack() as stack:
                if str(directory) == "-":
                    directory = stack.enter_context(restore.unpacked(sys.stdin.buffer))
                self._restore(restore.chosen(directory), replace=replace, check=check)
        except PermissionError as error:
            raise CommandError(
                f"{error.filename} cannot be read by user {os.geteuid()}: give it the files (chown -R), "
                "or send them: tar -C DIR -c . | ... restore -; nothing was changed"
            ) from None
        except (KeepingError, ServiceError) as error:
            raise CommandError(f"{error}; nothing was changed") from None

    def _restore(self, place: Path, *, replace: bool, check: bool) -> None:
        if check:
            notes = restore.examine(place, tell=self.stdout.write)
        else:
            self.stdout.write(f"restoring {place}")
            notes = restore.put_back(place, replace=replace, tell=self.stdout.write)
        for note in notes:
            self.stdout.write(note)
        self.stdout.write("the backup is whole; nothing was changed" if check else "the backup was put back")
