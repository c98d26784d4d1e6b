"""docker-compose.yml and the Dockerfile."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from importlib import import_module
from typing import Any

import pytest
import yaml
from django.conf import settings

from config.services.lease import ROOT

SECRETS = {"POSTGRES_PASSWORD": "a", "REDIS_PASSWORD": "b", "RANKWIRE_SECRET_KEY": "c"}


def compose_client() -> list[str] | None:
    """The command of Docker Compose where it is installed, as a plugin or alone."""
    plugin = ["docker", "compose"]
    if (
        shutil.which("docker")
        and subprocess.run([*plugin, "version"], capture_output=True, check=False).returncode == 0
    ):
        return plugin
    return ["docker-compose"] if shutil.which("docker-compose") else None


def run_client(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    client = compose_client()
    assert client
    inherited = {name: value for name, value in os.environ.items() if name not in SECRETS}
    command = [*client, "-f", str(ROOT / "docker-compose.yml"), "config"]
    return subprocess.run(command, env={**inherited, **environment}, capture_output=True, text=True, check=False)


needs_client = pytest.mark.skipif(compose_client() is None, reason="Docker Compose is not installed")


@needs_client
def test_it_is_accepted_by_the_compose_client() -> None:
    result = run_client(SECRETS)
    assert result.returncode == 0, result.stderr
    assert set(yaml.safe_load(result.stdout)["services"]) == {"setup", "web", "worker", "beat", "postgres", "redis"}


@needs_client
@pytest.mark.parametrize("name", SECRETS)
def test_it_says_which_secret_is_missing(name: str) -> None:
    result = run_client({key: value for key, value in SECRETS.items() if key != name})
    assert result.returncode != 0
    assert f"set {name} in .env" in result.stderr


@cache
def services() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", ["web", "worker", "beat", "postgres", "redis"])
def test_it_watches_the_health_of_every_lasting_service(name: str) -> None:
    assert services()[name]["healthcheck"]["test"]


def test_it_sets_only_settings_that_exist() -> None:
    for name, service in services().items():
        if service.get("image") == "rankwire":
            assert set(service["environment"]) <= settings.ENVIRONMENT.names, name


def test_it_runs_our_programs_as_an_ordinary_user() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users
    assert users[-1] != "root"
    assert lines.index(f"USER {users[-1]}") < next(n for n, line in enumerate(lines) if line.startswith("CMD "))


def test_it_starts_the_web_server_with_a_configuration_that_exists() -> None:
    command = next(line for line in (ROOT / "Dockerfile").read_text().splitlines() if line.startswith("CMD "))
    assert "python:config.gunicorn" in command
    assert import_module("config.gunicorn").workers == settings.WEB_PROCESSES
