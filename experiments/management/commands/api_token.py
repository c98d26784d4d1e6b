"""Make an API token and print its key, once."""

from __future__ import annotations

import argparse
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from experiments.models import ApiToken


class Command(BaseCommand):
    """``manage.py api_token USER NAME``: the key is printed once and stored as a hash only."""

    help = __doc__

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("user", help="user name")
        parser.add_argument("name", help="what the token is for")

    def handle(self, *args: Any, user: str, name: str, **options: Any) -> None:
        owner = get_user_model().objects.filter(username=user, is_active=True).first()
        if owner is None:
            raise CommandError(f"there is no active user {user!r}")
        if not 0 < len(name) <= 80:
            raise CommandError("the name has 1 to 80 characters")
        _, key = ApiToken.issue(owner, name)
        self.stdout.write(key)
