"""Bring the database up to date, make the first user, load the library."""

from __future__ import annotations

import argparse
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from config.backup import places
from config.backup.errors import KeepingError
from config.secrets import read_or_create_secret
from experiments.library import LIBRARY, load_defaults
from experiments.models import Experiment
from experiments.specification import parse_yaml
from workers import queue

DEMO: Final = LIBRARY / "water-quick.yaml"
LOCK: Final = 0x52616E6B  # any number that is always the same


class Command(BaseCommand):
    """``manage.py set_up [--no-demo]``: run at every start; does nothing when there is nothing to do."""

    help = __doc__

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--no-demo", action="store_true", help="do not queue the demo experiment")

    def handle(self, *args: Any, no_demo: bool = False, **options: Any) -> None:
        try:
            places.heal()
        except KeepingError as error:
            raise CommandError(str(error)) from None
        with connection.cursor() as cursor:
            # Two starters at once: the second waits, then finds everything done. Released with the connection.
            cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
            try:
                call_command("migrate", verbosity=0, interactive=False)
                make_admin()
                call_command("load_library", stdout=self.stdout)
                if not no_demo and queue_demo():
                    self.stdout.write(
                        "the demo experiment is queued: a real scaling study, finished in about two minutes"
                    )
            finally:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])


def make_admin() -> None:
    """The user `admin` with a random password, kept in `admin-password`; an existing one is left alone."""
    users = get_user_model().objects
    if not users.filter(username="admin").exists():
        password = read_or_create_secret(settings.VAR / "admin-password", length_bytes=12)
        users.create_superuser("admin", password=password)


def queue_demo() -> bool:
    """Queue the demo in a repository that has no experiment of its own yet; return whether it did."""
    if Experiment.objects.filter(published=False).exists():
        return False
    specification = parse_yaml(DEMO.read_text(), max_trials=settings.MAX_TRIALS)
    admin = get_user_model().objects.filter(username="admin").first()
    queue.submit(specification, project=load_defaults(), owner=admin, slug=DEMO.stem)
    return True
