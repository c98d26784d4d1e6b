"""Where the embedded services listen: `services.json` in the var directory, readable by its owner only."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = "services.json"


@dataclass(frozen=True)
class State:
    """Addresses with their passwords; empty where nothing runs."""

    database_url: str = ""
    redis_url: str = ""


def read_state(var: Path) -> State:
    """The running services' addresses. A file that cannot be understood counts as none: its writer starts anew."""
    try:
        values = json.loads((var / FILE).read_text())
        return State(database_url=str(values["database_url"]), redis_url=str(values["redis_url"]))
    except (OSError, ValueError, KeyError, TypeError):
        return State()


def write_state(var: Path, state: State) -> None:
    """Replace the file in one step, so that no reader sees half of it."""
    temporary = var / f".{FILE}-{os.getpid()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(asdict(state), file)
    temporary.replace(var / FILE)


def clear_state(var: Path) -> None:
    (var / FILE).unlink(missing_ok=True)
