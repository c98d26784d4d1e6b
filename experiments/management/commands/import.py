"""Import a bundle, a description or table, or a result file of another tool."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from experiments.errors import BadBundle, InvalidSpec
from experiments.exchange.import_plan import ImportPlan, ImportResult
from experiments.exchange.intake import import_file
from experiments.models import Project
from experiments.models.people.project import DEFAULT_PROJECT


class Command(BaseCommand):
    """``manage.py import FILE [--dry-run] [--project SLUG]``."""

    help = __doc__

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "file",
            help="a bundle (zip archive or directory), a description (.yaml), a table (.csv) with its description in the same "
            "directory, or a result file (.json) of ReFrame, Ramble, Benchpark or TALP",
        )
        parser.add_argument("--dry-run", action="store_true", help="report what would be created, and create nothing")
        parser.add_argument("--project", default=DEFAULT_PROJECT, help="target project (default: the default project)")

    def handle(self, *args: Any, file: str, dry_run: bool, project: str, **options: Any) -> None:
        target = Project.objects.filter(slug=project).first()
        if target is None:
            slugs = ", ".join(Project.objects.order_by("slug").values_list("slug", flat=True)) or "none"
            raise CommandError(f"there is no project {project!r}; known: {slugs}", returncode=2)
        try:
            result = import_file(Path(file), project=target, dry_run=dry_run)
        except InvalidSpec as error:
            raise CommandError("\n".join(f"{file}: {problem}" for problem in error.errors), returncode=2) from None
        except BadBundle as error:
            raise CommandError(f"{file}: {error}", returncode=2) from None
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror or error}.", returncode=2) from None
        self.stdout.write(self._heading(result, file, dry_run))
        for plan in result.arrivals:
            self._write(plan)
        for sentence in result.left_out:
            self.stdout.write(f"  left out: {sentence}.")

    def _heading(self, result: ImportResult, file: str, dry_run: bool) -> str:
        if result.kind != "bundle":
            return f"{'Would be created' if dry_run else 'Created'} from {file}:"
        return f"{'Would be imported' if dry_run else 'Imported'} from {result.installation}, written {result.written_at:%Y-%m-%d %H:%M}:"

    def _write(self, plan: ImportPlan) -> None:
        where = f" {plan.stored.get_absolute_url()}" if plan.stored is not None else ""
        self.stdout.write(f"  {plan.words}{where}")
