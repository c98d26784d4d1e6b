"""Load the default project, this machine's clusters and published results."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from experiments.library import load_defaults, load_published


class Command(BaseCommand):
    """``manage.py load_library``: idempotent."""

    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        load_defaults()
        loaded = load_published()
        if loaded:
            self.stdout.write(f"published results loaded: {loaded}")
