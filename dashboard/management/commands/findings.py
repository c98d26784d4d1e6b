"""Print what an experiment shows: the answer to its question, causes and other findings, and what it cannot tell."""

from __future__ import annotations

import argparse
import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from analysis.conclusions import render
from experiments.models import Experiment
from experiments.selectors.diagnosis import diagnosis_of


class Command(BaseCommand):
    """``manage.py findings SLUG [--json]``."""

    help = __doc__

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("slug", help="the experiment's name in its address")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, slug: str, **options: Any) -> None:
        experiment = Experiment.objects.filter(slug=slug).select_related("cluster").first()
        if experiment is None:
            raise CommandError(f"there is no experiment {slug!r}", returncode=2)
        kept = diagnosis_of(experiment)
        report = kept.study.report
        if options["json"]:
            self.stdout.write(json.dumps(kept.findings(), indent=1))
            return
        for line in render(kept.answer, kept.facts, report.cannot_tell):
            self.stdout.write(line)
