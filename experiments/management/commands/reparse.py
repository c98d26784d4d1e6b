"""Parse stored outputs again after a parser was improved."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from analysis.numbers import plural
from experiments.reparse import candidates, reparse


class Command(BaseCommand):
    """``manage.py reparse EXPERIMENT`` or ``manage.py reparse --workload SLUG``."""

    help = __doc__

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("experiment", nargs="?", help="slug of one experiment")
        parser.add_argument("--workload", help="all experiments of this workload")

    def handle(self, *args: Any, experiment: str | None = None, workload: str | None = None, **options: Any) -> None:
        if (experiment is None) == (workload is None):
            raise CommandError("give an experiment or --workload", returncode=2)
        chosen = (
            candidates().filter(experiment__slug=experiment)
            if experiment
            else candidates().filter(experiment__workload=workload)
        )
        if not chosen.exists():
            raise CommandError(f"no trial with an output of {experiment or workload!r}", returncode=2)
        counts = reparse(chosen.select_related("experiment", "configuration").order_by("pk").iterator(chunk_size=100))
        self.stdout.write(
            f"{plural(counts.trials, 'trial')}: {counts.changed} changed, {counts.unchanged} unchanged,"
            f" {counts.finished} finished after all, {counts.without_output} without their output, {len(counts.refused)} refused"
        )
        for trial, sentence in counts.refused.items():
            self.stderr.write(f"trial {trial}: {sentence}")
