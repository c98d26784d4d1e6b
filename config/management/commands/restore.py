"""Verify a backup and restore it."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.backup import restore
from config.backup.errors import BackupError
from config.services.errors import ServiceError


class Command(BaseCommand):
    help = __doc__
    requires_migrations_checks = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "directory",
            type=Path,
            metavar="DIR",
            help="a backup, or a directory of backups to use the newest; - reads a tar archive from standard input",
        )
        parser.add_argument("--replace", action="store_true", help="replace existing experiments and accounts")
        parser.add_argument("--check", action="store_true", help="verify the backup and show the effect of a restore")

    def handle(self, *args: Any, directory: Path, replace: bool = False, check: bool = False, **options: Any) -> None:
        try:
            with ExitStack() as stack:
                if str(directory) == "-":
                    directory = stack.enter_context(restore.unpacked(sys.stdin.buffer))
                self._restore(restore.chosen(directory), replace=replace, check=check)
        except PermissionError as error:
            raise CommandError(
                f"user {os.geteuid()} cannot read {error.filename}: change the owner (chown -R), "
                "or send a tar archive: tar -C DIR -c . | ... restore -; nothing was changed"
            ) from None
        except (BackupError, ServiceError) as error:
            raise CommandError(f"{error}; nothing was changed") from None

    def _restore(self, path: Path, *, replace: bool, check: bool) -> None:
        if check:
            notes = restore.examine(path, report=self.stdout.write)
        else:
            self.stdout.write(f"restoring {path}")
            notes = restore.restore_backup(path, replace=replace, report=self.stdout.write)
        for note in notes:
            self.stdout.write(note)
        self.stdout.write("the backup is complete; nothing was changed" if check else "the backup was restored")
