"""Settings from the environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.views.debug import SafeExceptionReporterFilter

from config import settings_reference
from config.environment import NOTICES_OUTAGES, Environment, database, read_dotenv
from config.services.lease import ROOT


def test_documentation_is_what_the_table_of_settings_generates() -> None:
    command = "run .venv/bin/python -m config.settings_reference"
    assert settings_reference.EXAMPLE.read_text() == settings_reference.env_example(), command
    assert settings_reference.GUIDE.read_text() == settings_reference.guide(), command
    assert settings_reference.guide_table() in settings_reference.guide()


def test_settings_that_the_documentation_names_exist() -> None:
    named = set(re.findall(r"\b(?:RANKWIRE_[A-Z_]+|DATABASE_URL|REDIS_URL)\b", settings_reference.GUIDE.read_text()))
    assert named == set(Environment.model_fields)


def test_every_setting_is_used() -> None:
    sources = [path.read_text() for path in (ROOT / "config").rglob("*.py") if path.name != "environment.py"]
    assert [name for name in Environment.model_fields if not any(f".{name}" in text for text in sources)] == []


def test_example_of_every_setting_is_accepted(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text(re.sub("^#(?=[A-Z_]+=)", "", settings_reference.env_example(), flags=re.MULTILINE))
    assert Environment.of(read_dotenv(file)).RANKWIRE_PREFIX == "/rankwire"


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"RANKWIRE_MAX_TRIALS": "many"}, "RANKWIRE_MAX_TRIALS must be a valid integer, not 'many'."),
        ({"RANKWIRE_MAX_TRIALS": "0"}, "RANKWIRE_MAX_TRIALS must be greater than or equal to 1, not '0'."),
        ({"RANKWIRE_DEBUG": "maybe"}, "RANKWIRE_DEBUG must be a valid boolean, not 'maybe'."),
        ({"RANKWIRE_LOG_FORMAT": "xml"}, "RANKWIRE_LOG_FORMAT must be 'console' or 'json', not 'xml'."),
        ({"RANKWIRE_TIME_ZONE": "Mars"}, "RANKWIRE_TIME_ZONE must be a time zone such as Europe/Vienna, not 'Mars'."),
        (
            {"RANKWIRE_WEBHOOK_NETWORKS": "10.1.0.1/16"},
            "RANKWIRE_WEBHOOK_NETWORKS must be networks such as 10.1.0.0/16, not '10.1.0.1/16'.",
        ),
        (
            {"RANKWIRE_PREFIX": "/lab/../x"},
            "RANKWIRE_PREFIX must be a path such as /rankwire, of letters, digits and . _ ~ -, not '/lab/../x'.",
        ),
        (
            {"RANKWIRE_SMTP_URL_FILE": "/nowhere/smtp"},
            "RANKWIRE_SMTP_URL_FILE names /nowhere/smtp, which cannot be read: No such file or directory.",
        ),
    ],
)
def test_environment_refuses_a_wrong_value(variables: dict[str, str], message: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"^{re.escape(message)}$"):
        Environment.of(variables)


@pytest.mark.parametrize("address", ["postgresql://a:b@c:x/d", "mysql://a/b"])
def test_database_refuses_another_address(address: str) -> None:
    with pytest.raises(
        ImproperlyConfigured, match=r"^DATABASE_URL must read postgresql://user:password@host:port/name\.$"
    ):
        database(address)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"RANKWIRE_MAX_TRIALS": "many"}, "RANKWIRE_MAX_TRIALS must be a valid integer, not 'many'."),
        (
            {"RANKWIRE_PREFIX": "api/"},
            "RANKWIRE_PREFIX must not be '/api': pages of Rankwire have URLs that begin so.",
        ),
        (
            {"DATABASE_URL": "postgresql://a:b@c/d", "RANKWIRE_DATABASE_PASSWORD": "e"},
            "RANKWIRE_DATABASE_PASSWORD is set, but the address has a password already.",
        ),
        ({"REDIS_URL": "localhost"}, "REDIS_URL must read redis://:password@host:port/number."),
    ],
)
def test_it_refuses_a_wrong_value_with_one_line(variables: dict[str, str], message: str, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "manage.py"), "check"]
    environment = {**os.environ, "RANKWIRE_VAR": str(tmp_path), **variables}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (1, f"rankwire: {message}\n")


def test_it_says_in_one_line_that_no_services_are_known(tmp_path: Path) -> None:
    environment = {**os.environ, "RANKWIRE_VAR": str(tmp_path)}
    for name in ("DATABASE_URL", "REDIS_URL"):
        environment.pop(name, None)
    command = [sys.executable, str(ROOT / "manage.py"), "migrate"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.startswith("rankwire: the database does not answer")
    assert result.stderr.count("\n") == 1


def test_it_reads_the_parts_of_a_database_address() -> None:
    entry = database("postgresql://user:p%40ss@db.example.org:5433/lab?sslmode=require")
    parts = [entry[name] for name in ("USER", "PASSWORD", "HOST", "PORT", "NAME", "OPTIONS")]
    assert parts == ["user", "p@ss", "db.example.org", "5433", "lab", {**NOTICES_OUTAGES, "sslmode": "require"}]
    assert database("postgresql://host/lab?connect_timeout=30")["OPTIONS"]["connect_timeout"] == "30"


def test_it_reads_a_dotenv_file_and_names_the_line_that_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("# comment\n\nA=1\nexport B = 'two words'\nC=x=y\n")
    assert read_dotenv(file) == {"A": "1", "B": "two words", "C": "x=y"}
    file.write_text("A=1\nnonsense\n")
    with pytest.raises(ImproperlyConfigured, match=r"\.env line 2 is not NAME=value"):
        read_dotenv(file)


def test_it_prefers_the_environment_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("RANKWIRE_TIME_ZONE=Europe/Vienna\nRANKWIRE_MAX_TRIALS=5\n")
    monkeypatch.setenv("RANKWIRE_TIME_ZONE", "Asia/Tokyo")
    environment = Environment.load(tmp_path / ".env")
    assert environment.RANKWIRE_TIME_ZONE == "Asia/Tokyo"
    assert environment.RANKWIRE_MAX_TRIALS == 5


def test_tls_sets_hsts_secure_cookies_and_webauthn_over_https(tmp_path: Path) -> None:
    names = ["SECURE_HSTS_SECONDS", "SECURE_SSL_REDIRECT", "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE"]
    names.append("MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN")
    code = f"from config import settings; print([getattr(settings, name, 0) for name in {names}])"
    environment = {**os.environ, "RANKWIRE_VAR": str(tmp_path), "RANKWIRE_BEHIND_TLS": "1"}
    command = [sys.executable, "-c", code]
    output = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[2592000, True, True, True, 0]"


def test_files_of_settings_are_known_but_not_those_of_libraries(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k" * 50)
    files = {"RANKWIRE_SECRET_KEY_FILE": str(tmp_path / "key"), "SSL_CERT_FILE": "/etc/ssl/cert.pem"}
    environment = {**os.environ, "RANKWIRE_VAR": str(tmp_path), **files}
    command = [sys.executable, "-c", "from config import settings; print(*settings.SETTING_FILES)"]
    output = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    assert output.strip() == str(tmp_path / "key")


@pytest.mark.parametrize(
    ("written", "prefix"),
    [("", ""), ("/", ""), ("lab", "/lab"), ("/lab/", "/lab"), ("/lab/rank.wire", "/lab/rank.wire")],
)
def test_a_path_is_taken_however_its_slashes_are_written(written: str, prefix: str) -> None:
    assert prefix == Environment.of({"RANKWIRE_PREFIX": written}).RANKWIRE_PREFIX


def test_a_setting_may_lie_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("of the file\n")
    variables = {"RANKWIRE_SECRET_KEY_FILE": str(tmp_path / "key")}
    assert Environment.of(variables).RANKWIRE_SECRET_KEY == "of the file"
    assert Environment.of({**variables, "RANKWIRE_SECRET_KEY": "itself"}).RANKWIRE_SECRET_KEY == "itself"
    assert Environment.of({**variables, "RANKWIRE_SECRET_KEY_FILE": ""}).RANKWIRE_SECRET_KEY == ""


def test_environment_shows_no_value() -> None:
    environment = Environment.of(
        {"RANKWIRE_SECRET_KEY": "never-shown", "REDIS_URL": "redis://:never-shown@host:6379/0"}
    )
    assert "never-shown" not in f"{environment!r} {environment}"
    assert "never-shown" not in str(SafeExceptionReporterFilter().cleanse_setting("ENVIRONMENT", environment))
