"""Ports of InfiniBand, RoCE, Omni-Path and Slingshot devices."""

from __future__ import annotations

import re
import time
from collections.abc import Container
from pathlib import Path
from typing import Any

from workers.hosts.counters.source import (
    Absent,
    AbsentNow,
    Quantity,
    Source,
    number_of,
    numbers_of,
    text_or_nothing,
)

_WORD_BYTES = 4
_BITS_16, _BITS_32 = (1 << 16) - 1, (1 << 32) - 1
_COUNTERS = (
    ("port_xmit_data", "fabric_sent_bytes", "B", _WORD_BYTES, _BITS_32),
    ("port_rcv_data", "fabric_received_bytes", "B", _WORD_BYTES, _BITS_32),
    ("port_xmit_packets", "fabric_sent_packets", "1", 1, _BITS_32),
    ("port_rcv_packets", "fabric_received_packets", "1", 1, _BITS_32),
    ("port_xmit_wait", "fabric_wait_ticks", "ticks", 1, _BITS_32),
    ("symbol_error", "fabric_errors", "1", 1, _BITS_16),
    ("link_error_recovery", "fabric_errors", "1", 1, 255),
    ("link_downed", "fabric_errors", "1", 1, 255),
    ("port_rcv_errors", "fabric_errors", "1", 1, _BITS_16),
    ("port_xmit_discards", "fabric_discards", "1", 1, _BITS_16),
)
# mlx5; then irdma, hns and bnxt_re; then EFA; CNPs of mlx5, irdma and bnxt_re
_HW_COUNTERS = {
    **dict.fromkeys(("packet_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err"), "fabric_retransmissions"),
    **dict.fromkeys(("tcpRetransSegs", "RetransSegs", "to_retransmits"), "fabric_retransmissions"),
    "retrans_pkts": "fabric_retransmissions",
    **dict.fromkeys(("rp_cnp_handled", "cnpHandled", "rx_cnp_pkts"), "fabric_cnps"),
}
# Of drivers without `counters`: bnxt_re and EFA, then irdma, whose octets are of IP.
_DRIVERS_OWN = {
    "tx_bytes": ("fabric_sent_bytes", "B", False),
    "rx_bytes": ("fabric_received_bytes", "B", False),
    "tx_pkts": ("fabric_sent_packets", "1", False),
    "rx_pkts": ("fabric_received_packets", "1", False),
    **{f"ip{version}OutOctets": ("fabric_sent_bytes", "B", True) for version in (4, 6)},
    **{f"ip{version}InOctets": ("fabric_received_bytes", "B", True) for version in (4, 6)},
    **{f"ip{version}OutPkts": ("fabric_sent_packets", "1", True) for version in (4, 6)},
    **{f"ip{version}InPkts": ("fabric_received_packets", "1", True) for version in (4, 6)},
}
"""Total, unit, and whether it is an estimate, by name of a file."""
_OF_SOME = ("fabric_errors", "fabric_discards", "fabric_wait_ticks")
"""Totals of the ports that count them: devices count different errors, and RoCE has no credits to wait for."""
_GIGABITS = re.compile(r"([\d.]+) Gb/sec(?: \(\d+X (\w+)\))?")
_EIGHT_OF_TEN_BITS = ("SDR", "DDR", "QDR")
"""InfiniBand's rates of which a fifth is line coding; the later ones lose 3 % at most."""


class Ports(Source):
    """Active ports of all devices."""

    key = "ports"
    title = "Fabric ports"
    is_network = True

    def probe(self) -> None:
        self._files: dict[str, Path] = {}
        self._lifespan_s = 0.0
        devices = self.glob("sys/class/infiniband/*")
        if not devices:
            raise Absent("this host has no InfiniBand, RoCE or Omni-Path device")
        ports = [port for device in devices for port in sorted((device / "ports").glob("*"))]
        active = [port for port in ports if "ACTIVE" in text_or_nothing(port / "state")]
        if not active:
            raise AbsentNow(f"no port is active: {', '.join(device.name for device in devices)}")
        for port in active:
            self._probe_port(port)
        for port in active:
            self._probe_transport(port / "hw_counters", _name(port))
        for device in dict.fromkeys(port.parent.parent for port in active):
            at_ports = {path.name for path in device.glob("ports/*/hw_counters/*")}
            self._probe_transport(device / "hw_counters", device.name, at_ports)
        for total in _OF_SOME:
            if total_is_partly_there(self, total):
                self.missing.pop(total, None)
        self.details = ", ".join(f"{_name(port)} ({_kind(port)})" for port in active)

    def _probe_port(self, port: Path) -> None:
        device, rate_bps = _name(port), _data_rate_bps(port)
        drivers_own = self._drivers_own(port)
        for file, total, unit, scale, sticks_at in _COUNTERS:
            path, name = port / "counters" / file, f"{device} {file}"
            if number_of(path) is None:  # EINVAL: this device does not count it
                if total not in drivers_own:
                    self.missing.setdefault(total, f"{device} does not count {file}")
                continue
            drivers_own.discard(total)
            self._files[name] = path
            limit = rate_bps if unit == "B" else 0.0
            self.add(Quantity(name, total, unit, scale=scale, sticks_at=sticks_at, device=device, limit=limit))
        for file, (total, unit, is_estimated) in _DRIVERS_OWN.items():
            path, name = port / "hw_counters" / file, f"{device} {file}"
            if total in drivers_own and number_of(path) is not None:
                self._files[name] = path
                limit = rate_bps if unit == "B" else 0.0
                self.add(Quantity(name, total, unit, device=device, limit=limit, is_estimated=is_estimated))

    def _drivers_own(self, port: Path) -> set[str]:
        """Return the totals that the driver counts under names of its own."""
        folder = port / "hw_counters"
        return {total for file, (total, *_) in _DRIVERS_OWN.items() if number_of(folder / file) is not None}

    def _probe_transport(self, folder: Path, device: str, seen: Container[str] = ()) -> None:
        self._lifespan_s = max(self._lifespan_s, (number_of(folder / "lifespan") or 0) / 1e3)
        for file in sorted(folder.glob("*")):
            total = _HW_COUNTERS.get(file.name)
            if total is not None and file.name not in seen and number_of(file) is not None:
                name = f"{device} {file.name}"
                self._files[name] = file
                self.add(Quantity(name, total, "1", sticks_at=_BITS_32, device=device))

    def read(self) -> dict[str, float]:
        return numbers_of(self._files.items())

    def end(self) -> list[dict[str, Any]]:
        """Wait until the device's counters are no longer those of before the end."""
        time.sleep(min(self._lifespan_s, 0.1))
        return super().end()


def total_is_partly_there(source: Source, total: str) -> bool:
    """Return whether some counter of a total exists: devices count different errors."""
    return any(quantity.total == total for quantity in source.quantities.values())


def _name(port: Path) -> str:
    return f"{port.parent.parent.name}/{port.name}"


def _kind(port: Path) -> str:
    layer, device = text_or_nothing(port / "link_layer"), port.parent.parent
    if device.name.startswith("hfi1"):
        name = "Omni-Path"
    elif layer == "Unspecified":  # such as EFA: the driver's name
        name = driver_of(device) or layer
    else:
        name = {"Ethernet": "RoCE"}.get(layer, "InfiniBand")
    return f"{name}, {text_or_nothing(port / 'rate').partition(' (')[0]}"


def driver_of(device: Path) -> str:
    """Return the name of a device's driver; "" without one."""
    try:
        return (device / "device/driver").readlink().name
    except OSError:
        return ""


def _data_rate_bps(port: Path) -> float:
    """Return the bytes of data that a port can send per second; 0 if unknown."""
    rate = _GIGABITS.match(text_or_nothing(port / "rate"))
    if rate is None:
        return 0.0
    is_coded = (rate[2] or "SDR") in _EIGHT_OF_TEN_BITS and text_or_nothing(port / "link_layer") == "InfiniBand"
    return float(rate[1]) * (100e6 if is_coded else 125e6)


_MOST_NAMES = 12
"""Unknown names of telemetry that a report holds, those of octets first."""


class Slingshot(Source):
    """Octets of Slingshot devices; their telemetry's names differ by release."""

    key = "slingshot"
    title = "Slingshot"
    is_network = True
    _OCTETS = re.compile(r"(?:hni_)?(?:sts_)?(tx|rx)_ok_octets(?:_|$)")

    def probe(self) -> None:
        self._files: dict[str, Path] = {}
        devices = self.glob("sys/class/cxi/*")
        if not devices:
            raise Absent("this host has no Slingshot device")
        files = [file for device in devices for file in sorted((device / "device/telemetry").glob("*"))]
        for file in files:
            match, device = self._OCTETS.match(file.name), file.parents[2].name
            if match and number_of_telemetry(file) is not None:
                total = f"slingshot_{'sent' if match[1] == 'tx' else 'received'}_bytes"
                self.add(Quantity(f"{device} {file.name}", total, "B", device=device))
                self._files[f"{device} {file.name}"] = file
        if not self.quantities:
            names = sorted({file.name for file in files}, key=lambda name: ("octets" not in name, name))
            unknown = f", but {', '.join(names[:_MOST_NAMES])}" if names else ""
            raise Absent(f"the telemetry of this release has no octets under a known name{unknown}")
        self.details = ", ".join(device.name for device in devices)

    def read(self) -> dict[str, float]:
        values = ((name, number_of_telemetry(file)) for name, file in self._files.items())
        return {name: value for name, value in values if value is not None}


def number_of_telemetry(file: Path) -> int | None:
    """Return the number before "@" and its time; None without one."""
    try:
        return int(text_or_nothing(file).partition("@")[0])
    except ValueError:
        return None
