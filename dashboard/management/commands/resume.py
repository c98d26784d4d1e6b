"""Resume an experiment on hold: queue its trials."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from analysis.numbers import plural
from experiments.models import Experiment, Hold
from workers import queue


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("experiment", help="slug of an experiment on hold")

    def handle(self, *args: Any, experiment: str, **options: Any) -> None:
        on_hold = Experiment.objects.filter(slug=experiment, hold=Hold.HELD).first()
        if on_hold is None:
            raise CommandError(f"no experiment {experiment!r} is on hold", returncode=2)
        self.stdout.write(f"{plural(queue.resume(on_hold), 'trial')} queued")
