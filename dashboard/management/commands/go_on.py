"""Start the trials of an experiment that are held because its first one failed."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from analysis.numbers import plural
from experiments.models import Experiment, Hold
from workers import queue


class Command(BaseCommand):
    """``manage.py go_on EXPERIMENT``: they run as soon as a worker does, whatever further ones do."""

    help = __doc__

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("experiment", help="slug of a held experiment")

    def handle(self, *args: Any, experiment: str, **options: Any) -> None:
        held = Experiment.objects.filter(slug=experiment, hold=Hold.HELD).first()
        if held is None:
            raise CommandError(f"there is no held experiment {experiment!r}", returncode=2)
        self.stdout.write(f"{plural(queue.go_on(held), 'trial')} queued")
