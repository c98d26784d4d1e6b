"""Permanent processes and their last heartbeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models.functions import Now

from analysis.numbers import duration
from experiments.models import Heartbeat
from experiments.models.heartbeat import ALIVE_S

_NEEDED: Final = (Heartbeat.Role.BEAT, Heartbeat.Role.WORKER, Heartbeat.Role.BACKGROUND)
_TITLES: Final[dict[str, str]] = {Heartbeat.Role.BEAT: "Periodic tasks (beat)"}
_EFFECTS: Final = {
    Heartbeat.Role.BEAT: "trials whose worker disappeared are not found, and files are not deleted",
    Heartbeat.Role.WORKER: "queued trials do not start",
    Heartbeat.Role.BACKGROUND: "exports and changes of many trials wait",
}


@dataclass(frozen=True, slots=True)
class Process:
    """One process with its last heartbeat; without a name, none has reported yet."""

    role: str
    name: str = ""
    seen_at: datetime | None = None
    age_s: float | None = None

    @property
    def title(self) -> str:
        return _TITLES.get(self.role) or Heartbeat.Role(self.role).label

    @property
    def term(self) -> str:
        """The id of its definition."""
        return f"process.{self.role}"

    @property
    def is_alive(self) -> bool:
        return self.age_s is not None and self.age_s <= ALIVE_S

    @property
    def problem(self) -> str:
        """The effect of its silence, for a role without a process that runs."""
        since = "has reported yet" if self.age_s is None else f"has reported for {duration(self.age_s)}"
        process = "process for periodic tasks (beat)" if self.role == Heartbeat.Role.BEAT else self.title.lower()
        return f"No {process} {since}: {_EFFECTS[Heartbeat.Role(self.role)]}."


def processes() -> list[Process]:
    """Return all processes with a heartbeat, and needed roles without one; one query."""
    rows = Heartbeat.objects.order_by("role", "name").annotate(now=Now())
    reported = [
        Process(row.role, row.name, row.seen_at, max((row.now - row.seen_at).total_seconds(), 0.0)) for row in rows
    ]
    roles = {process.role for process in reported}
    return [*reported, *(Process(role) for role in _NEEDED if role not in roles)]


def silent(among: Sequence[Process]) -> list[Process]:
    """Return the latest process of each needed role of which none runs."""
    latest: dict[str, Process] = {}
    for process in among:
        best = latest.get(process.role)
        if best is None or (process.age_s or 0.0) < (best.age_s or 0.0):
            latest[process.role] = process
    return [process for role in _NEEDED if not (process := latest[role]).is_alive]
