"""Counter sources on trees of /sys and /proc, and on stand-ins for programs."""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from experiments.common.counter_fixes import OPEN_RAPL
from tests.workers.hosts.trees import RANGE_UJ, energy, rapl, replace, write
from workers.hosts.counters.board import Ipmi, Papi, Slurm
from workers.hosts.counters.cray import Cray
from workers.hosts.counters.ethernet import Drivers, Ethernet
from workers.hosts.counters.filesystems import Lustre, Nfs
from workers.hosts.counters.gpu import Amdgpu, Nvml, Rocm
from workers.hosts.counters.ports import Ports, Slingshot
from workers.hosts.counters.processor import Frequency, Temperature, Throttling
from workers.hosts.counters.rapl import Rapl
from workers.hosts.counters.source import LONGEST_GAP_S, NO_VALUE, Absent, AbsentNow, Meter, Quantity, Source

NET, PORT = "sys/class/net/eth0", "sys/class/infiniband/mlx5_0/ports/1"
Values = dict[str, Any]


def measured(source: Source, *steps: Mapping[str, object]) -> Values:
    """Return values or reasons of a source, read at every change of its tree."""
    source.probe()
    source.begin()
    for files in steps:
        for name, content in files.items():
            replace(source.root / name, content)
        source.sample()
    return {row["name"]: row.get("value", row.get("absent")) for row in source.end()}


def why_absent(source: Source) -> str:
    with pytest.raises(Absent) as absent:
        source.probe()
    return absent.value.reason


def command(root: Path, name: str, text: str) -> Path:
    """Write a stand-in for a program."""
    path = write(root, {f"usr/bin/{name}": f"#!/bin/sh\n{text}"}) / f"usr/bin/{name}"
    path.chmod(0o755)
    return path


# What a counter does between two reads


def meter(*reads: float | None, gap_s: float = 1.0, **fields: Any) -> Meter:
    made = Meter(Quantity("a", "a", "B", **fields))
    for number, raw in enumerate(reads):
        made.add(raw, number * gap_s)
    return made


def test_meter_adds_up_every_wrap() -> None:
    assert meter(90, 10, 60, 5, wraps_at=100).value == 20 + 50 + 45
    assert meter((1 << 32) - 10, 90, may_have_32_bits=True).value == 100


@pytest.mark.parametrize(
    ("reads", "fields", "word"),
    [
        ((50, 10), {}, "reset"),
        ((50, 10), {"wraps_at": 100}, "reset"),
        (((1 << 31), 10), {"may_have_32_bits": True}, "reset"),
        (((1 << 40), 10), {"may_have_32_bits": True}, "reset"),
        ((5, None), {}, "vanished"),
        ((None,), {}, "cannot be read"),
        ((5, NO_VALUE), {}, "no value"),
        ((5, float(NO_VALUE)), {"kind": "gauge"}, "no value"),
        ((5, 255), {"sticks_at": 255}, "stuck"),
    ],
)
def test_meter_has_a_reason_when_the_value_is_lost(reads: tuple[Any, ...], fields: Any, word: str) -> None:
    lost = meter(*reads, **fields)
    assert word in lost.reason
    lost.add(1000, 100.0)
    assert word in lost.reason


@pytest.mark.parametrize("raw", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("kind", ["counter", "gauge", "power"])
def test_meter_refuses_what_is_no_number(raw: float, kind: str) -> None:
    assert meter(1.0, raw, 3.0, kind=kind).reason == "it is no number"


def test_meter_refuses_a_wrapping_counter_that_was_read_too_rarely() -> None:
    assert "more than once" in meter(10, 20, gap_s=LONGEST_GAP_S + 1, wraps_at=100).reason
    assert meter(10, 20, gap_s=LONGEST_GAP_S + 1).value == 10


def test_meter_takes_a_step_that_no_device_can_make_for_a_reset() -> None:
    fields = {"wraps_at": 1_000_000, "most_per_s": 500.0}
    assert meter(999_900, 300, **fields).value == 400, "a wrap at a possible rate"
    assert "reset" in meter(600_000, 10, **fields).reason, "less than half a range, and too much of a second"
    assert meter(600_000, 10, gap_s=50.0, **{**fields, "most_per_s": 10_000.0}).value == 400_010
    counter_32_bit = {"may_have_32_bits": True, "most_per_s": 250e6}
    assert "reset" in meter(3_500_000_000, 1000, **counter_32_bit).reason
    assert meter((1 << 32) - 1000, 1000, **counter_32_bit).value == 2000


def test_meter_weighs_gauges_by_time_and_adds_up_power() -> None:
    assert meter(10, 20, 30, kind="gauge").value == 20
    assert meter(100, 300, gap_s=2.0, kind="power").value == 400


# Energy


def test_rapl_adds_up_sockets_and_keeps_their_parts_apart(tmp_path: Path) -> None:
    zones = {**rapl("0", "package-0", RANGE_UJ - 1_000_000), **rapl("1", "package-1", 0), **rapl("0:0", "core", 0)}
    zones |= {**rapl("0:1", "dram", 0), **rapl("2", "psys", 0)}
    mmio = {
        name.replace("intel-rapl:", "intel-rapl-mmio:"): content for name, content in rapl("0", "package-0", 0).items()
    }
    source = Rapl(str(write(tmp_path, {**zones, **mmio})))
    moved = {"0": 2_000_000, "1": 5_000_000, "0:0": 1_000_000, "0:1": 700_000}
    values = measured(source, {str(energy(Path(), zone)): value for zone, value in moved.items()})
    assert values == pytest.approx(
        {"package-0": 3.0, "package-1": 5.0, "core of intel-rapl:0:0": 1.0, "dram of intel-rapl:0:1": 0.7}
    )
    assert {q.total for q in source.quantities.values()} == {"package_j", "core_j", "dram_j"}


def test_rapl_wraps_more_than_once_in_a_trial(tmp_path: Path) -> None:
    source = Rapl(str(write(tmp_path, rapl("0", "package-0", 90, range_uj=100))))
    file = str(energy(Path(), "0"))
    assert measured(source, {file: 30}, {file: 70}, {file: 10}) == pytest.approx({"package-0": 120e-6})


def test_rapl_tells_a_restart_of_the_meter_from_a_wrap(tmp_path: Path) -> None:
    """From 200 kJ to 0 in a range of 262 kJ would be a wrap of 62 kW."""
    zones = {**rapl("0", "package-0", 200_000_000_000), **rapl("1", "package-1", RANGE_UJ - 50_000_000)}
    values = measured(
        Rapl(str(write(tmp_path, zones))),
        {str(energy(Path(), "0")): 3_000_000, str(energy(Path(), "1")): 30_000_000},
    )
    assert values == {"package-0": "the counter was reset while the trial ran", "package-1": pytest.approx(80.0)}


def test_rapl_names_the_fix_when_only_root_may_read() -> None:
    script = (
        "import os, sys; os.getuid() or os.setuid(65534)\n"
        "from workers.hosts.counters.rapl import Rapl; from workers.hosts.counters.source import Absent\n"
        "try: Rapl(sys.argv[1]).probe()\nexcept Absent as e: print(e.reason, '|', e.fix, '|', e.guide)"
    )
    with tempfile.TemporaryDirectory() as root:  # pytest's own are closed to other users
        Path(root).chmod(0o755)
        write(Path(root), rapl("0", "package-0", 0))
        energy(Path(root), "0").chmod(0)
        command = ["/usr/bin/python3", "-c", script, root]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert said == f"readable by root only | {OPEN_RAPL} | let-users-read-rapl"


def test_rapl_loses_a_zone_that_vanishes(tmp_path: Path) -> None:
    source = Rapl(str(write(tmp_path, {**rapl("0", "package-0", 0), **rapl("1", "package-1", 0)})))
    source.probe()
    source.begin()
    energy(tmp_path, "1").unlink()
    assert [row.get("absent", "") for row in source.end()] == ["", "it vanished or became unreadable in the trial"]


def test_cray_meters_must_move(tmp_path: Path) -> None:
    files = {"energy": "100 J 1 us", "cpu_energy": "40 J 1 us", "accel0_energy": "30 J 1 us", "freshness": 7}
    write(tmp_path, {f"sys/cray/pm_counters/{name}": text for name, text in files.items()})
    later = {"energy": "150 J 2 us", "cpu_energy": "60 J 2 us", "accel0_energy": "45 J 2 us"}
    steps = {f"sys/cray/pm_counters/{name}": text for name, text in later.items()}
    with pytest.raises(Absent, match="freshness did not move"):
        measured(Cray(str(tmp_path)), steps)
    write(tmp_path, {f"sys/cray/pm_counters/{name}": text for name, text in files.items()})
    values = measured(Cray(str(tmp_path)), {**steps, "sys/cray/pm_counters/freshness": 8})
    assert values == {"energy": 50, "cpu_energy": 20, "accel0_energy": 15}


def test_cray_xc_has_one_accelerator_without_a_number(tmp_path: Path) -> None:
    files = {"cpu_energy": "40 J 1 us", "accel_energy": "30 J 1 us", "accel_power": "9 W 1 us", "freshness": 1}
    write(tmp_path, {f"sys/cray/pm_counters/{name}": text for name, text in files.items()})
    later = {"cpu_energy": "60 J 2 us", "accel_energy": "45 J 2 us", "freshness": 2}
    values = measured(Cray(str(tmp_path)), {f"sys/cray/pm_counters/{name}": text for name, text in later.items()})
    assert values == {"cpu_energy": 20, "accel_energy": 15}


def test_ipmi_gives_estimated_energy(tmp_path: Path) -> None:
    assert why_absent(Ipmi(str(tmp_path))) == "ipmitool is not installed"
    command(tmp_path, "ipmitool", "echo '    Instantaneous power reading:                   200 Watts'")
    source = Ipmi(str(tmp_path))
    source.probe()
    source.begin()
    time.sleep(0.1)
    source.sample()
    (row,) = source.end()
    assert row["trust"] == "estimated"
    assert row["value"] == pytest.approx(200 * row["seconds"])
    command(tmp_path, "ipmitool", "echo '    Instantaneous power reading:                     0 Watts'")
    assert "no power" in why_absent(Ipmi(str(tmp_path)))
    command(tmp_path, "ipmitool", "echo 'DCMI request failed' >&2; exit 1")
    assert why_absent(Ipmi(str(tmp_path))) == "ipmitool failed: DCMI request failed"


def test_slurm_reads_the_energy_of_a_job_on_its_first_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert "no job" in why_absent(Slurm(str(tmp_path)))
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    command(tmp_path, "sacct", f"cat {tmp_path}/joules")
    write(tmp_path, {"joules": 0})
    assert "AcctGatherEnergyType" in why_absent(Slurm(str(tmp_path)))
    write(tmp_path, {"joules": 1000})
    assert measured(Slurm(str(tmp_path)), {"joules": 1500}) == {"job": 500}
    monkeypatch.setenv("SLURM_NODEID", "1")
    assert "first host" in why_absent(Slurm(str(tmp_path)))


# Networks


def interface(name: str, **statistics: int) -> dict[str, object]:
    counts = {f"{side}_{what}": 0 for side in ("rx", "tx") for what in ("bytes", "packets", "dropped", "errors")}
    files = {f"statistics/{file}": count for file, count in {**counts, **statistics}.items()}
    files |= {"type": 1, "carrier": 1, "speed": 1000, "device/vendor": "0x8086"}
    return {f"sys/class/net/{name}/{file}": content for file, content in files.items()}


def test_ethernet_counts_physical_interfaces_once(tmp_path: Path) -> None:
    bond = {**interface("bond0"), "sys/class/net/bond0/bonding/mode": "active-backup 1"}
    ipoib = {**interface("ib0"), "sys/class/net/ib0/type": 32}
    virtual = {name: text for name, text in interface("br0").items() if "device" not in name}
    trees = {**interface("eth0", tx_bytes=(1 << 32) - 100), **interface("eth1"), **bond, **ipoib, **virtual}
    values = measured(Ethernet(str(write(tmp_path, trees))), {f"{NET}/statistics/tx_bytes": 50})
    assert {name.partition(" ")[0] for name in values} == {"eth0", "eth1"}
    assert values["eth0 tx_bytes"] == 150
    assert values["eth1 tx_bytes"] == 0


@pytest.mark.parametrize("speed", [-1, "", 65535, 4294967295])
def test_ethernet_takes_an_unknown_speed(tmp_path: Path, speed: object) -> None:
    source = Ethernet(str(write(tmp_path, {**interface("eth0"), f"{NET}/speed": speed})))
    source.probe()
    assert {quantity.limit for quantity in source.quantities.values()} == {0.0}
    write(tmp_path, {f"{NET}/carrier": 0})
    assert why_absent(Ethernet(str(tmp_path))) == "no physical Ethernet interface is up"


def test_drivers_report_pauses_discards_and_marks_under_known_names(tmp_path: Path) -> None:
    write(tmp_path, {**interface("eth0"), "count": 10})
    named = "     rx_prio3_pause: $n\n     tx_discards_phy: $n\n     rx_out_of_buffer: 5\n     rx_ecn_mark: 2\n     rx_pause_strange: 900"
    command(tmp_path, "ethtool", f'n=$(cat {tmp_path}/count)\nprintf "{named}\\n"')
    assert measured(Drivers(str(tmp_path)), {"count": 25}) == {
        "eth0 ethernet_pauses": 15,
        "eth0 ethernet_discards": 15,
        "eth0 ethernet_ecn_marks": 0,
    }
    command(tmp_path, "ethtool", "echo '     rx_pause_strange: 900'")
    assert "known name" in why_absent(Drivers(str(tmp_path)))


def test_drivers_of_intel_have_names_with_prefix_or_ending(tmp_path: Path) -> None:
    """As i40e and ice print them; sent pauses and their ends are other counters."""
    i40e = (
        "port.link_xoff_rx: 3\\n     port.link_xoff_tx: 90\\n     port.rx_priority_3_xoff: 4\\n     rx_missed_errors: 5"
    )
    ice = "link_xoff_rx.nic: 7\\n     link_xon_rx.nic: 70\\n     rx_priority_0_xoff.nic: 1\\n     rx_dropped.nic: 2"
    write(tmp_path, {**interface("eth0"), **interface("eth1")})
    command(
        tmp_path, "ethtool", f'[ $2 = eth0 ] && printf "NIC statistics:\\n     {i40e}\\n" || printf "     {ice}\\n"'
    )
    source = Drivers(str(tmp_path))
    source.probe()
    assert source.read() == {
        "eth0 ethernet_pauses": 7,
        "eth0 ethernet_discards": 5,
        "eth1 ethernet_pauses": 8,
        "eth1 ethernet_discards": 2,
    }


def test_ethernet_tells_a_reset_from_a_wrap_by_the_speed(tmp_path: Path) -> None:
    trees = {
        **interface("eth0", tx_bytes=3_500_000_000, tx_packets=3_000_000_000),
        **interface("eth1", rx_bytes=1 << 40),
    }
    source = Ethernet(str(write(tmp_path, trees)))
    steps = {f"{NET}/statistics/tx_bytes": 9, f"{NET}/statistics/tx_packets": 9}
    values = measured(source, {**steps, "sys/class/net/eth1/statistics/rx_bytes": 9})
    lost = {name: value for name, value in values.items() if value}
    assert lost == dict.fromkeys(
        ("eth0 tx_bytes", "eth0 tx_packets", "eth1 rx_bytes"), "the counter was reset while the trial ran"
    )


def test_amdgpu_reads_each_card_and_estimates_its_energy(tmp_path: Path) -> None:
    assert why_absent(Amdgpu(str(tmp_path))) == "this host has no AMD GPU"
    cards = {"hwmon3/name": "amdgpu", "hwmon3/power1_average": 200_000_000, "hwmon3/device/gpu_busy_percent": 50}
    cards |= {"hwmon4/name": "amdgpu", "hwmon4/power1_input": 90_000_000, "hwmon4/device/mem_info_vram_used": 1 << 30}
    source = Amdgpu(str(write(tmp_path, {f"sys/class/hwmon/{name}": value for name, value in cards.items()})))
    source.probe()
    source.begin()
    time.sleep(0.05)
    source.sample()
    rows = {row["name"]: row for row in source.end()}
    assert rows["GPU 0 energy"]["value"] == pytest.approx(200 * rows["GPU 0 energy"]["seconds"])
    assert rows["GPU 0 energy"]["trust"] == "estimated"
    assert rows["GPU 0 use"]["value"] == 0.5
    assert (rows["GPU 1 energy"]["peak"], rows["GPU 1 memory"]["value"]) == (90, 1 << 30)


def port(folder: str = PORT, layer: str = "InfiniBand", rate: str = "100 Gb/sec (4X EDR)", **counts: object) -> Values:
    base = {"port_xmit_data": 0, "port_rcv_data": 0, "port_xmit_packets": 0, "port_rcv_packets": 0, "port_xmit_wait": 0}
    errors = {
        "symbol_error": 0,
        "link_error_recovery": 0,
        "link_downed": 0,
        "port_rcv_errors": 0,
        "port_xmit_discards": 0,
    }
    files = {f"{folder}/counters/{name}": count for name, count in {**base, **errors, **counts}.items()}
    return {**files, f"{folder}/state": "4: ACTIVE", f"{folder}/link_layer": layer, f"{folder}/rate": rate}


def test_ports_count_words_of_two_devices(tmp_path: Path) -> None:
    second = "sys/class/infiniband/mlx5_1/ports/1"
    down = {**port("sys/class/infiniband/mlx5_2/ports/1"), "sys/class/infiniband/mlx5_2/ports/1/state": "1: DOWN"}
    roce = port(second, layer="Ethernet", rate="25 Gb/sec (1X EDR)", lid="0x0")
    source = Ports(str(write(tmp_path, {**port(), **roce, **down})))
    steps = {f"{PORT}/counters/port_xmit_data": 1000, f"{second}/counters/port_xmit_data": 500}
    values = measured(source, {**steps, f"{PORT}/counters/port_xmit_wait": 7})
    assert values["mlx5_0/1 port_xmit_data"] == 4000
    assert values["mlx5_1/1 port_xmit_data"] == 2000
    assert values["mlx5_0/1 port_xmit_wait"] == 7
    assert source.details == "mlx5_0/1 (InfiniBand, 100 Gb/sec), mlx5_1/1 (RoCE, 25 Gb/sec)"
    assert source.quantities["mlx5_0/1 port_xmit_data"].limit == 12.5e9


def test_ports_name_stuck_counters_and_those_that_the_device_lacks(tmp_path: Path) -> None:
    stuck = port(port_rcv_data=(1 << 32) - 1, symbol_error=65535, port_xmit_wait="")
    source = Ports(str(write(tmp_path, stuck)))
    values = measured(source)
    assert "stuck" in values["mlx5_0/1 port_rcv_data"]
    assert "stuck" in values["mlx5_0/1 symbol_error"]
    assert source.missing == {"fabric_wait_ticks": "mlx5_0/1 does not count port_xmit_wait"}


def test_ports_take_files_that_exist_and_cannot_be_read(tmp_path: Path) -> None:
    """EINVAL: the file is there, its read fails."""
    write(tmp_path, port())
    broken = tmp_path / PORT / "counters/port_xmit_wait"
    broken.unlink()
    broken.mkdir()
    source = Ports(str(tmp_path))
    assert measured(source)["mlx5_0/1 port_xmit_data"] == 0
    assert source.missing == {"fabric_wait_ticks": "mlx5_0/1 does not count port_xmit_wait"}


@pytest.mark.parametrize("folder", [PORT, "sys/class/infiniband/mlx5_0"])
def test_ports_find_the_transport_s_counters_at_port_or_device(tmp_path: Path, folder: str) -> None:
    names = {"lifespan": 10, "packet_seq_err": 3, "rp_cnp_handled": 0, "duplicate_request": 5}
    source = Ports(str(write(tmp_path, {**port(), **{f"{folder}/hw_counters/{name}": n for name, n in names.items()}})))
    values = measured(source, {f"{folder}/hw_counters/packet_seq_err": 13, f"{folder}/hw_counters/rp_cnp_handled": 4})
    transport = {name.split()[1]: value for name, value in values.items() if "packet_seq" in name or "cnp" in name}
    assert transport == {"packet_seq_err": 10, "rp_cnp_handled": 4}


def test_ports_wait_at_the_end_until_the_device_repeats_no_values(tmp_path: Path) -> None:
    """Values of hw_counters are those of up to ``lifespan`` milliseconds ago."""
    counter = f"{PORT}/hw_counters/packet_seq_err"
    source = Ports(str(write(tmp_path, {**port(), f"{PORT}/hw_counters/lifespan": 80, counter: 3})))
    source.probe()
    source.begin()
    refresh = threading.Timer(0.03, replace, (tmp_path / counter, 13))
    refresh.start()
    rows = {row["name"]: row["value"] for row in source.end()}
    refresh.join()
    assert rows["mlx5_0/1 packet_seq_err"] == 10


def test_ports_count_what_a_device_has_at_port_and_device_once(tmp_path: Path) -> None:
    device = "sys/class/infiniband/mlx5_0"
    counts = {f"{PORT}/hw_counters/to_retransmits": 4, f"{device}/hw_counters/to_retransmits": 4}
    source = Ports(str(write(tmp_path, {**port(), **counts, f"{device}/hw_counters/rx_cnp_pkts": 9})))
    source.probe()
    transport = [
        name
        for name, quantity in source.quantities.items()
        if quantity.total in ("fabric_cnps", "fabric_retransmissions")
    ]
    assert transport == ["mlx5_0/1 to_retransmits", "mlx5_0 rx_cnp_pkts"]


def test_ports_of_omni_path_and_hosts_without_ports(tmp_path: Path) -> None:
    assert why_absent(Ports(str(tmp_path))) == "this host has no InfiniBand, RoCE or Omni-Path device"
    source = Ports(str(write(tmp_path, port("sys/class/infiniband/hfi1_0/ports/1"))))
    source.probe()
    assert source.details == "hfi1_0/1 (Omni-Path, 100 Gb/sec)"


@pytest.mark.parametrize(
    ("layer", "rate", "limit"),
    [
        ("InfiniBand", "400 Gb/sec (4X NDR)", 50e9),
        ("InfiniBand", "40 Gb/sec (4X QDR)", 4e9),
        ("InfiniBand", "10 Gb/sec (4X)", 1e9),
        ("Ethernet", "40 Gb/sec (4X QDR)", 5e9),
        ("InfiniBand", "", 0.0),
    ],
)
def test_ports_can_send_their_rate_without_line_coding(tmp_path: Path, layer: str, rate: str, limit: float) -> None:
    source = Ports(str(write(tmp_path, port(layer=layer, rate=rate))))
    source.probe()
    assert source.quantities["mlx5_0/1 port_xmit_data"].limit == limit


def own_names(device: str, layer: str, **counts: int) -> Values:
    """Return the tree of a port whose driver has names of its own."""
    folder = f"sys/class/infiniband/{device}/ports/1"
    files = {f"{folder}/hw_counters/{name}": count for name, count in counts.items()}
    state = {"state": "4: ACTIVE", "link_layer": layer, "rate": "100 Gb/sec (4X EDR)"}
    return {**files, **{f"{folder}/{name}": text for name, text in state.items()}}


def test_ports_of_other_drivers_have_bytes_beside_those_of_mlx5(tmp_path: Path) -> None:
    octets = {"ip4OutOctets": 1000, "ip6OutOctets": 10, "ip4InOctets": 0, "ip6InOctets": 0}
    packets = {"ip4OutPkts": 1, "ip6OutPkts": 0, "ip4InPkts": 0, "ip6InPkts": 0}
    efa = own_names("rdmap0s6", "Unspecified", tx_bytes=1000, rx_bytes=0, tx_pkts=9, rx_pkts=0, retrans_pkts=1)
    source = Ports(str(write(tmp_path, {**port(), **own_names("irdma0", "Ethernet", **octets, **packets), **efa})))
    (tmp_path / "sys/class/infiniband/rdmap0s6/device").mkdir()
    (tmp_path / "sys/class/infiniband/rdmap0s6/device/driver").symlink_to("../../../../bus/pci/drivers/efa")
    source.probe()
    assert source.missing == {}
    assert "irdma0/1 (RoCE, 100 Gb/sec)" in source.details
    assert "rdmap0s6/1 (efa, 100 Gb/sec)" in source.details
    source.begin()
    folder = "sys/class/infiniband/{}/ports/1/hw_counters/{}"
    moved = {("irdma0", "ip4OutOctets"): 3000, ("irdma0", "ip6OutOctets"): 15, ("rdmap0s6", "tx_bytes"): 5000}
    for (device, name), count in {**moved, ("rdmap0s6", "retrans_pkts"): 4}.items():
        replace(tmp_path / folder.format(device, name), count)
    replace(tmp_path / f"{PORT}/counters/port_xmit_data", 25)
    rows = source.end()
    sent = {row["name"]: (row["value"], row["trust"]) for row in rows if row["total"] == "fabric_sent_bytes"}
    assert sent == {
        "mlx5_0/1 port_xmit_data": (100, "measured"),
        "irdma0/1 ip4OutOctets": (2000, "estimated"),
        "irdma0/1 ip6OutOctets": (5, "estimated"),
        "rdmap0s6/1 tx_bytes": (4000, "measured"),
    }
    assert sum(row["value"] for row in rows if row["total"] == "fabric_retransmissions") == 3


def test_ports_without_any_bytes_name_the_reason(tmp_path: Path) -> None:
    source = Ports(str(write(tmp_path, {**port(), **own_names("rxe0", "Ethernet", sent_pkts=5)})))
    source.probe()
    assert source.missing["fabric_sent_bytes"] == "rxe0/1 does not count port_xmit_data"
    assert "fabric_wait_ticks" not in source.missing, "RoCE has no credits to wait for"


def test_slingshot_reads_octets_under_known_names(tmp_path: Path) -> None:
    folder = "sys/class/cxi/cxi0/device/telemetry"
    write(tmp_path, {f"{folder}/{name}": "5@1.0" for name in ("hni_sts_strange", "pct_octets_new")})
    assert why_absent(Slingshot(str(tmp_path))).endswith("under a known name, but pct_octets_new, hni_sts_strange")
    write(tmp_path, {f"{folder}/hni_tx_ok_octets": "100@1.0"})
    assert measured(Slingshot(str(tmp_path)), {f"{folder}/hni_tx_ok_octets": "900@2.0"}) == {
        "cxi0 hni_tx_ok_octets": 800
    }


# Processor, GPU, files


def test_processor_sources_read_their_files(tmp_path: Path) -> None:
    cpus = {f"sys/devices/system/cpu/cpu{n}/cpufreq/scaling_cur_freq": 3_000_000 for n in range(64)}
    throttle = "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count"
    thread: Values = {throttle.replace("cpu0", "cpu32"): 4}
    for cpu in ("cpu0", "cpu32"):
        thread[f"sys/devices/system/cpu/{cpu}/topology/thread_siblings_list"] = "0,32"
    chip = {"sys/class/hwmon/hwmon0/name": "coretemp", "sys/class/hwmon/hwmon0/temp1_input": 61000}
    disk = {"sys/class/hwmon/hwmon1/name": "nvme", "sys/class/hwmon/hwmon1/temp1_input": 90000}
    root = str(write(tmp_path, {**cpus, **thread, throttle: 4, **chip, **disk}))
    assert set(measured(Frequency(root), {}).values()) == {3e9}
    assert measured(Throttling(root), {throttle: 9}) == {"cpu0": 5}
    assert measured(Temperature(root), {}) == {"hwmon0 temp1_input": 61}
    assert "virtual machines" in why_absent(Frequency(str(tmp_path / "none")))


NVML = """
#include <stddef.h>
static unsigned long long joules = 1000;
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = (void *)(size_t)(i + 1); return 0; }
int nvmlDeviceGetTotalEnergyConsumption(void *d, unsigned long long *mj) {
    if (d == (void *)2) return 3;
    joules += 500; *mj = joules * 1000; return 0;
}
int nvmlDeviceGetPowerUsage(void *d, unsigned *mw) { *mw = 70000; return 0; }
int nvmlDeviceGetUtilizationRates(void *d, unsigned *u) { if (d == (void *)2) return 3; u[0] = 40; u[1] = 9; return 0; }
int nvmlDeviceGetMemoryInfo(void *d, unsigned long long *m) { m[0] = 8; m[1] = 6; m[2] = 2; return 0; }
int nvmlDeviceGetClockInfo(void *d, int t, unsigned *mhz) { *mhz = 1410; return 0; }
"""


def test_nvml_reads_what_each_gpu_supports(tmp_path: Path) -> None:
    assert why_absent(Nvml(str(tmp_path))) == "this host has no NVIDIA driver"
    write(tmp_path, {"nvml.c": NVML, "usr/lib/here": ""})
    library = tmp_path / "usr/lib/libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "nvml.c"], check=True)
    source = Nvml(str(tmp_path))
    source.probe()
    source.begin()
    time.sleep(0.1)
    source.sample()
    rows = {row["name"]: row for row in source.end()}
    values = {name: row["value"] for name, row in rows.items()}
    assert values["GPU 0 energy"] > 0
    assert values["GPU 1 power"] == pytest.approx(70 * rows["GPU 1 power"]["seconds"]), "it has no counter of energy"
    assert (rows["GPU 0 energy"]["trust"], rows["GPU 1 power"]["trust"]) == ("measured", "estimated")
    assert not {"GPU 0 power", "GPU 1 energy"} & set(values)
    assert "gpu_j" not in source.missing
    assert values["GPU 0 use"] == pytest.approx(0.4)
    assert "GPU 1 use" not in values  # MIG
    assert source.missing["gpu_share"] == "GPU 1 does not report it"
    assert source.missing["gpu_throttled_share"] == "GPU 0 does not report it"  # an older driver


def test_rocm_leaves_out_what_is_not_available(tmp_path: Path) -> None:
    fields = {"Accumulated Energy (uJ)": "1000000", "GPU use (%)": "N/A", "VRAM Total Used Memory (B)": "2048"}
    write(tmp_path, {"said": json.dumps({"card0": fields, "system": {}})})
    command(tmp_path, "rocm-smi", f"echo 'WARNING: low power'; cat {tmp_path}/said")
    source = Rocm(str(tmp_path))
    later = json.dumps({"card0": {**fields, "Accumulated Energy (uJ)": "4000000"}})
    assert measured(source, {"said": later}) == {"card0 energy": 3.0, "card0 memory": 2048}
    assert "before and after" in measured(Rocm(str(tmp_path)))["card0 memory"]
    assert source.missing == {"gpu_share": "card0 does not report it"}


def test_nfs_and_lustre_count_bytes_of_their_mounts(tmp_path: Path) -> None:
    mountstats = (
        "device rootfs mounted on / with fstype rootfs\n"
        "device srv:/a b mounted on /home with fstype nfs4 statvers=1.1\n\tbytes:\t1 2 3 4 {} {} 7 8\n"
        "\tper-op statistics\n\t        READ: 9 9 0 1500 41000 5 20 {} 0\n\t       WRITE: 4 4 0 1500 41000 5 20 30 0\n"
        "device tmpfs mounted on /tmp with fstype tmpfs\n"
    )
    stats = "snapshot_time 1 s\nread_bytes 5 samples [bytes] 1 4096 {}\n"
    file = "proc/fs/lustre/llite/scratch-1/stats"
    write(tmp_path, {"proc/self/mountstats": mountstats.format(100, 50, 70), file: stats.format(1000)})
    assert measured(Nfs(str(tmp_path)), {"proc/self/mountstats": mountstats.format(300, 90, 570)}) == {
        "/home read": 200,
        "/home written": 40,
        "/home time": 0.5,
    }
    assert measured(Lustre(str(tmp_path)), {file: stats.format(5000)}) == {
        "scratch-1 read": 4000,
        "scratch-1 written": 0,
    }
    assert why_absent(Nfs(str(tmp_path / "none"))) == "no NFS is mounted"


def mount(where: str, read: int, export: str = "srv:/home") -> str:
    operations = "\tper-op statistics\n\t        READ: 9 9 0 1500 41000 5 20 100 0\n"
    return f"device {export} mounted on {where} with fstype nfs4 statvers=1.1\n\tbytes:\t1 2 3 4 {read} 0 7 8\n{operations}"


def info(where: str, device: str, kind: str = "nfs4") -> str:
    return f"30 1 {device} / {where} rw,relatime shared:1 - {kind} srv:/home rw\n"


def test_nfs_counts_mounts_of_one_superblock_once(tmp_path: Path) -> None:
    blank = r"/opt/my\040apps"
    infos = info("/home/ada", "0:51") + info("/home/bob", "0:51") + info(blank, "0:52")
    stats = {"proc/self/mountstats": mount("/home/ada", 10) + mount("/home/bob", 10) + mount(blank, 0)}
    source = Nfs(str(write(tmp_path, {"proc/self/mountinfo": infos, **stats})))
    later = mount("/home/ada", 4106) + mount("/home/bob", 4106) + mount(blank, 5)
    values = measured(source, {"proc/self/mountstats": later})
    assert {name: value for name, value in values.items() if name.endswith("read")} == {
        "/home/ada read": 4096,
        "/opt/my apps read": 5,
    }


def test_nfs_counts_what_is_mounted_while_the_program_runs(tmp_path: Path) -> None:
    infos, first = info("/home/ada", "0:51"), mount("/home/ada", 10)
    source = Nfs(str(write(tmp_path, {"proc/self/mountinfo": infos, "proc/self/mountstats": first})))
    later = {"proc/self/mountinfo": infos + info("/data", "0:60"), "proc/self/mountstats": first + mount("/data", 900)}
    values = measured(source, later)
    assert (values["/home/ada read"], values["/data read"], values["/data time"]) == (0, 900, 0.1)


def test_nfs_counts_a_mount_above_the_automounter_of_its_path(tmp_path: Path) -> None:
    infos = {"proc/self/mountinfo": info("/data", "0:40", "autofs") + info("/data", "0:60")}
    automounter = "device systemd-1 mounted on /data with fstype autofs\n"
    first = {"proc/self/mountstats": automounter + mount("/data", 10)}
    source = Nfs(str(write(tmp_path, {**infos, **first})))
    values = measured(source, {"proc/self/mountstats": automounter + mount("/data", 4106)})
    assert values["/data read"] == 4096


@pytest.mark.parametrize(
    ("where", "kind"), [("/home", AbsentNow), ("/proc/sys/fs/binfmt_misc", Absent)], ids=["home", "of the kernel"]
)
def test_nfs_may_come_later_if_an_automounter_runs(tmp_path: Path, where: str, kind: type[Absent]) -> None:
    source = Nfs(
        str(write(tmp_path, {"proc/self/mountinfo": info(where, "0:40", "autofs"), "proc/self/mountstats": ""}))
    )
    with pytest.raises(Absent) as absent:
        source.probe()
    assert type(absent.value) is kind


def test_memory_bandwidth_is_named_as_missing(tmp_path: Path) -> None:
    assert why_absent(Papi(str(tmp_path))) == "LIKWID and PAPI were not found"
    command(tmp_path, "likwid-perfctr", "exit 0")
    assert "does not run it" in why_absent(Papi(str(tmp_path)))


def test_command_ends_after_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.hosts.counters.source.output.__defaults__", (0.2,))
    command(tmp_path, "ipmitool", "exec sleep 30")
    began = time.monotonic()
    assert "did not answer" in why_absent(Ipmi(str(tmp_path)))
    assert time.monotonic() - began < 10
