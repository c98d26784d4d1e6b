"""Secrets of the containers: in .env or in files, never in the image."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest
import redis
import yaml

from config.environment import Environment, database, with_password
from config.services.lease import ROOT
from config.services.redis import find_server
from tests.config.containers import IN_FILES, OURS, SECRETS, needs_client, run_client, services
from tests.config.processes import wait_for


@needs_client
@pytest.mark.parametrize("name", SECRETS)
def test_it_says_which_secret_is_missing(name: str) -> None:
    result = run_client({key: value for key, value in SECRETS.items() if key != name})
    assert result.returncode != 0
    assert f"set {name} in .env" in result.stderr


@needs_client
def test_it_is_accepted_with_secrets_in_files_and_shows_none(tmp_path: Path) -> None:
    result = run_client({**SECRETS, "SECRETS": str(tmp_path), "SECRETS_FROM": IN_FILES})
    assert result.returncode == 0, result.stderr
    configured = yaml.safe_load(result.stdout)
    for service in configured["services"].values():
        assert not {"POSTGRES_PASSWORD", "REDISCLI_AUTH", *SECRETS} & set(service.get("environment", {}))
    assert {each["file"] for each in configured["secrets"].values()} == {
        str(tmp_path / name) for name in ("postgres-password", "redis-password", "secret-key")
    }


@pytest.mark.parametrize("name", OURS)
def test_its_passwords_may_hold_any_character(name: str) -> None:
    password = "a/b@c:d%2F#?"
    variables = {
        key: str(value).split("${", 1)[0] if str(value).startswith(("postgresql:", "redis:")) else password
        for key, value in services()[name]["environment"].items()
        if key in ("DATABASE_URL", "REDIS_URL", "RANKWIRE_DATABASE_PASSWORD", "RANKWIRE_REDIS_PASSWORD")
    }
    environment = Environment.of(variables)
    url = with_password(
        environment.DATABASE_URL,
        environment.RANKWIRE_DATABASE_PASSWORD,
        name="RANKWIRE_DATABASE_PASSWORD",
    )
    assert database(url)["PASSWORD"] == password
    assert (database(url)["USER"], database(url)["HOST"], database(url)["NAME"]) == ("rankwire", "postgres", "rankwire")
    url = with_password(environment.REDIS_URL, environment.RANKWIRE_REDIS_PASSWORD, name="")
    options = redis.connection.parse_url(url)
    assert (options["password"], options["host"], options["db"]) == (password, "redis", 0)


@pytest.mark.parametrize("name", OURS)
def test_its_secrets_may_lie_in_files(name: str, tmp_path: Path) -> None:
    service, variables = services(IN_FILES)[name], {}
    secrets = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["secrets"]
    for key, place in service["environment"].items():
        if key.endswith("_FILE") and key != "RANKWIRE_HEARTBEAT_FILE":
            file = tmp_path / Path(place).name
            assert Path(place) == Path("/run/secrets") / file.name
            assert file.name in service["secrets"]
            assert secrets[file.name]["file"].endswith(f"/{file.name}")
            file.write_text(f"of {file.name}\n")
            variables[key] = str(file)
    environment = Environment.of(variables)
    names = ("RANKWIRE_DATABASE_PASSWORD", "RANKWIRE_REDIS_PASSWORD", "RANKWIRE_SECRET_KEY")
    assert not set(names) & set(service["environment"])
    assert [getattr(environment, each) for each in names] == [
        "of postgres-password",
        "of redis-password",
        "of secret-key",
    ]


def test_redis_takes_its_password_from_a_file(tmp_path: Path) -> None:
    """Its command and check, with a directory of the test for /run/secrets."""
    redis_service = services(IN_FILES)["redis"]
    (tmp_path / "redis-password").write_text("a/b@c:d%2F#?\n")
    # Debian's redis-tools has the same program by another name, which it must not be called by.
    (tmp_path / "redis-server").symlink_to(find_server())
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def here(command: str) -> str:
        return command.replace("$$", "$").replace("/run/secrets", str(tmp_path))

    shell, option, command = redis_service["command"]
    server = subprocess.Popen(
        [shell, option, f"{here(command)} --port {port} --bind 127.0.0.1 --dir {tmp_path}"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        stdout=subprocess.DEVNULL,
    )
    check = here(redis_service["healthcheck"]["test"][1]).replace("redis-cli", f"redis-cli -p {port}")

    def is_healthy() -> bool:
        return subprocess.run(["sh", "-c", check], capture_output=True, text=True, check=False).stdout == "PONG\n"

    try:
        wait_for(is_healthy, timeout_s=30)
        with pytest.raises(redis.exceptions.AuthenticationError):
            redis.Redis(port=port).ping()
        assert redis.Redis(port=port, password="a/b@c:d%2F#?").ping()
    finally:
        server.kill()
        server.wait()


def test_redis_does_not_start_with_an_empty_password_file(tmp_path: Path) -> None:
    shell, option, command = services(IN_FILES)["redis"]["command"]
    (tmp_path / "redis-password").write_text("")
    (tmp_path / "redis-server").symlink_to("/bin/true")
    done = subprocess.run(
        [shell, option, command.replace("$$", "$").replace("/run/secrets", str(tmp_path))],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "redis-password is empty\n")


def test_no_secret_is_built_into_the_image() -> None:
    """The settings, which bootstrap loads, make a secret key below var."""
    text = (ROOT / "Dockerfile").read_text()
    last = text.partition("RUN script/bootstrap --no-packages --no-kernels")[2]
    assert "&& find var -mindepth 1 -maxdepth 1 ! -name cache -exec rm -rf {} +" in last.partition("USER")[0]
