"""Energy meters of HPE Cray nodes: the whole node, and its parts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from workers.hosts.counters.source import Absent, Quantity, Source, number_of, numbers_of

_TOTALS = {"energy": "host_j", "cpu_energy": "package_j", "memory_energy": "dram_j"}
_ACCELERATOR = re.compile(r"accel\d*_energy")  # without a number on Cray XC


class Cray(Source):
    """Meters that are updated ten times a second; `freshness` counts the updates."""

    key = "cray"
    title = "Energy, node (pm_counters)"

    def probe(self) -> None:
        folder = self.root / "sys/cray/pm_counters"
        if not folder.is_dir():
            raise Absent("this host has no /sys/cray/pm_counters")
        self._files: dict[str, Path] = {}
        self._freshness = folder / "freshness"
        for file in sorted(folder.glob("*energy")):
            total = "gpu_j" if _ACCELERATOR.fullmatch(file.name) else _TOTALS.get(file.name)
            if total is not None and number_of(file) is not None:
                self.add(Quantity(file.name, total, "J", device=file.name))
                self._files[file.name] = file
        if not self.quantities:
            raise Absent("pm_counters has no readable energy")
        self.details = ", ".join(self.quantities)

    def begin(self) -> None:
        self._fresh_at_begin = number_of(self._freshness)
        super().begin()

    def read(self) -> dict[str, float]:
        return numbers_of(self._files.items())

    def end(self) -> list[dict[str, Any]]:
        rows = super().end()
        fresh = number_of(self._freshness)
        if fresh is not None and fresh == self._fresh_at_begin:
            raise Absent("the meters were not updated while the trial ran: freshness did not move")
        return rows
