"""Create an API token and print its key once."""

from __future__ import annotations

import argparse
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from experiments.models import ApiToken, Project
from experiments.models.people.access import LONGEST_DAYS


class Command(BaseCommand):
    """``manage.py api_token USER NAME``: the key is stored as a hash only."""

    help = __doc__

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("user", help="user name")
        parser.add_argument("name", help="purpose of the token")
        parser.add_argument("--scope", choices=ApiToken.Scope.values, default="maintain", help="maximum rights")
        parser.add_argument("--project", default="", help="slug of the only project it gives access to")
        parser.add_argument("--days", type=int, help="validity in days (default: until it is revoked)")

    def handle(
        self, *args: Any, user: str, name: str, scope: str, project: str, days: int | None, **options: Any
    ) -> None:
        owner = get_user_model().objects.filter(username=user, is_active=True).first()
        if owner is None:
            raise CommandError(f"there is no active user {user!r}")
        if not 0 < len(name) <= 80:
            raise CommandError("the name has 1 to 80 characters")
        if days is not None and not 0 < days <= LONGEST_DAYS:
            raise CommandError(f"a token is valid for 1 to {LONGEST_DAYS} days")
        reached = Project.objects.filter(slug=project).first()
        if project and reached is None:
            raise CommandError(f"there is no project {project!r}")
        _, key = ApiToken.issue(owner, name, scope=scope, project=reached, days=days)
        self.stdout.write(key)
