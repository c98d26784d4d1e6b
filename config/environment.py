"""Settings from the environment: a table of variables, validated by pydantic.

`config.settings_reference` generates the documentation from it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.core.exceptions import ImproperlyConfigured
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

NOTICES_OUTAGES = {
    "connect_timeout": "4",
    "keepalives_idle": "4",
    "keepalives_interval": "2",
    "keepalives_count": "2",
    "tcp_user_timeout": "8000",
}
"""Options of libpq that detect an unreachable server within 8 s instead of minutes."""


def _items(text: Any) -> Any:
    return [item.strip() for item in text.split(",") if item.strip()] if isinstance(text, str) else text


def _networks(text: Any) -> Any:
    try:
        return [ip_network(item) for item in _items(text)]
    except ValueError:
        raise ValueError("must be networks such as 10.1.0.0/16") from None


def _time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise ValueError("must be a time zone such as Europe/Vienna") from None
    return name


def _prefix(text: str) -> str:
    segments = text.strip("/").split("/") if text.strip("/") else []
    if not all(re.fullmatch(r"[A-Za-z0-9_~-][A-Za-z0-9._~-]*", segment) for segment in segments):
        raise ValueError("must be a path such as /rankwire, of letters, digits and . _ ~ -")
    return "".join(f"/{segment}" for segment in segments)


def _address(url: str) -> str:
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query):
        raise ValueError("must be an address such as https://lab.example.org")
    return url


Items = Annotated[list[str], BeforeValidator(_items)]
Networks = Annotated[list[IPv4Network | IPv6Network], BeforeValidator(_networks)]
TimeZone = Annotated[str, AfterValidator(_time_zone)]
Prefix = Annotated[str, AfterValidator(_prefix)]
Address = Annotated[str, AfterValidator(_address)]


def setting(default: Any, meaning: str, *, default_text: str = "", example: str = "", **limits: Any) -> Any:
    """Describe a variable; ``default_text`` is its default in words."""
    return Field(
        default, description=meaning, json_schema_extra={"default_text": default_text, "example": example}, **limits
    )


class Environment(BaseModel):
    """All environment variables with type, default, limits and meaning."""

    model_config = ConfigDict(frozen=True)

    def __repr__(self) -> str:
        """Hide values: Django's debug page shows settings, and some are secrets."""
        return f"{type(self).__name__}()"

    __str__ = __repr__

    # Services
    DATABASE_URL: str = setting(
        "",
        "`postgresql://user:password@host:port/name`, PostgreSQL 14 or newer; options after `?` are libpq's (`sslmode=require`)",
        default_text="embedded",
        example="postgresql://rankwire:secret@db.example.org:5432/rankwire",
    )
    REDIS_URL: str = setting(
        "",
        "`redis://:password@host:port/number`, `rediss://` for TLS. Carries messages and short-lived values, no results",
        default_text="embedded",
        example="redis://:secret@redis.example.org:6379/0",
    )
    RANKWIRE_DATABASE_PASSWORD: str = setting(
        "", "Password of `DATABASE_URL`, if it is not part of the URL: it may contain any character"
    )
    RANKWIRE_REDIS_PASSWORD: str = setting("", "Password of `REDIS_URL`, if it is not part of the URL")
    # Storage
    RANKWIRE_VAR: str = setting("var", "Directory of everything that is written, relative to the clone")
    RANKWIRE_DISK_RESERVE_MIB: int = setting(
        256,
        "MiB of the disk of `RANKWIRE_VAR` that stay free for the database. Trials wait while less is free than this and three times what"
        " the last trials of the experiment stored",
        ge=0,
    )
    RANKWIRE_STORE_BUCKET: str = setting(
        "",
        "Bucket for the files of trials ([files in a bucket](../how-to/use-a-bucket.md)); without it they are in `RANKWIRE_VAR`",
        example="rankwire",
    )
    RANKWIRE_STORE_ENDPOINT: Address = setting(
        "", "Address of the server that speaks S3", default_text="Amazon's", example="https://s3.example.org"
    )
    RANKWIRE_STORE_REGION: str = setting("", "Region of the bucket")
    RANKWIRE_STORE_PREFIX: str = setting("", "Path in the bucket below which the files are stored")
    RANKWIRE_STORE_KEY: str = setting("", "Access key; without it boto3 searches the machine's credentials")
    RANKWIRE_STORE_SECRET: str = setting("", "Secret of the access key")
    RANKWIRE_STORE_CACHE_MIB: int = setting(
        2048,
        "MiB of the bucket that a machine keeps below `RANKWIRE_VAR/store-cache`; also the longest file to inspect",
        ge=1,
    )
    RANKWIRE_STORE_PATIENCE_SECONDS: int = setting(
        600, "Seconds that a worker waits for a bucket that does not answer before its trial fails", ge=0
    )
    RANKWIRE_CAPTURE_RETENTION_DAYS: int = setting(
        0, "Days after which the capture of a trial is deleted; measurements stay. 0: never", ge=0
    )
    RANKWIRE_EVENT_DAYS: int = setting(
        90,
        "Days for which events (the feed on Home, `events/` of REST) and the results of sent messages are kept. 0: forever",
        ge=0,
    )
    RANKWIRE_DELETED_DAYS: int = setting(
        7,
        "Days for which deleted experiments can be restored; then the files of their trials are deleted too. 0: forever",
        ge=0,
    )
    RANKWIRE_EXPORT_DAYS: int = setting(
        3, "Days for which a file that was made in the background can be downloaded", ge=1
    )
    # Limits
    RANKWIRE_MAX_TRIALS: int = setting(10_000, "Trials of one experiment", ge=1)
    RANKWIRE_MAX_TRIAL_HOURS: int = setting(24, "Hours that the time limit of one trial may be", ge=1)
    RANKWIRE_QUOTA_QUEUED_TRIALS: int = setting(
        20_000,
        "Queued trials of a project; 0: no limit, as for the next three. The administrator can give projects other quotas",
        ge=0,
    )
    RANKWIRE_QUOTA_MACHINE_HOURS: int = setting(
        10_000,
        "Machine-hours of a project in 30 days; then its trials wait. All hosts of the test-bed are one machine",
        ge=0,
    )
    RANKWIRE_QUOTA_DISK_GIB: int = setting(
        500, "GiB of files of a project, with its trash; then it queues no more trials", ge=0
    )
    RANKWIRE_QUOTA_CAPTURE_GIB: int = setting(
        250, "GiB of captures among them; then it queues no more trials with a capture", ge=0
    )
    RANKWIRE_OUTPUT_LIMIT_MIB: int = setting(
        16, "MiB that are kept and parsed of a trial's output; of more, the beginning and the end", ge=1
    )
    RANKWIRE_COUNTER_TREES: str = setting(
        "",
        "Directory with trees of /sys and /proc by host (`n1/sys/class/powercap` ...), read instead of the machine's own by trials on"
        " its virtual hosts: for demonstrations and tests of counters",
    )
    RANKWIRE_FOREIGN_CPU_PERCENT: int = setting(
        10,
        "Per cent of the cores of its ranks that other programs may use, while none is free, before the trial counts as degraded."
        " 100: never",
        ge=0,
    )
    RANKWIRE_TRIAL_PROCESSES: int = setting(4096, "Processes and threads of a trial on this machine at once", ge=64)
    RANKWIRE_TRIAL_MEMORY_MIB: int = setting(
        0,
        "MiB of memory of a trial on this machine, and of each of its programs. 0: nine tenths of the machine's",
        ge=0,
    )
    RANKWIRE_TRIAL_DISK_MIB: int = setting(
        16 << 10,
        "MiB that a trial may write in its directory, and that its kept files may have together; at most half of the free disk."
        " `/tmp` of a trial is memory, 1 GiB",
        ge=1,
    )
    RANKWIRE_TRIAL_FILES: int = setting(
        100_000,
        "Files and directories that a trial may make in its directory, and in each of its temporary ones",
        ge=1000,
    )
    RANKWIRE_TRIAL_UID: int = setting(
        65530, "User ID of the programs of trials if root runs the workers; no other program may have it", ge=1
    )
    RANKWIRE_REQUEST_CPU_SECONDS: int = setting(
        15,
        "CPU seconds after which a request for a specification, its trials or a table is ended (503). 0: never",
        ge=0,
    )
    RANKWIRE_DIRECT_EXPORT_ROWS: int = setting(5000, "Exported tables with more rows are made in the background", ge=0)
    RANKWIRE_IMPORT_LIMIT_MIB: int = setting(
        256, "MiB of a bundle that is sent to a page or REST; import larger ones with `script/manage import`", ge=1
    )
    # Processes
    RANKWIRE_WEB_PROCESSES: int = setting(
        2, "Web processes, each with six threads for pages and an event loop for up to 1000 connections", ge=1
    )
    RANKWIRE_WORKER_PROCESSES: int = setting(4, "Celery processes: clusters that can be busy at once, plus one", ge=2)
    RANKWIRE_STOP_SECONDS: int = setting(
        2,
        "Seconds that a stopping worker (SIGTERM) lets a running trial continue; then the trial waits again and loses no attempt",
        ge=0,
    )
    RANKWIRE_HEARTBEAT_FILE: str = setting(
        "", "File that the worker touches every two seconds: a health check reads its age and starts no program"
    )
    RANKWIRE_PATH: str = setting(
        "",
        "Directories in which workers search the programs of trials and their own tools. Set it if several workers run, so that all use the"
        " same binary. Every trial keeps the PATH that it had",
        default_text="the worker's PATH",
    )
    RANKWIRE_WORKLOADS: str = setting(
        "", "Directory whose Python files define workloads ([programs](programs.md)); loaded when a process starts"
    )
    # Access
    RANKWIRE_ALLOWED_HOSTS: Items = setting(
        [],
        "Host names, besides `localhost`, under which browsers may reach it. `script/server --host` with another address than loopback"
        " adds this machine's names and addresses",
        example="rankwire.example.org",
    )
    RANKWIRE_TRUSTED_ORIGINS: Items = setting(
        [], "Origins with scheme, for a proxy that changes the host name", example="https://rankwire.example.org"
    )
    RANKWIRE_BEHIND_TLS: bool = setting(
        False, "1 behind a proxy that ends TLS and sets `X-Forwarded-Proto`: secure cookies, redirect to https, HSTS"
    )
    RANKWIRE_FORWARDED_FOR: bool = setting(
        False,
        "1 behind a proxy that adds the client's address to `X-Forwarded-For`: limits count by it instead of the proxy's",
    )
    RANKWIRE_PREFIX: Prefix = setting(
        "",
        "Path of the site below which all pages are; see [Behind a proxy](../how-to/run-behind-a-proxy.md)",
        example="/rankwire",
    )
    RANKWIRE_SECRET_KEY: str = setting(
        "",
        "Signs sessions and cached values; the same for all processes of an installation",
        default_text="`secret-key` in `RANKWIRE_VAR`",
    )
    RANKWIRE_ADDRESS: Address = setting(
        "http://127.0.0.1:8000",
        "Address without a path, with which links in mails, webhooks and exports begin; see [Notices](../how-to/get-notified.md)",
        default_text="address of `script/server`",
    )
    RANKWIRE_NAME: str = setting(
        "",
        "Name of this installation in bundles, and on pages of experiments imported from it",
        default_text="the host name",
    )
    # Accounts
    RANKWIRE_SIGN_UP: bool = setting(False, "1 lets every visitor create an account")
    RANKWIRE_SMTP_URL: str = setting(
        "",
        "Server for outgoing mail: `smtp://user:password@host:port`, `smtps` with TLS from the start, `smtp+tls` with STARTTLS."
        " Without it none is sent",
        example="smtp+tls://rankwire:secret@mail.example.org",
    )
    RANKWIRE_MAIL_FROM: str = setting("", "Sender of that mail", example="rankwire@example.org")
    RANKWIRE_WEBHOOK_NETWORKS: Networks = setting(
        [],
        "Networks that webhooks may reach although they are not public, separated by commas",
        example="10.1.0.0/16",
    )
    RANKWIRE_OIDC_SERVER: str = setting(
        "",
        "Address of an OpenID Connect provider; see [manage accounts](../how-to/manage-accounts.md)",
        example="https://login.example.org/realms/lab",
    )
    RANKWIRE_OIDC_CLIENT_ID: str = setting("", "Client ID of this installation at the provider", example="rankwire")
    RANKWIRE_OIDC_SECRET: str = setting("", "Client secret")
    RANKWIRE_OIDC_NAME: str = setting("single sign-on", "Name of the provider on the sign-in page")
    RANKWIRE_OIDC_SCOPES: Items = setting(
        [], "Requested scopes besides `openid`, `profile` and `email`", example="groups"
    )
    RANKWIRE_OIDC_GROUPS_CLAIM: str = setting("groups", "Claim that contains a user's groups")
    RANKWIRE_GROUPS: Items = setting(
        [],
        "Roles from groups of the provider or the directory: `group=project:role`, separated by commas",
        example="physics=default:submitter",
    )
    RANKWIRE_LDAP_SERVER: str = setting(
        "",
        "Address of a directory, `ldaps://` or `ldap://` (then with StartTLS); see [manage accounts](../how-to/manage-accounts.md)",
        example="ldaps://ldap.example.org",
    )
    RANKWIRE_LDAP_PEOPLE: str = setting(
        "", "Entry of the directory below which users are", example="ou=people,dc=example,dc=org"
    )
    RANKWIRE_LDAP_FILTER: str = setting("(uid=%(user)s)", "Filter that finds a user by name")
    RANKWIRE_LDAP_BIND: str = setting("", "Account that searches the directory", default_text="anonymous")
    RANKWIRE_LDAP_PASSWORD: str = setting("", "Password of that account")
    RANKWIRE_LDAP_GROUPS: str = setting(
        "", "Entry of the directory below which groups are (`groupOfNames`)", example="ou=groups,dc=example,dc=org"
    )
    # Display and logs
    RANKWIRE_TIME_ZONE: TimeZone = setting("UTC", "Time zone of the pages")
    RANKWIRE_LOG_LEVEL: Literal["INFO", "DEBUG", "WARNING", "ERROR"] = setting("INFO", "INFO, DEBUG, WARNING or ERROR")
    RANKWIRE_LOG_FORMAT: Literal["console", "json"] = setting("console", "`console` or `json`, one object per line")
    RANKWIRE_DEBUG: bool = setting(False, "1 shows tracebacks in pages; for development only")

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> Environment:
        """Validate variables. Raise `ImproperlyConfigured` on the first wrong value."""
        try:
            return cls.model_validate(setting_texts(variables))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            text = (
                first["msg"]
                .removeprefix("Value error, ")
                .replace("Input should be", "must be")
                .partition(", unable")[0]
            )
            raise ImproperlyConfigured(f"{first['loc'][0]} {text}, not {first['input']!r}.") from None

    @classmethod
    def load(cls, dotenv: Path) -> Environment:
        """Read the environment and, with lower priority, the file `.env`."""
        return cls.of(variables_of(dotenv))


def variables_of(dotenv: Path) -> dict[str, str]:
    """Return the variables of the file `.env`, overridden by the environment."""
    return {**read_dotenv(dotenv), **os.environ}


def setting_texts(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the text of each setting, from NAME or the file in NAME_FILE."""
    texts = {
        name: variables.get(name, "").strip() or _of_file(f"{name}_FILE", variables)
        for name in Environment.model_fields
    }
    return {name: text for name, text in texts.items() if text}


def _of_file(name: str, variables: Mapping[str, str]) -> str:
    if not (path := variables.get(name, "").strip()):
        return ""
    try:
        return Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise ImproperlyConfigured(f"{name} names {path}, which cannot be read: {reason}.") from None


def read_dotenv(path: Path) -> dict[str, str]:
    """Read `NAME=value` lines without comments; strip one pair of quotes."""
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
    """Add a password of any characters to `url`; `name` is its setting, for errors."""
    if not password:
        return url
    parts = urlsplit(url)
    if not parts.netloc:
        raise ImproperlyConfigured(f"{name} is set, but its address is not.")
    user, _at, host = parts.netloc.rpartition("@")
    if ":" in user:
        raise ImproperlyConfigured(f"{name} is set, but the address has a password already.")
    return parts._replace(netloc=f"{user}:{quote(password, safe='')}@{host}").geturl()


def database(url: str) -> dict[str, Any]:
    """Return Django's DATABASES entry of a postgresql:// address.

    Other databases are refused: claims of trials and leases of hosts rely on PostgreSQL's locks (docs/explanation/architecture.md).
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
    """Return `url` if it is an address of Redis."""
    if urlsplit(url).scheme not in ("redis", "rediss", "unix"):
        raise ImproperlyConfigured("REDIS_URL must read redis://:password@host:port/number.")
    return url
