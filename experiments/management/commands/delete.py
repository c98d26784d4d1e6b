"""``script/manage delete SLUG``: delete an experiment of any size, or restore it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from analysis.numbers import plural
from experiments import deletion
from experiments.errors import RepositoryError
from experiments.models import Deleted, Experiment


class Command(BaseCommand):
    """Delete an experiment, or restore it."""

    help = "Delete an experiment with all its results. It can be restored until it is removed permanently."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="slug, as in the URL of its page")
        parser.add_argument("--undo", action="store_true", help="restore it")

    def handle(self, *args: Any, slug: str, undo: bool, **options: Any) -> None:
        model = Deleted if undo else Experiment
        row = model._default_manager.filter(slug=slug).first()
        if row is None:
            raise CommandError(f"No {'deleted ' if undo else ''}experiment is called {slug!r}.")
        try:
            if isinstance(row, Deleted):
                experiment = deletion.restore_deleted(row)
                self.stdout.write(f"{experiment.slug} is restored, with {plural(experiment.trials.count(), 'trial')}.")
            else:
                deleted = deletion.delete(row, by=None)
                until = f" until {deleted.until:%Y-%m-%d %H:%M} UTC" if deleted.until else ""
                self.stdout.write(
                    f"{slug} is deleted, with {plural(len(deleted.trials), 'trial')}; --undo restores it{until}."
                )
        except RepositoryError as error:
            raise CommandError(str(error)) from None
