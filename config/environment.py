"""Settings from the environment: each is read, checked and named here, so that a test can demand its documentation."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.core.exceptions import ImproperlyConfigured

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off", ""}
NOTICES_OUTAGES = {
    "connect_timeout": "4",
    "keepalives_idle": "4",
    "keepalives_interval": "2",
    "keepalives_count": "2",
    "tcp_user_timeout": "8000",
}
"""Options of libpq: a server that has gone without a word is noticed within 8 s, where the system waits for minutes."""


class Environment:
    """Typed access to environment variables; a wrong value raises `ImproperlyConfigured` with one line.

    `names` collects every variable that was asked for.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self.names: set[str] = set()

    @classmethod
    def load(cls, dotenv: Path) -> Environment:
        """The process's environment over the file `.env`, where there is one."""
        return cls({**read_dotenv(dotenv), **os.environ})

    def text(self, name: str, default: str = "") -> str:
        """The value, or what the file holds that NAME_FILE names, as secrets of containers are handed over."""
        self.names.add(name)
        return self._variables.get(name, "").strip() or self._of_file(f"{name}_FILE") or default

    def _of_file(self, name: str) -> str:
        if not (path := self._variables.get(name, "").strip()):
            return ""
        try:
            return Path(path).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no text"
            raise ImproperlyConfigured(f"{name} names {path}, which cannot be read: {reason}.") from None

    def items(self, name: str, default: str = "") -> list[str]:
        """A comma-separated list."""
        return [item.strip() for item in self.text(name, default).split(",") if item.strip()]

    def integer(self, name: str, default: int, *, least: int = 0) -> int:
        raw = self.text(name, str(default))
        try:
            value = int(raw)
        except ValueError:
            raise ImproperlyConfigured(f"{name} must be a whole number, not {raw!r}.") from None
        if value < least:
            raise ImproperlyConfigured(f"{name} must be at least {least}, not {value}.")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        raw = self.text(name, "1" if default else "0").lower()
        if raw not in TRUE | FALSE:
            raise ImproperlyConfigured(f"{name} must be 1 or 0, not {raw!r}.")
        return raw in TRUE

    def time_zone(self, name: str, default: str) -> str:
        """A name of the time zone database."""
        raw = self.text(name, default)
        try:
            ZoneInfo(raw)
        except (ZoneInfoNotFoundError, ValueError):
            raise ImproperlyConfigured(f"{name} must be a time zone such as Europe/Vienna, not {raw!r}.") from None
        return raw

    def prefix(self, name: str) -> str:
        """The path of an address below which everything lies, as ``/lab`` or ``/lab/rankwire``; "" for none."""
        raw = self.text(name)
        segments = raw.strip("/").split("/")
        if any(not re.fullmatch(r"[A-Za-z0-9_~-][A-Za-z0-9._~-]*", segment) for segment in segments if raw.strip("/")):
            raise ImproperlyConfigured(
                f"{name} must be a path such as /rankwire, of letters, digits and . _ ~ -, not {raw!r}."
            )
        return f"/{'/'.join(segments)}" if raw.strip("/") else ""

    def address(self, name: str, default: str) -> str:
        """An address of http or https, without a path: `prefix` gives that."""
        raw = self.text(name, default)
        parts = urlsplit(raw)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
            raise ImproperlyConfigured(f"{name} must be an address such as https://lab.example.org, not {raw!r}.")
        return raw

    def networks(self, name: str) -> list[IPv4Network | IPv6Network]:
        """A comma-separated list of networks, as 10.0.0.0/8 or fd00::/8; a single address is one too."""
        try:
            return [ip_network(item) for item in self.items(name)]
        except ValueError as error:
            raise ImproperlyConfigured(f"{name} must be networks such as 10.1.0.0/16: {error}.") from None

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """One of `choices`; the first is the default."""
        raw = self.text(name, choices[0])
        if raw not in choices:
            raise ImproperlyConfigured(f"{name} must be one of {', '.join(choices)}, not {raw!r}.")
        return raw


def read_dotenv(path: Path) -> dict[str, str]:
    """`NAME=value` lines; blank lines and lines that begin with # are skipped, one pair of quotes is taken off."""
    values: dict[str, str] = {}
    if not path.is_file():
        return values
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if not equals or not name.strip().isidentifier():
            raise ImproperlyConfigured(f"{path.name} line {number} is not NAME=value.")
        value = value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        values[name.strip()] = value
    return values


def with_password(url: str, password: str, *, name: str) -> str:
    """`url` with a password that may hold any character; `name` is that of the setting that gives the password."""
    if not password:
        return url
    parts = urlsplit(url)
    if not parts.netloc:
        raise ImproperlyConfigured(f"{name} is set, but not the address that it belongs to.")
    user, _at, host = parts.netloc.rpartition("@")
    if ":" in user:
        raise ImproperlyConfigured(f"{name} is set, but the address holds a password already.")
    return parts._replace(netloc=f"{user}:{quote(password, safe='')}@{host}").geturl()


def database(url: str) -> dict[str, Any]:
    """Django's DATABASES entry of `postgresql://user:password@host:port/name?option=value`.

    Only PostgreSQL: the claim of a trial and the lease of hosts rely on its locking (docs/architecture.md).
    """
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("postgresql", "postgres") or not parts.path.strip("/") or port == -1:
        raise ImproperlyConfigured("DATABASE_URL must read postgresql://user:password@host:port/name.")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.strip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(port or ""),
        "OPTIONS": {**NOTICES_OUTAGES, **dict(parse_qsl(parts.query))},
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
    }


def redis_address(url: str) -> str:
    """`url`, checked to be an address of Redis."""
    if urlsplit(url).scheme not in ("redis", "rediss", "unix"):
        raise ImproperlyConfigured("REDIS_URL must read redis://:password@host:port/number.")
    return url
