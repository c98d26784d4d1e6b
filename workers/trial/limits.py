"""Limits of this installation for trials here, and disk use of outputs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from django.conf import settings

from experiments.common import plain_files
from experiments.models import Cluster
from workers.agent import linux
from workers.launchers.limits import MOST_OPEN, Limits, free_space, open_files, private_files, whole_mib

_LEAST_DISK_BYTES: Final = 64 << 20
"""Least limit on a disk that is nearly full, where writes fail by themselves."""
_HOLE: Final = 1 << 20
"""Least size of a hole."""


def current_limits() -> Limits:
    """Return the limits of a trial that begins now."""
    free, free_files = free_space(Path(settings.VAR))
    opened, most_open = open_files()
    keys = [
        Path(value)
        for cluster_settings in Cluster.objects.values_list("settings", flat=True)
        for value in _files_named(cluster_settings)
    ]
    return Limits(
        user=settings.TRIAL_USER,
        hidden=(
            Path(settings.VAR),
            settings.BASE_DIR / ".env",
            *settings.SETTING_FILES,
            *keys,
            *private_files(Path.home()),
        ),
        processes=settings.TRIAL_PROCESSES,
        memory_bytes=settings.TRIAL_MEMORY_BYTES or None,
        disk_bytes=min(settings.TRIAL_DISK_BYTES, max(whole_mib(free / 2), _LEAST_DISK_BYTES)),
        files=min(settings.TRIAL_FILES, free_files // 2 or settings.TRIAL_FILES),  # Btrfs reports no number
        least_free_bytes=min(settings.DISK_RESERVE_BYTES, free) // 2,
        open_files=opened + min(MOST_OPEN, (most_open - opened) // 2),
        output_bytes=settings.OUTPUT_LIMIT_BYTES,
    )


def thin_out(file: Path, *, limit_bytes: int) -> None:
    """Free the disk of a growing output's middle; only its ends are stored."""
    with plain_files.opened(file) as stream:
        size = os.fstat(stream.fileno()).st_size
        length = size - limit_bytes - _HOLE
        if length < _HOLE:
            return
        descriptor = os.open(f"/proc/self/fd/{stream.fileno()}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            linux.punch_hole(descriptor, limit_bytes // 2 + _HOLE // 2, length)
        finally:
            os.close(descriptor)


def _files_named(cluster_settings: object) -> list[str]:
    """Return private keys and ssh configurations of a cluster's settings."""
    if not isinstance(cluster_settings, dict):
        return []
    values = [cluster_settings.get(name) for name in ("key", "config")]
    return [value for value in values if isinstance(value, str) and value.startswith("/")]
