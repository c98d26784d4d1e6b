"""Settings of an installation in its backups; secrets on request only."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from django.conf import settings

from config.backup.layout import SECRETS, SETTINGS, write_new
from config.environment import read_dotenv, setting_texts, variables_of

ADDRESSES: Final = frozenset(
    {"DATABASE_URL", "REDIS_URL", "RANKWIRE_DATABASE_PASSWORD", "RANKWIRE_REDIS_PASSWORD", "RANKWIRE_VAR"}
)
"""Addresses of this installation, which must not be restored into another one."""
SECRET: Final = frozenset(
    {
        "RANKWIRE_SECRET_KEY",
        "RANKWIRE_SMTP_URL",
        "RANKWIRE_OIDC_SECRET",
        "RANKWIRE_LDAP_PASSWORD",
        "RANKWIRE_STORE_KEY",
        "RANKWIRE_STORE_SECRET",
    }
)
SECRET_KEY_FILE, PASSWORD_FILE, SECRETS_FILE = "secret-key", "admin-password", "secrets.env"


def values() -> dict[str, str]:
    """Return all settings of the installation without addresses."""
    texts = setting_texts(variables_of(settings.BASE_DIR / ".env"))
    return {name: text for name, text in sorted(texts.items()) if name not in ADDRESSES}


def store(directory: Path, *, secrets: bool) -> list[str]:
    """Write settings into a backup; return the names of the files."""
    texts = values()
    write_new(directory / SETTINGS, _lines({name: text for name, text in texts.items() if name not in SECRET}))
    names = [SETTINGS]
    if secrets:
        secret_texts = {name: text for name, text in texts.items() if name in SECRET and name != "RANKWIRE_SECRET_KEY"}
        write_new(directory / SECRETS / SECRETS_FILE, _lines(secret_texts))
        write_new(directory / SECRETS / SECRET_KEY_FILE, f"{settings.SECRET_KEY}\n")
        names += [f"{SECRETS}/{SECRETS_FILE}", f"{SECRETS}/{SECRET_KEY_FILE}"]
        password = Path(settings.VAR) / PASSWORD_FILE
        if password.is_file():
            write_new(directory / SECRETS / PASSWORD_FILE, password.read_text())
            names.append(f"{SECRETS}/{PASSWORD_FILE}")
    return names


def differing(directory: Path) -> list[str]:
    """Return lines of the settings in a backup that differ from the current ones."""
    stored, current = read_dotenv(directory / SETTINGS), values()
    return [f"{name}={text}" for name, text in stored.items() if current.get(name) != text]


def _lines(values: dict[str, str]) -> str:
    return "".join(f'{name}="{text}"\n' for name, text in values.items())
