"""Migrate the database, create the user admin, load the library."""

from __future__ import annotations

import argparse
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from config.backup import places
from config.backup.errors import BackupError
from config.secrets import read_or_create_secret
from experiments.library import FIRST_STUDY, load_defaults
from experiments.models import Experiment
from experiments.specification import parse_yaml
from workers import queue

LOCK: Final = 0x52616E6B  # an arbitrary constant


class Command(BaseCommand):
    help = __doc__
    requires_system_checks = ()  # they import all pages, a second that each start would wait

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--no-demo", action="store_true", help="do not queue the demo experiment")

    def handle(self, *args: Any, no_demo: bool = False, **options: Any) -> None:
        try:
            places.heal()
        except BackupError as error:
            raise CommandError(str(error)) from None
        with connection.cursor() as cursor:
            # Of two concurrent starts the second one waits. The lock ends with the connection.
            cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
            try:
                call_command("migrate", verbosity=0, interactive=False)
                make_admin()
                call_command("load_library", stdout=self.stdout)
                if not no_demo and queue_demo():
                    self.stdout.write("the demo experiment is queued: a scaling study of about 2 minutes")
            finally:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])


def make_admin() -> None:
    """Create the user `admin` with a random password in the file `admin-password`."""
    users = get_user_model().objects
    if not users.filter(username="admin").exists():
        password = read_or_create_secret(settings.VAR / "admin-password", length_bytes=12)
        users.create_superuser("admin", password=password)


def queue_demo() -> bool:
    """Queue the demo if no user has an experiment; return True if it was queued."""
    if Experiment.objects.filter(published=False).exists():
        return False
    specification = parse_yaml(FIRST_STUDY.read_text(), max_trials=settings.MAX_TRIALS)
    admin = get_user_model().objects.filter(username="admin").first()
    queue.submit(specification, project=load_defaults(), owner=admin, slug=FIRST_STUDY.stem)
    return True
