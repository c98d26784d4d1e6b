"""Energy of processor packages and memory by RAPL (powercap files)."""

from __future__ import annotations

from pathlib import Path

from experiments.common.counter_fixes import OPEN_RAPL, RAPL_GUIDE
from workers.hosts.counters.source import (
    Absent,
    Quantity,
    Source,
    number_of,
    numbers_of,
    text_of,
    text_or_nothing,
)

MOST_W = 5000.0
"""More than any package or its memory draws: a counter that seems to wrap faster was reset."""
_TOTALS = {"core": "core_j", "uncore": "uncore_j", "dram": "dram_j"}


class Rapl(Source):
    """Zones of all sockets. Core and uncore are parts of their package; memory is not."""

    key = "rapl"
    title = "Energy, processor (RAPL)"

    def probe(self) -> None:
        # Not intel-rapl-mmio:0, the same package once more.
        zones = self.glob("sys/class/powercap/intel-rapl:*")
        if not zones:
            raise Absent("this machine has no RAPL: /sys/class/powercap has no intel-rapl (virtual machines have none)")
        self._files: dict[str, Path] = {}
        for zone in zones:
            domain, file = text_or_nothing(zone / "name"), zone / "energy_uj"
            total = "package_j" if domain.startswith("package") else _TOTALS.get(domain)
            if total is None:
                continue  # psys: the platform, on laptops
            try:
                int(text_of(file))
            except PermissionError:
                raise Absent("readable by root only", OPEN_RAPL, RAPL_GUIDE) from None
            except (OSError, ValueError):
                self.missing[total] = f"{zone.name} ({domain}) has no value"
                continue
            name = domain if total == "package_j" else f"{domain} of {zone.name}"
            name = f"{name} ({zone.name})" if name in self.quantities else name
            range_uj = number_of(zone / "max_energy_range_uj")
            self.add(Quantity(name, total, "J", scale=1e-6, wraps_at=range_uj, most_per_s=MOST_W * 1e6))
            self._files[name] = file
        packages = sum(quantity.total == "package_j" for quantity in self.quantities.values())
        if not packages:
            raise Absent("RAPL has no readable package")
        memory = any(quantity.total == "dram_j" for quantity in self.quantities.values())
        self.details = (
            f"{packages} {'package' if packages == 1 else 'packages'}, {'with' if memory else 'without'} memory"
        )

    def read(self) -> dict[str, float]:
        return numbers_of(self._files.items())
