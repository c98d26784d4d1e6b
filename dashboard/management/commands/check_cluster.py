"""Check a cluster: try what trials need of it, and suggest a fix for each problem."""

from __future__ import annotations

import argparse
import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from experiments.models import Cluster, ClusterTest
from experiments.models.cluster_check import PROBLEM
from workers.cluster_check.run import run_requested
from workers.cluster_check.step import as_text


class Command(BaseCommand):
    """``manage.py check_cluster NAME``: exit status 1 if a step has a problem."""

    help = __doc__

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("name", help="slug or name of the cluster")
        parser.add_argument("--json", action="store_true", help="print the steps as JSON")

    def handle(self, *args: Any, name: str, json: bool, **options: Any) -> None:
        cluster = Cluster.objects.filter(slug=name).first() or Cluster.objects.filter(name=name).first()
        if cluster is None:
            slugs = ", ".join(Cluster.objects.order_by("slug").values_list("slug", flat=True))
            raise CommandError(f"there is no cluster {name!r}; known: {slugs or 'none'}", returncode=2)
        if not ClusterTest.ask(cluster):
            raise CommandError(f"a check of {cluster.slug} already waits or runs", returncode=2)
        if not run_requested(cluster):
            ClusterTest.cancel(cluster)
            raise CommandError(
                f"trials use the hosts of {cluster.slug}: try again later, or check it on its page, which waits for them",
                returncode=2,
            )
        test = ClusterTest.objects.get(cluster=cluster)
        self.stdout.write(_as_json(test) if json else "\n".join(as_text(step) for step in test.steps))
        if PROBLEM in test.counts:
            raise CommandError(
                f"{cluster.slug}: {test.counts[PROBLEM]} of {len(test.steps)} steps failed", returncode=1
            )


def _as_json(test: ClusterTest) -> str:
    return json.dumps({"cluster": test.cluster.slug, "counts": test.counts, "steps": test.steps}, indent=2)
