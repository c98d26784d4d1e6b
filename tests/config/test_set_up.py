"""manage.py set_up: effects of the first start, none of later ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command

from config.services.lease import ROOT
from experiments.models import Experiment, State

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_password_of_another_test() -> None:
    (settings.VAR / "admin-password").unlink(missing_ok=True)


def test_it_makes_the_admin_once_and_leaves_a_changed_password_alone() -> None:
    call_command("set_up", "--no-demo")
    admin = get_user_model().objects.get(username="admin")
    assert admin.is_superuser
    assert admin.check_password((settings.VAR / "admin-password").read_text().strip())
    admin.set_password("of my own")
    admin.save()
    call_command("set_up", "--no-demo")
    admin.refresh_from_db()
    assert admin.check_password("of my own")


def test_it_loads_the_published_results_once() -> None:
    call_command("set_up", "--no-demo")
    first = set(Experiment.objects.filter(published=True).values_list("pk", flat=True))
    call_command("set_up", "--no-demo")
    assert first
    assert set(Experiment.objects.filter(published=True).values_list("pk", flat=True)) == first


def test_it_queues_the_demo_on_the_first_start_only() -> None:
    call_command("set_up", "--no-demo")
    assert not Experiment.objects.filter(published=False).exists()
    call_command("set_up")
    [demo] = Experiment.objects.filter(published=False)
    assert {trial.state for trial in demo.trials.all()} == {State.QUEUED}
    assert len({trial.configuration.hosts for trial in demo.trials.all()}) >= 3
    call_command("set_up")
    assert Experiment.objects.filter(published=False).count() == 1


def test_every_module_loads_where_no_database_answers(tmp_path: Path) -> None:
    """As before an installation's tables are there, or have today's columns."""
    nowhere = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none", "REDIS_URL": "redis://127.0.0.1:1/0"}
    command = [sys.executable, str(ROOT / "manage.py"), "check"]
    environment = {**os.environ, **nowhere, "RANKWIRE_VAR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "config.settings"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stderr
