"""Import a bundle, a description or table, or a result file of another tool."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from experiments.errors import BadBundle, InvalidSpec
from experiments.exchange.import_plan import ImportPlan, ImportResult
from experiments.exchange.intake import take_in
from experiments.models import Project
from experiments.models.people.project import DEFAULT_PROJECT


class Command(BaseCommand):
    """``manage.py import FILE [--dry-run] [--project SLUG]``."""

    help = __doc__

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "file",
            help="a bundle (a zip archive or its directory), a description that ends in .yaml, a table that ends in .csv with a "
            "description beside it, or a file that ends in .json: a report of ReFrame, results of Ramble or Benchpark, a summary of TALP",
        )
        parser.add_argument("--dry-run", action="store_true", help="say what would be created, and create nothing")
        parser.add_argument("--project", default=DEFAULT_PROJECT, help="where it goes (default: the default project)")

    def handle(self, *args: Any, file: str, dry_run: bool, project: str, **options: Any) -> None:
        target = Project.objects.filter(slug=project).first()
        if target is None:
            known = ", ".join(Project.objects.order_by("slug").values_list("slug", flat=True)) or "none"
            raise CommandError(f"there is no project {project!r}; known: {known}", returncode=2)
        try:
            brought = take_in(Path(file), project=target, dry_run=dry_run)
        except InvalidSpec as error:
            raise CommandError("\n".join(f"{file}: {each}" for each in error.errors), returncode=2) from None
        except BadBundle as error:
            raise CommandError(f"{file}: {error}", returncode=2) from None
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror or error}.", returncode=2) from None
        self.stdout.write(self._heading(brought, file, dry_run))
        for arrival in brought.arrivals:
            self._tell(arrival)
        for sentence in brought.left_out:
            self.stdout.write(f"  left out: {sentence}.")

    def _heading(self, brought: ImportResult, file: str, dry_run: bool) -> str:
        if brought.kind != "bundle":
            return f"{'Would be created' if dry_run else 'Created'} from {file}:"
        return f"{'Would come' if dry_run else 'Came'} from {brought.installation}, written {brought.written_at:%Y-%m-%d %H:%M}:"

    def _tell(self, arrival: ImportPlan) -> None:
        where = f" {arrival.stored.get_absolute_url()}" if arrival.stored is not None else ""
        self.stdout.write(f"  {arrival.words}{where}")
