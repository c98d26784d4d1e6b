"""GPUs: NVML through the driver's own library, rocm-smi, and the files of amdgpu."""

from __future__ import annotations

import ctypes
import json
import math
import re
from collections.abc import Iterable
from typing import Any

from workers.hosts.counters.processor import Files
from workers.hosts.counters.source import Absent, Quantity, Source, output, text_or_nothing

_SM_CLOCK = 1
# Power cap, software and hardware thermal slowdown, hardware and external power brake
_THROTTLED = 0x4 | 0x8 | 0x20 | 0x40 | 0x80
_KINDS = {
    "energy": ("gpu_j", "J", "counter", 1e-3),
    "power": ("gpu_j", "W", "power", 1e-3),
    "use": ("gpu_share", "1", "gauge", 1e-2),
    "memory": ("gpu_memory_bytes", "B", "gauge", 1.0),
    "clock": ("gpu_frequency_hz", "Hz", "gauge", 1e6),
    "throttled": ("gpu_throttled_share", "1", "gauge", 1.0),
}
"""Total, unit, kind and scale by quantity of a GPU; power is read if there is no energy (before Volta)."""


class Nvml(Source):
    """NVIDIA GPUs.

    A quantity that a GPU does not support, such as its use in MIG mode, is absent.
    """

    key = "nvml"
    title = "GPU (NVML)"
    library = "libnvidia-ml.so.1"

    def probe(self) -> None:
        name = self.library if str(self.root) == "/" else str(self.root / "usr/lib" / self.library)
        try:
            self._nvml = ctypes.CDLL(name)
        except OSError:
            raise Absent("this host has no NVIDIA driver") from None
        if status := self._nvml.nvmlInit_v2():
            raise Absent(f"NVML does not start: error {status}")
        count = ctypes.c_uint()
        self._ask("nvmlDeviceGetCount_v2", ctypes.byref(count))
        self._devices = [ctypes.c_void_p() for _ in range(count.value)]
        for index, device in enumerate(self._devices):
            self._ask("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(device))
        readable = self._values(_KINDS)
        for index in range(len(self._devices)):
            for what, (total, unit, kind, scale) in _KINDS.items():
                name = f"GPU {index} {what}"
                if name in readable and not (what == "power" and f"GPU {index} energy" in readable):
                    self.add(Quantity(name, total, unit, kind, scale=scale, device=f"GPU {index}"))
                elif what != "power" and not (what == "energy" and f"GPU {index} power" in readable):
                    self.missing.setdefault(total, f"GPU {index} does not report it")
        if not self.quantities:
            raise Absent("no GPU reports anything")
        self.details = f"{len(self._devices)} GPUs"

    def _ask(self, function: str, *arguments: Any) -> bool:
        """Return whether a function succeeded: a driver may lack it, a GPU its value."""
        try:
            return bool(getattr(self._nvml, function)(*arguments) == 0)
        except AttributeError:
            return False

    def read(self) -> dict[str, float]:
        return self._values([what for what in _KINDS if any(name.endswith(what) for name in self.quantities)])

    def _values(self, kinds: Iterable[str]) -> dict[str, float]:
        values = {}
        for index, device in enumerate(self._devices):
            for what in kinds:
                value = getattr(self, f"_{what}")(device)
                if value is not None:
                    values[f"GPU {index} {what}"] = float(value)
        return values

    def _energy(self, device: ctypes.c_void_p) -> int | None:
        millijoules = ctypes.c_ulonglong()
        is_there = self._ask("nvmlDeviceGetTotalEnergyConsumption", device, ctypes.byref(millijoules))
        return millijoules.value if is_there else None

    def _power(self, device: ctypes.c_void_p) -> int | None:
        milliwatts = ctypes.c_uint()
        is_there = self._ask("nvmlDeviceGetPowerUsage", device, ctypes.byref(milliwatts))
        return milliwatts.value if is_there else None

    def _use(self, device: ctypes.c_void_p) -> int | None:
        percents = (ctypes.c_uint * 2)()  # of GPU and memory
        return percents[0] if self._ask("nvmlDeviceGetUtilizationRates", device, percents) else None

    def _memory(self, device: ctypes.c_void_p) -> int | None:
        sizes = (ctypes.c_ulonglong * 3)()  # total, free, used
        return sizes[2] if self._ask("nvmlDeviceGetMemoryInfo", device, sizes) else None

    def _clock(self, device: ctypes.c_void_p) -> int | None:
        megahertz = ctypes.c_uint()
        is_there = self._ask("nvmlDeviceGetClockInfo", device, ctypes.c_int(_SM_CLOCK), ctypes.byref(megahertz))
        return megahertz.value if is_there else None

    def _throttled(self, device: ctypes.c_void_p) -> bool | None:
        reasons = ctypes.c_ulonglong()
        is_there = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", device, ctypes.byref(reasons))
        return bool(reasons.value & _THROTTLED) if is_there else None


class Rocm(Source):
    """AMD GPUs by rocm-smi, whose start takes long: begin and end alone."""

    key = "rocm"
    title = "GPU (rocm-smi)"
    is_slow = True
    _NAMES = (
        (re.compile(r"Accumulated Energy \(uJ\)"), "energy", "gpu_j", "J", "counter", 1e-6),
        (re.compile(r"GPU use \(%\)"), "use", "gpu_share", "1", "gauge", 1e-2),
        (re.compile(r"VRAM Total Used Memory \(B\)"), "memory", "gpu_memory_bytes", "B", "gauge", 1.0),
    )

    def probe(self) -> None:
        program = self.command("rocm-smi")
        self._argv = [program, "--showenergycounter", "--showuse", "--showmeminfo", "vram", "--json"]
        for card, fields in self._cards().items():
            for pattern, what, total, unit, kind, scale in self._NAMES:
                if any(pattern.fullmatch(name) and _number(value) is not None for name, value in fields.items()):
                    self.add(Quantity(f"{card} {what}", total, unit, kind, scale=scale, device=card))
                else:
                    self.missing.setdefault(total, f"{card} does not report it")
        if not self.quantities:
            raise Absent("rocm-smi reports no GPU")
        self.details = f"{len({quantity.device for quantity in self.quantities.values()})} GPUs"

    def _cards(self) -> dict[str, dict[str, Any]]:
        text = output(self._argv)
        try:
            cards = json.loads(text[text.index("{") :])
        except ValueError:
            raise Absent("rocm-smi printed no JSON") from None
        return {card: fields for card, fields in cards.items() if card.startswith("card")}

    def read(self) -> dict[str, float]:
        values = {}
        for card, fields in self._cards().items():
            for name, text in fields.items():
                for pattern, what, *_ in self._NAMES:
                    if pattern.fullmatch(name) and (value := _number(text)) is not None:
                        values[f"{card} {what}"] = value
        return values


class Amdgpu(Files):
    """AMD GPUs by the files of their driver, once a second; its power is a gauge."""

    key = "amdgpu"
    title = "GPU (amdgpu)"
    nothing = "this host has no AMD GPU"
    _NAMES = (
        ("power1_average", "energy", "gpu_j", "W", "power", 1e-6),
        ("power1_input", "energy", "gpu_j", "W", "power", 1e-6),  # newer drivers have this one alone
        ("freq1_input", "clock", "gpu_frequency_hz", "Hz", "gauge", 1.0),
        ("device/gpu_busy_percent", "use", "gpu_share", "1", "gauge", 1e-2),
        ("device/mem_info_vram_used", "memory", "gpu_memory_bytes", "B", "gauge", 1.0),
    )

    def find(self) -> None:
        chips = [chip for chip in self.glob("sys/class/hwmon/hwmon*") if text_or_nothing(chip / "name") == "amdgpu"]
        for index, chip in enumerate(chips):
            for file, what, total, unit, kind, scale in self._NAMES:
                name = f"GPU {index} {what}"
                if name not in self.quantities:
                    self.watch(name, chip / file, Quantity(name, total, unit, kind, scale=scale, device=f"GPU {index}"))
        self.details = f"{len(chips)} GPUs"


def _number(text: Any) -> float | None:
    """Return a printed number; None for "N/A" and "nan"."""
    try:
        value = float(text)
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None
