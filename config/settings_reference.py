"""Generator of `.env.example` and of the guide's table of settings."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any, Final

from pydantic.fields import FieldInfo

from config.environment import Environment

ROOT: Final = Path(__file__).resolve().parent.parent
EXAMPLE: Final = ROOT / ".env.example"
GUIDE: Final = ROOT / "docs" / "reference" / "settings.md"
_TABLE: Final = re.compile(r"(?<=<!-- settings -->\n).*?(?=<!-- /settings -->)", re.DOTALL)
_HEAD: Final = """\
# Settings of Rankwire. Copy to .env and uncomment what you change; variables of the environment have priority.
# Each can be in a file instead, as container secrets are: set NAME_FILE to its path.
"""
_CONTAINERS: Final = """
# -- Containers (docker compose)
#POSTGRES_PASSWORD=
#REDIS_PASSWORD=
# Or these and RANKWIRE_SECRET_KEY in files of a directory (docs/how-to/run-in-containers.md):
#SECRETS_FROM=config/containers/secrets-in-files.yml
#SECRETS=var/secrets
#WEB_ADDRESS=127.0.0.1:8000
"""
_SECTIONS: Final = {
    "DATABASE_URL": "Services. Without them script/server starts a private PostgreSQL and Redis below RANKWIRE_VAR",
    "RANKWIRE_VAR": "Storage",
    "RANKWIRE_MAX_TRIALS": "Limits",
    "RANKWIRE_WEB_PROCESSES": "Processes",
    "RANKWIRE_ALLOWED_HOSTS": "Access",
    "RANKWIRE_SIGN_UP": "Accounts and messages",
    "RANKWIRE_TIME_ZONE": "Display and logs",
}
"""The first setting of each section of `.env.example` -> the title of the section."""


def env_example() -> str:
    """Return the text of `.env.example`."""
    lines = [_HEAD]
    for name, field in Environment.model_fields.items():
        if name in _SECTIONS:
            lines.append(f"\n# -- {_SECTIONS[name]}\n")
        meaning = re.sub(r"\[([^]]*)]\([^)]*\)", r"\1", f"{field.description}.").replace("`", "")
        lines += [f"{line}\n" for line in textwrap.wrap(meaning, 100, initial_indent="# ", subsequent_indent="# ")]
        lines.append(f"#{name}={_extra(field)['example'] or _text(field.default)}\n")
    return "".join([*lines, _CONTAINERS])


def guide_table() -> str:
    """Return the table of settings in Markdown."""
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    for name, field in Environment.model_fields.items():
        default = _text(field.default)
        text = _extra(field)["default_text"] or (f"`{default}`" if default else "none")
        rows.append(f"| `{name}` | {text} | {field.description} |")
    return "\n".join([*rows, ""])


def guide() -> str:
    """Return the guide with the generated table."""
    return _TABLE.sub(lambda _: guide_table(), GUIDE.read_text())


def _text(default: Any) -> str:
    return (
        ",".join(default) if isinstance(default, list) else str(int(default) if isinstance(default, bool) else default)
    )


def _extra(field: FieldInfo) -> dict[str, Any]:
    assert isinstance(field.json_schema_extra, dict)  # noqa: S101 - set by `setting`
    return field.json_schema_extra


if __name__ == "__main__":
    EXAMPLE.write_text(env_example())
    GUIDE.write_text(guide())
