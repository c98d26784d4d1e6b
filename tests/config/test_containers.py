"""docker-compose.yml and the Dockerfile."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml
from django.conf import settings

from config.environment import Environment, database, with_password
from config.services.lease import ROOT
from config.services.redis import Redis
from tests.config.processes import wait_for

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
    assert set(yaml.safe_load(result.stdout)["services"]) == set(services())


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


def test_it_sees_that_the_beat_beats(tmp_path: Path, empty_redis: Redis) -> None:
    """The service's own command and check, with a directory of the test for /tmp."""
    beat = services()["beat"]
    check = beat["healthcheck"]["test"][1].replace("/tmp/", f"{tmp_path}/").replace("$$", "$")  # noqa: S108
    command = [word.replace("/tmp/", f"{tmp_path}/") for word in beat["command"]]  # noqa: S108

    def is_healthy() -> bool:
        return subprocess.run(["sh", "-c", check], capture_output=True, check=False).returncode == 0

    assert not is_healthy()
    addresses = {"REDIS_URL": empty_redis.url, "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/not-asked"}
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "RANKWIRE_LOG_FORMAT": "json",
        **addresses,
    }
    log = tmp_path / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=ROOT, env=environment, stdout=output, stderr=output
        )
        try:
            wait_for(is_healthy, timeout_s=90)
        finally:
            process.terminate()
            process.wait()
    assert [json.loads(line) for line in log.read_text().splitlines()], "nothing but objects, no banner"
    (tmp_path / "beat").touch()
    os.utime(tmp_path / "beat", (0, 0))
    assert not is_healthy()


def test_the_filter_of_system_calls_is_where_the_worker_looks_for_it() -> None:
    """What it lets through is tried by a test-bed that runs behind it (tests/workers/testbed)."""
    (path,) = [
        option.partition("=")[2] for option in services()["worker"]["security_opt"] if option.startswith("seccomp=")
    ]
    profile = json.loads((ROOT / path).read_text())
    assert profile["defaultAction"] == "SCMP_ACT_ALLOW"
    refused = [name for rule in profile["syscalls"] for name in rule["names"]]
    assert len(refused) == len(set(refused))
    assert {rule["action"] for rule in profile["syscalls"]} == {"SCMP_ACT_ERRNO"}


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


@pytest.mark.parametrize("name", ["setup", "web", "worker", "background", "beat"])
def test_its_passwords_may_hold_any_character(name: str) -> None:
    password = "a/b@c:d%2F#?"
    variables = {
        key: str(value).split("${", 1)[0] if str(value).startswith(("postgresql:", "redis:")) else password
        for key, value in services()[name]["environment"].items()
        if key in ("DATABASE_URL", "REDIS_URL", "RANKWIRE_DATABASE_PASSWORD", "RANKWIRE_REDIS_PASSWORD")
    }
    environment = Environment(variables)
    url = with_password(
        environment.text("DATABASE_URL"),
        environment.text("RANKWIRE_DATABASE_PASSWORD"),
        name="RANKWIRE_DATABASE_PASSWORD",
    )
    assert database(url)["PASSWORD"] == password
    assert (database(url)["USER"], database(url)["HOST"], database(url)["NAME"]) == ("rankwire", "postgres", "rankwire")
    url = with_password(environment.text("REDIS_URL"), environment.text("RANKWIRE_REDIS_PASSWORD"), name="")
    options = redis.connection.parse_url(url)
    assert (options["password"], options["host"], options["db"]) == (password, "redis", 0)


def test_no_secret_is_built_into_the_image() -> None:
    """The settings, which bootstrap loads, make a secret key below var."""
    text = (ROOT / "Dockerfile").read_text()
    last = text.rpartition("RUN script/bootstrap")[2]
    assert "&& rm -rf var \\" in last.partition("USER")[0]


def test_compiled_kernels_lie_in_the_volume() -> None:
    text = (ROOT / "Dockerfile").read_text()
    volume = text.partition("VOLUME ")[2].split()[0]
    assert f"XDG_CACHE_HOME={volume}/" in text
    assert all(
        f"var:{volume}" in service["volumes"] for service in services().values() if service["image"] == "rankwire"
    )


def test_the_worker_hands_its_trial_back_before_its_container_is_killed() -> None:
    worker = services()["worker"]
    assert worker["stop_grace_period"] == "1m"
    assert int(worker["environment"]["RANKWIRE_STOP_SECONDS"]) <= 45


@pytest.mark.parametrize("name", ["setup", "web", "worker", "background", "beat", "redis"])
def test_it_gives_a_container_no_more_than_it_needs(name: str) -> None:
    service = services()[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    if name != "redis":
        assert service["tmpfs"] == ["/tmp"]  # noqa: S108
        assert service["pids_limit"] > 0
        assert service["mem_limit"]


def test_the_health_of_the_worker_is_seen_at_once_without_a_program_of_ours(tmp_path: Path, empty_redis: Redis) -> None:
    """Asking it with a Python would be felt by the trial that is being measured."""
    worker = services()["worker"]
    check = worker["healthcheck"]["test"][1].replace("/tmp/", f"{tmp_path}/").replace("$$", "$")  # noqa: S108
    assert check.startswith("test -n ")
    assert worker["healthcheck"]["interval"] == "10s"

    def is_healthy() -> bool:
        return subprocess.run(["sh", "-c", check], capture_output=True, check=False).returncode == 0

    assert not is_healthy()
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "REDIS_URL": empty_redis.url,
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/not-asked",
        "RANKWIRE_HEARTBEAT_FILE": worker["environment"]["RANKWIRE_HEARTBEAT_FILE"].replace("/tmp", str(tmp_path)),  # noqa: S108
    }
    with (tmp_path / "log").open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *worker["command"]], cwd=ROOT, env=environment, stdout=output, stderr=output
        )
        try:
            wait_for(is_healthy, timeout_s=50)
        finally:
            process.kill()  # its pool ends with it
            process.wait()
    os.utime(tmp_path / "worker", (0, 0))
    assert not is_healthy()
