"""docker-compose.yml and the Dockerfile."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from compose_spec import PyCompose
from django.conf import settings

from config.services.lease import ROOT
from config.services.redis import Redis
from tests.config.containers import (
    IN_ENV,
    IN_FILES,
    OURS,
    POSTGRES_OF_DEBIAN,
    SECRETS,
    needs_client,
    run_client,
    services,
)
from tests.config.processes import wait_for


@pytest.mark.parametrize("secrets", [IN_ENV, IN_FILES])
def test_it_is_valid_by_the_compose_specification(secrets: str) -> None:
    whole = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    whole = {key: value for key, value in whole.items() if not key.startswith("x-")}
    text = yaml.safe_dump({**whole, "services": services(secrets)})
    with_defaults = re.sub(r"\$\{\w+:[-?]([^}]*)\}", r"\1", text)
    checked = PyCompose.from_yaml(with_defaults)
    checked.validate()
    assert set(checked.service_names()) == set(services())


@needs_client
def test_it_is_accepted_by_the_compose_client() -> None:
    result = run_client(SECRETS)
    assert result.returncode == 0, result.stderr
    assert set(yaml.safe_load(result.stdout)["services"]) == set(services())


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
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert events, "nothing but objects, no banner"
    assert not any("workers.tasks.sweep" in event for event in events), "what comes every five seconds"
    (tmp_path / "beat").touch()
    os.utime(tmp_path / "beat", (0, 0))
    assert not is_healthy()


def test_the_filter_of_system_calls_is_where_the_worker_looks_for_it() -> None:
    """A test-bed behind the filter tries the allowed calls (tests/workers/testbed)."""
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
            assert set(service["environment"]) <= set(type(settings.ENVIRONMENT).model_fields), name
            names = {key.removesuffix("_FILE") for key in services(IN_FILES)[name]["environment"]}
            assert names <= set(type(settings.ENVIRONMENT).model_fields) | {"RANKWIRE_HEARTBEAT"}, name


@pytest.mark.parametrize("name", OURS)
def test_every_setting_can_be_set_in_env(name: str) -> None:
    """Containers could not use a setting that is missing here."""
    not_wanted = {"RANKWIRE_VAR", "RANKWIRE_HEARTBEAT_FILE"}  # places inside of the container
    assert set(type(settings.ENVIRONMENT).model_fields) - set(services()[name]["environment"]) <= not_wanted


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


def test_one_service_builds_the_image_and_others_never_pull_it() -> None:
    ours = {name: service for name, service in services().items() if service["image"] == "rankwire"}
    assert set(ours) == set(OURS)
    assert {name: service["pull_policy"] for name, service in ours.items() if "build" in service} == {
        "setup": "missing"
    }
    others = {name: service for name, service in ours.items() if name != "setup"}
    assert {service["pull_policy"] for service in others.values()} == {"never"}
    assert all("setup" in service["depends_on"] for service in others.values())


def test_its_postgres_can_be_backed_up_by_the_programs_of_the_image() -> None:
    """A pg_dump reads servers up to its own version."""
    debian = re.search(r"^FROM debian:(\d+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert debian is not None
    assert services()["postgres"]["image"] == f"postgres:{POSTGRES_OF_DEBIAN[int(debian[1])]}"


def test_compiled_kernels_lie_in_the_volume() -> None:
    text = (ROOT / "Dockerfile").read_text()
    volume = text.partition("VOLUME ")[2].split()[0]
    assert f"XDG_CACHE_HOME={volume}/" in text
    assert all(
        f"var:{volume}" in service["volumes"] for service in services().values() if service["image"] == "rankwire"
    )
    made, rest = text.split("COPY . .")
    assert f"USER 1000\nRUN XDG_CACHE_HOME={volume}/cache .venv/bin/python -m analysis.warm_up" in made
    assert "COPY analysis analysis" in made
    assert "script/bootstrap --no-packages --no-kernels" in rest
    assert rest.index("! -name cache -exec rm -rf") < rest.index("VOLUME")


def test_a_change_of_the_pages_builds_no_library_of_c_again() -> None:
    """Their build is copied first, and imports no module of later steps."""
    before = (ROOT / "Dockerfile").read_text().partition("COPY . .")[0]
    copied = {line.split()[1] for line in before.splitlines() if line.startswith("COPY ")}
    program = before.partition(".venv/bin/python -c '")[2].partition("; library()")[0]
    assert program.startswith("from workers.profile.library import")
    loaded = f"import sys; {program}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, check=True)
    ours = {path.name for path in ROOT.iterdir() if (path / "__init__.py").is_file()}
    assert ours & set(done.stdout.split()) == ours & copied == {"analysis", "workers"}


@pytest.mark.parametrize("name", [*OURS, "redis"])
def test_it_gives_a_container_no_more_than_it_needs(name: str) -> None:
    service = services()[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    if name != "redis":
        assert service["tmpfs"] == ["/tmp"]  # noqa: S108


def test_every_container_has_limits() -> None:
    for name, service in services().items():
        assert service["pids_limit"] > 0, name
        assert service["mem_limit"], name
        assert "no-new-privileges:true" in service["security_opt"], name


def test_the_health_of_the_worker_is_seen_at_once_without_a_program_of_ours(tmp_path: Path, empty_redis: Redis) -> None:
    """A check by a Python process would disturb a running trial."""
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
        "RANKWIRE_LOG_FORMAT": "json",
        "RANKWIRE_HEARTBEAT_FILE": worker["environment"]["RANKWIRE_HEARTBEAT_FILE"].replace("/tmp", str(tmp_path)),  # noqa: S108
    }
    with (tmp_path / "log").open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *worker["command"]], cwd=ROOT, env=environment, stdout=output, stderr=output
        )
        try:
            wait_for(is_healthy, timeout_s=50)
            wait_for(lambda: "ready" in (tmp_path / "log").read_text(), timeout_s=50)
            process.terminate()
            process.wait(60)
        finally:
            process.kill()  # its pool ends with it
            process.wait()
    events = [json.loads(line)["event"] for line in (tmp_path / "log").read_text().splitlines()]
    assert "worker: Warm shutdown (MainProcess)" in events, "said in an object, too"
    os.utime(tmp_path / "worker", (0, 0))
    assert not is_healthy()
