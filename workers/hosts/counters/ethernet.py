"""Ethernet interfaces: the kernel's statistics, and pause frames of known drivers."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from workers.hosts.counters.source import Absent, AbsentNow, Quantity, Source, number_of, numbers_of, output

_ETHERNET = 1  # ARPHRD_ETHER; IPoIB is 32 and counted by its port
_LEAST_FRAME_BYTES = 64
_MOST_OF_SPEED = 2
"""Times the speed that a step may show: statistics of some drivers are those of a second ago."""
_UNKNOWN_SPEEDS = ((1 << 16) - 1, (1 << 32) - 1)  # of older kernels; newer ones show -1
_STATISTICS = (
    ("tx_bytes", "ethernet_sent_bytes", "B"),
    ("rx_bytes", "ethernet_received_bytes", "B"),
    ("tx_packets", "ethernet_sent_packets", "1"),
    ("rx_packets", "ethernet_received_packets", "1"),
    ("tx_dropped", "ethernet_drops", "1"),
    ("rx_dropped", "ethernet_drops", "1"),
    ("tx_errors", "ethernet_errors", "1"),
    ("rx_errors", "ethernet_errors", "1"),
)
# mlx5; i40e and ice, whose names have a prefix or an ending; bnxt_en; igb, ixgbe and older drivers
_DRIVERS_NAMES = {
    "ethernet_pauses": (
        *("rx_pause_ctrl_phy", r"rx_prio\d_pause", r"(?:port\.)?link_xoff_rx(?:\.nic)?"),
        *(r"(?:port\.)?rx_priority_\d_xoff(?:\.nic)?", r"rx_l?xo(?:n|ff)_rx|xoff_rx"),
        *("rx_pause_frames", "rx_flow_control_xoff"),
    ),
    "ethernet_discards": (
        *("[rt]x_discards_phy", "rx_out_of_buffer", r"rx_dropped\.nic"),
        *("rx_missed_errors", "rx_no_dma_resources", "rx_total_discard_pkts"),
    ),
    "ethernet_ecn_marks": ("rx_ecn_mark", "rx_ecn_marked_pkts"),
}
_LINES = {
    total: re.compile(rf"^\s*(?:{'|'.join(names)}): (\d+)", re.MULTILINE) for total, names in _DRIVERS_NAMES.items()
}


class Ethernet(Source):
    """Physical interfaces that are up.

    Bonds, bridges and VLANs count the same bytes once more.
    """

    key = "ethernet"
    title = "Ethernet"
    is_network = True

    def probe(self) -> None:
        self._files: dict[str, Path] = {}
        interfaces = physical(self)
        if not interfaces:
            raise AbsentNow("no physical Ethernet interface is up")
        for interface in interfaces:
            speed_mbps = number_of(interface / "speed") or 0  # EINVAL: unknown
            for file, total, unit in _STATISTICS:
                name = f"{interface.name} {file}"
                is_known = speed_mbps > 0 and speed_mbps not in _UNKNOWN_SPEEDS
                bytes_per_s = speed_mbps * 125_000.0 if is_known else 0.0
                limit = bytes_per_s if unit == "B" else 0.0
                most_per_s = _MOST_OF_SPEED * bytes_per_s / (1 if unit == "B" else _LEAST_FRAME_BYTES)
                quantity = Quantity(name, total, unit, may_have_32_bits=True, device=interface.name, limit=limit)
                self.add(dataclasses.replace(quantity, most_per_s=most_per_s))
                self._files[name] = interface / "statistics" / file
        self.details = ", ".join(interface.name for interface in interfaces)

    def read(self) -> dict[str, float]:
        return numbers_of(self._files.items())


def physical(source: Source) -> list[Path]:
    """Return the physical Ethernet interfaces that are up."""
    interfaces = []
    for interface in source.glob("sys/class/net/*"):
        is_real = (interface / "device").exists() and not (interface / "bonding").exists()
        if is_real and number_of(interface / "type") == _ETHERNET and number_of(interface / "carrier") == 1:
            interfaces.append(interface)
    return interfaces


class Drivers(Source):
    """Pause frames, discards and ECN marks that drivers of interfaces count."""

    key = "ethtool"
    title = "Ethernet drivers (ethtool)"
    is_network = True
    is_slow = True

    def probe(self) -> None:
        program = self.command("ethtool")
        self._commands = {interface.name: [program, "-S", interface.name] for interface in physical(self)}
        if not self._commands:
            raise AbsentNow("no physical Ethernet interface is up")
        for name in self.read():
            interface, _, total = name.partition(" ")
            self.add(Quantity(name, total, "1", device=interface))
        if not self.quantities:
            raise Absent("no interface's driver has a known name for pause frames, discards or ECN marks")
        self.details = ", ".join(self.quantities)

    def read(self) -> dict[str, float]:
        values = {}
        for interface, argv in self._commands.items():
            text = output(argv)
            for total, lines in _LINES.items():
                if counts := lines.findall(text):
                    values[f"{interface} {total}"] = float(sum(map(int, counts)))
        return values
