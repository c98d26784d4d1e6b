"""Sources on hosts of random moving devices, against plain arithmetic."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.workers.hosts.trees import replace, write
from workers.hosts.counters.cray import Cray
from workers.hosts.counters.ethernet import Ethernet
from workers.hosts.counters.filesystems import Lustre, Nfs
from workers.hosts.counters.ports import Ports, Slingshot
from workers.hosts.counters.processor import Throttling
from workers.hosts.counters.rapl import Rapl
from workers.hosts.counters.source import Source

STEPS = 12
LOST = "lost"


@dataclass
class Device:
    """A counter of a device: its register, and what it counted in all steps."""

    file: str
    total: str
    register: int
    scale: float = 1.0
    wraps_at: int = 0
    largest: int = 1000
    """Step between two reads."""
    text: str = "{}"
    steps: int = 0

    def move(self, chance: random.Random) -> None:
        step = chance.randrange(self.largest)
        self.steps += step
        self.register = (self.register + step) % self.wraps_at if self.wraps_at else self.register + step

    @property
    def content(self) -> str:
        return self.text.format(self.register)


Host = tuple[type[Source], list[Device], dict[str, object]]


def rapl(chance: random.Random) -> Host:
    devices, names = [], dict[str, object]()
    for socket in range(chance.choice((1, 2, 4))):
        parts = {f"{socket}": f"package-{socket}", f"{socket}:0": "core", f"{socket}:1": "dram"}
        for zone, name in parts.items():
            folder = f"sys/class/powercap/intel-rapl:{zone}"
            range_uj = chance.choice((262_143_328_850, 65_712_999_613, 4_000_000_000))
            names |= {f"{folder}/name": name, f"{folder}/max_energy_range_uj": range_uj}
            start, total = range_uj - chance.randrange(500_000_000), f"{name.partition('-')[0]}_j"
            devices.append(Device(f"{folder}/energy_uj", total, start, 1e-6, range_uj, 400_000_000))
    return Rapl, devices, names


def ports(chance: random.Random) -> Host:
    devices, facts = [], dict[str, object]()
    counters = {
        "port_xmit_data": ("fabric_sent_bytes", 4),
        "port_rcv_data": ("fabric_received_bytes", 4),
        "port_xmit_wait": ("fabric_wait_ticks", 1),
        "port_rcv_errors": ("fabric_errors", 1),
        "port_xmit_discards": ("fabric_discards", 1),
    }
    for name in chance.sample(("mlx5_0", "mlx5_1", "hfi1_0", "mlx4_0", "qib0"), chance.choice((1, 2, 3))):
        for number in range(1, chance.choice((2, 3))):
            folder = f"sys/class/infiniband/{name}/ports/{number}"
            facts |= {
                f"{folder}/state": "4: ACTIVE",
                f"{folder}/rate": "200 Gb/sec (4X HDR)",
                f"{folder}/link_layer": "InfiniBand",
            }
            for file, (total, scale) in counters.items():
                start = chance.randrange(1 << 50) if file.endswith("data") else chance.randrange(100)
                largest = 1 << 33 if file.endswith("data") else 50
                devices.append(Device(f"{folder}/counters/{file}", total, start, scale, 0, largest))
            retransmissions = f"{folder}/hw_counters/packet_seq_err"
            devices.append(Device(retransmissions, "fabric_retransmissions", chance.randrange(99)))
    return Ports, devices, facts


def ethernet(chance: random.Random) -> Host:
    devices, facts = [], dict[str, object]()
    for number in range(chance.choice((1, 2, 5))):
        folder = f"sys/class/net/eno{number}"
        facts |= {f"{folder}/type": 1, f"{folder}/carrier": 1, f"{folder}/speed": 10_000, f"{folder}/device/vendor": 0}
        has_32_bits = chance.random() < 0.5
        for side, way in (("tx", "sent"), ("rx", "received")):
            for what, largest in (("bytes", 200_000_000), ("packets", 400_000)):
                start = (1 << 32) - chance.randrange(largest) if has_32_bits else chance.randrange(1 << 45)
                wraps_at = 1 << 32 if has_32_bits else 0
                total = f"ethernet_{way}_{what}"
                devices.append(Device(f"{folder}/statistics/{side}_{what}", total, start, 1, wraps_at, largest))
            for what, total in (("dropped", "ethernet_drops"), ("errors", "ethernet_errors")):
                devices.append(Device(f"{folder}/statistics/{side}_{what}", total, chance.randrange(9), largest=3))
    return Ethernet, devices, facts


def cray(chance: random.Random) -> Host:
    totals = {"energy": "host_j", "cpu_energy": "package_j", "memory_energy": "dram_j"}
    totals |= {f"accel{number}_energy": "gpu_j" for number in range(chance.choice((1, 4)))}
    folder = "sys/cray/pm_counters"
    devices = [
        Device(f"{folder}/{name}", total, chance.randrange(1 << 30), text="{} J 1723 us")
        for name, total in totals.items()
    ]
    return Cray, [*devices, Device(f"{folder}/freshness", "", 5, largest=50)], {f"{folder}/accel0_power": "300 W 1 us"}


def slingshot(chance: random.Random) -> Host:
    folder = "sys/class/cxi/cxi{}/device/telemetry/hni_sts_{}_ok_octets"
    ways = {"tx": "slingshot_sent_bytes", "rx": "slingshot_received_bytes"}
    devices = [
        Device(folder.format(card, way), total, chance.randrange(1 << 50), largest=1 << 34, text="{}@1732.5")
        for card in range(chance.choice((1, 4)))
        for way, total in ways.items()
    ]
    return Slingshot, devices, {}


def throttling(chance: random.Random) -> Host:
    folder = "sys/devices/system/cpu/cpu{}"
    cores = range(chance.choice((2, 32)))
    devices = [
        Device(f"{folder.format(core)}/thermal_throttle/core_throttle_count", "throttle_events", chance.randrange(99))
        for core in cores
    ]
    threads = {f"{folder.format(len(cores) + core)}/thermal_throttle/core_throttle_count": 7 for core in cores}
    siblings = {
        f"{folder.format(cpu)}/topology/thread_siblings_list": f"{cpu % len(cores)},{cpu % len(cores) + len(cores)}"
        for cpu in range(2 * len(cores))
    }
    return Throttling, devices, {**threads, **siblings}


def lustre(chance: random.Random) -> Host:
    line = "snapshot_time 1 secs.nsecs\nread_bytes 5 samples [bytes] 1 4096 {}\nopen 9 samples [usec]"
    devices = [
        Device(
            f"proc/fs/lustre/llite/{mount}/stats", "lustre_read_bytes", chance.randrange(1 << 40), 1, 0, 1 << 30, line
        )
        for mount in chance.sample(("work-ff1", "scratch-ff2", "home-ff3"), chance.choice((1, 3)))
    ]
    return Lustre, devices, {}


HOSTS = (rapl, ports, ethernet, cray, slingshot, throttling, lustre)


def totals_of(source: Source) -> dict[str, float | str]:
    """Return the sum of each total at the end; LOST if a device has none."""
    totals: dict[str, float | str] = {}
    for row in source.end():
        before = totals.get(row["total"], 0.0)
        is_lost = "absent" in row or isinstance(before, str)
        totals[row["total"]] = LOST if is_lost or isinstance(before, str) else before + row["value"]
    return totals


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.__name__)
def test_totals_are_what_the_devices_counted(host: Callable[[random.Random], Host], seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    kind, devices, facts = host(chance)
    write(tmp_path, {**facts, **{device.file: device.content for device in devices}})
    source = kind(str(tmp_path))
    source.probe()
    source.begin()
    for _ in range(STEPS):
        for device in devices:
            device.move(chance)
            replace(tmp_path / device.file, device.content)
        source.sample()
    true: dict[str, float] = {}
    for device in devices:
        true[device.total] = true.get(device.total, 0.0) + device.steps * device.scale
    true.pop("", None)
    counted = totals_of(source)
    assert {total: counted[total] for total in true} == pytest.approx(true)
    if kind is Rapl:
        assert sum(meter.wraps for meter in source.meters.values()) >= len(devices) / 2, "the start is near the range"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.__name__)
def test_a_device_that_vanishes_or_restarts_loses_its_own_total_alone(
    host: Callable[[random.Random], Host], seed: int, tmp_path: Path
) -> None:
    chance = random.Random(100 + seed)
    kind, devices, facts = host(chance)
    for device in devices:  # far from a wrap
        device.register = (device.wraps_at or 1 << 40) // 3
    write(tmp_path, {**facts, **{device.file: device.content for device in devices}})
    source = kind(str(tmp_path))
    source.probe()
    source.begin()
    victim = chance.choice([device for device in devices if device.total])
    for step in range(STEPS):
        for device in devices:
            device.move(chance)
            if device is not victim or step < STEPS // 2:
                replace(tmp_path / device.file, device.content)
        if step == STEPS // 2:
            victim.register = 1
            if seed:
                replace(tmp_path / victim.file, victim.content)
            else:
                (tmp_path / victim.file).unlink()
        source.sample()
    counted = totals_of(source)
    assert counted[victim.total] == LOST
    others = {device.total for device in devices} - {victim.total, ""}
    for total in others:
        true = sum(device.steps * device.scale for device in devices if device.total == total)
        assert counted[total] == pytest.approx(true)


def nfs_text(mounts: dict[str, tuple[int, int]]) -> str:
    """Return /proc/self/mountstats of a kernel 6; operations in milliseconds."""
    lines = "device proc mounted on /proc with fstype proc\n"
    for mount, (read, waited_ms) in mounts.items():
        lines += f"device nas:/{mount} mounted on /mnt/{mount} with fstype nfs4 statvers=1.1\n\topts:\trw,vers=4.2\n\tage:\t7\n"
        lines += f"\tevents:\t1 2 3\n\tbytes:\t11 12 13 14 {read} 5 7 8\n\txprt:\ttcp 0 1 2\n\tper-op statistics\n"
        lines += f"\t        NULL: 0 0 0 0 0 0 0 0 0\n\t        READ: 5 5 0 900 4100 1 2 {waited_ms} 0\n"
        lines += f"\t       WRITE: 5 5 0 900 4100 1 2 {waited_ms} 0\n\n"
    return lines


def test_mounts_of_nfs_add_up_bytes_and_times(tmp_path: Path) -> None:
    chance = random.Random(7)
    mounts = {name: (chance.randrange(1 << 40), chance.randrange(1 << 30)) for name in ("home", "data", "soft")}
    file = "proc/self/mountstats"
    source = Nfs(str(write(tmp_path, {file: nfs_text(mounts)})))
    source.probe()
    source.begin()
    read, waited_ms = 0, 0
    for _ in range(STEPS):
        for name, (before, before_ms) in mounts.items():
            bytes_read, ms = chance.randrange(1 << 25), chance.randrange(900)
            mounts[name] = (before + bytes_read, before_ms + ms)
            read, waited_ms = read + bytes_read, waited_ms + 2 * ms
        replace(tmp_path / file, nfs_text(mounts))
        source.sample()
    counted = totals_of(source)
    assert counted == pytest.approx({"nfs_read_bytes": read, "nfs_written_bytes": 0, "nfs_wait_s": waited_ms / 1e3})
