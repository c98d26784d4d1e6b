"""The migrations say what the models say."""

import pytest
from django.core.management import call_command


@pytest.mark.django_db
def test_it_needs_no_further_migration() -> None:
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)
