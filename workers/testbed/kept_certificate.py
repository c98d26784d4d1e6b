"""Certificates kept between experiments: what a measured link depends on."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from workers.testbed.plan import Plan

KEPT_FOR: Final = timedelta(days=1)
BUSY_TOLERANCE: Final = 0.1
"""A machine that is busier by more than this share than when the link was measured may not make it as well."""
LOOK_S: Final = 0.1
_FACTS: Final = ("kernel", "architecture", "cpu", "machine", "interface", "tcp")

StoredCertificate = Callable[[str], Mapping[str, Any] | None]
"""Returns the newest stored certificate of a link as requested, by its `made_on`."""


def nothing_stored(_made_on: str) -> None:
    """Return None: every link is measured."""


def made_on(plan: Plan, environment: Mapping[str, Any], built: Mapping[str, Any]) -> str:
    """Return a hash of the plan, the started machine, and the code of links."""
    parts = {
        "plan": plan.to_message(),
        "built": dict(built),
        "boot": Path("/proc/sys/kernel/random/boot_id").read_text(),
        "cores": sorted(os.sched_getaffinity(0)),
        "code": _code(),
        **{name: environment.get(name) for name in _FACTS},
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


@functools.cache
def _code() -> str:
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.[pc]*")):
        if file.is_file():
            digest.update(f"{file.name}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def busy_share() -> float:
    """Return the share of the machine's cores that other programs use, while we wait."""
    busy_before, all_before = _ticks()
    time.sleep(LOOK_S)
    busy_after, all_after = _ticks()
    return (busy_after - busy_before) / max(all_after - all_before, 1)


def _ticks() -> tuple[int, int]:
    ticks = [int(word) for word in Path("/proc/stat").read_text().split(None, 9)[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)  # without idle and waiting for storage


def still_holds(stored: Mapping[str, Any], busy: float) -> bool:
    """Return whether a certificate is young, and the machine no busier than then."""
    age = datetime.now(UTC) - datetime.fromisoformat(stored["measured_at"])
    return timedelta() <= age <= KEPT_FOR and busy <= stored["busy_share"] + BUSY_TOLERANCE
