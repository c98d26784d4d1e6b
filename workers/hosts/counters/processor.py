"""Frequency, throttling and temperature of the processor."""

from __future__ import annotations

import re
from pathlib import Path

from workers.hosts.counters.source import Absent, Quantity, Source, number_of, numbers_of, text_or_nothing

MOST_CORES = 16
"""Of which the frequency is read: each read may wake a core."""
_SENSORS = ("coretemp", "k10temp", "zenpower")


class Files(Source):
    """Numbers in files, one quantity each."""

    def watch(self, name: str, path: Path, quantity: Quantity) -> None:
        """Add the quantity if its file holds a number."""
        if number_of(path) is not None:
            self.add(quantity)
            self._files[name] = path

    def probe(self) -> None:
        self._files: dict[str, Path] = {}
        self.find()
        if not self.quantities:
            raise Absent(self.nothing)

    nothing = ""

    def find(self) -> None:
        """Watch the files that exist."""
        raise NotImplementedError

    def read(self) -> dict[str, float]:
        return numbers_of(self._files.items())


class Frequency(Files):
    """Present frequency of cores, evenly chosen if there are many."""

    key = "frequency"
    title = "Core frequency"
    nothing = "the kernel shows no frequency (no cpufreq driver; virtual machines have none)"

    def find(self) -> None:
        files = self.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq")
        for file in files[:: max(1, -(-len(files) // MOST_CORES))]:
            name = file.parents[1].name
            self.watch(name, file, Quantity(name, "frequency_hz", "Hz", "gauge", scale=1e3))
        governor = text_or_nothing(files[0].with_name("scaling_governor")) if files else ""
        self.details = f"{len(self.quantities)} of {len(files)} cores, governor {governor or 'unknown'}"


class Throttling(Files):
    """Times that heat slowed a core."""

    key = "throttling"
    title = "Thermal throttling"
    nothing = "the kernel counts no throttling (only on Intel processors, outside virtual machines)"

    def find(self) -> None:
        for file in self.glob("sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/core_throttle_count"):
            name = file.parents[1].name
            siblings = text_or_nothing(file.parents[1] / "topology/thread_siblings_list")
            if siblings and f"cpu{re.split('[,-]', siblings)[0]}" != name:
                continue  # hardware threads of one core count the same
            self.watch(name, file, Quantity(name, "throttle_events", "1"))
        self.details = f"{len(self.quantities)} cores"


class Temperature(Files):
    """Temperatures of the processor's sensors."""

    key = "temperature"
    title = "Temperature"
    nothing = "no sensor of a processor was found (coretemp, k10temp, zenpower)"

    def find(self) -> None:
        for chip in self.glob("sys/class/hwmon/hwmon*"):
            if text_or_nothing(chip / "name") in _SENSORS:
                for file in sorted(chip.glob("temp*_input")):
                    name = f"{chip.name} {text_or_nothing(chip / file.name.replace('input', 'label')) or file.name}"
                    self.watch(name, file, Quantity(name, "temperature_c", "°C", "gauge", scale=1e-3))
        self.details = f"{len(self.quantities)} sensors"
