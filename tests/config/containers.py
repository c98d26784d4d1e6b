"""docker-compose.yml with its extensions, and the client if it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from typing import Any

import pytest
import yaml

from config.services.lease import ROOT

SECRETS = {"POSTGRES_PASSWORD": "a", "REDIS_PASSWORD": "b", "RANKWIRE_SECRET_KEY": "c"}
IN_ENV, IN_FILES = "config/containers/secrets-in-env.yml", "config/containers/secrets-in-files.yml"
POSTGRES_OF_DEBIAN = {12: 15, 13: 17}
OURS = ("setup", "web", "worker", "background", "beat")


def compose_client() -> list[str] | None:
    """Return the command of Docker Compose, as a plugin or alone, or None."""
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
    ours = (*SECRETS, "SECRETS", "SECRETS_FROM")
    inherited = {name: value for name, value in os.environ.items() if name not in ours}
    command = [*client, "-f", str(ROOT / "docker-compose.yml"), "config"]
    return subprocess.run(command, env={**inherited, **environment}, capture_output=True, text=True, check=False)


@cache
def services(secrets: str = IN_ENV) -> dict[str, Any]:
    """Return the services of a file, merged with those that they extend."""
    composed = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    extended = yaml.safe_load((ROOT / secrets).read_text())["services"]
    return {name: merged(extended[service["extends"]["service"]], service) for name, service in composed.items()}


def merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    both = {name: merged(below[name], above[name]) for name in below.keys() & above.keys() if name != "secrets"}
    return {**below, **above, **both}


needs_client = pytest.mark.skipif(compose_client() is None, reason="Docker Compose is not installed")
