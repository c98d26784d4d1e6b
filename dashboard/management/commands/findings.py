"""Print the answer of an experiment, its causes, findings and limitations."""

from __future__ import annotations

import argparse
import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from analysis.conclusions import render
from experiments.models import Experiment
from experiments.selectors.diagnosis import diagnosis_of


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("slug", help="slug of the experiment")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, slug: str, **options: Any) -> None:
        experiment = Experiment.objects.filter(slug=slug).select_related("cluster").first()
        if experiment is None:
            raise CommandError(f"there is no experiment {slug!r}", returncode=2)
        diagnosis = diagnosis_of(experiment)
        if options["json"]:
            self.stdout.write(json.dumps(diagnosis.findings(), indent=1))
            return
        for line in render(diagnosis.answer, diagnosis.facts, diagnosis.study.report.cannot_tell):
            self.stdout.write(line)
