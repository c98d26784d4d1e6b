"""Memory and time of an analysis are bounded for any capture."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zstandard

import analysis
from analysis.capture import compressed, decoder, formats
from analysis.capture.source import open_source
from analysis.packets import MOST_FLOWS, MOST_HOSTS, NO_FLOW
from analysis.traffic import matrices, rates
from analysis.traffic.matrices import MatrixAccumulator
from analysis.traffic.tcp import TcpAccumulator
from tests.analysis.capture import hostile

PACKETS = 400_000
"""28 MB of records."""
MOST_CPU_S = 10.0
MOST_RESIDENT_BYTES, PER_CONNECTION = 250_000_000, 1800

SCATTER = 1.05
"""Tolerance: the heap from which memory is taken differs between runs by some MB."""

MEASURE = """
import json, sys, time
from pathlib import Path
import analysis.command_line.commands  # imports what the command line does

def most_resident_bytes():
    status = Path("/proc/self/status").read_text()  # getrusage includes the peak of the parent process
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))

begin = time.process_time()
result = analysis.analyse(sys.argv[1])
print(json.dumps({
    "cpu_s": time.process_time() - begin, "resident": most_resident_bytes(),
    "connections": result.metrics["connections"],
    "packets": result.metrics["packets"], "trust": result.trust.verdict, "reasons": result.trust.reasons,
}))
"""


@pytest.fixture(scope="module", autouse=True)
def kernels() -> None:
    """Compile in another process: that takes time and memory of no capture."""
    subprocess.run([sys.executable, "-m", "analysis.warm_up"], check=True, timeout=140)


@pytest.mark.timeout(150)
@pytest.mark.parametrize("name", hostile.GENERATORS)
def test_a_hostile_capture_costs_little(tmp_path: Path, name: str) -> None:
    path = tmp_path / "hostile.pcap"
    path.write_bytes(hostile.GENERATORS[name](PACKETS))
    done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, check=True, timeout=140)
    costs = json.loads(done.stdout)
    assert costs["packets"] == {"wrapped_without_end": 5000, "zeros": 0}.get(name, PACKETS)
    assert costs["cpu_s"] < MOST_CPU_S
    assert costs["resident"] < SCATTER * (MOST_RESIDENT_BYTES + PER_CONNECTION * costs["connections"])
    if name in ("host_scan", "spoofed_hosts", "strangers", "host_pairs", "port_scan"):
        assert costs["connections"] in (MOST_HOSTS - 2, MOST_HOSTS - 1, MOST_FLOWS)
        assert costs["trust"] == "unusable"
    elif "chosen" in name:
        assert costs["trust"] == "unusable"
    elif name == "wrapped_without_end":
        assert costs["trust"] == "degraded"


def test_pairs_beyond_the_capacity_make_a_capture_unusable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pairs.pcap"
    path.write_bytes(hostile.host_pairs(5000))
    exact, bounded = MatrixAccumulator(), MatrixAccumulator(most_pairs=1024)
    table = analysis.read_capture(path)
    for accumulator in (exact, bounded):
        accumulator.update(table)
    assert exact.left_out() == {"missed_by_pairs": 0}
    assert bounded.left_out() == {"missed_by_pairs": 54 * (5000 - 1024)}
    monkeypatch.setattr(matrices.MatrixAccumulator.__init__, "__defaults__", (1024,))
    measured = analysis.analyse(path)
    assert measured.trust.verdict == "unusable"
    assert any("pairs of hosts" in reason for reason in measured.trust.reasons)


@pytest.mark.parametrize("beyond", [0, 1, 5000])
def test_hosts_beyond_the_capacity_make_a_capture_unusable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beyond: int
) -> None:
    monkeypatch.setattr(decoder, "MOST_HOSTS", 10_000)
    path = tmp_path / "spoofed.pcap"
    path.write_bytes(hostile.spoofed_hosts(9_999 + beyond))
    measured = analysis.analyse(path)
    assert measured.metrics["packets"] == 9_999 + beyond
    assert measured.metrics["connections"] == 9_999
    assert measured.capture["addresses_not_kept"] == beyond
    assert (measured.trust.verdict == "unusable") == (beyond > 0)


@pytest.mark.parametrize("beyond", [0, 1, 3000])
def test_connections_beyond_the_capacity_make_a_capture_unusable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beyond: int
) -> None:
    monkeypatch.setitem(TcpAccumulator.__init__.__kwdefaults__, "max_connections", 2000)
    path = tmp_path / "ports.pcap"
    path.write_bytes(hostile.port_scan(2000 + beyond))
    measured = analysis.analyse(path)
    assert (measured.metrics["packets"], measured.metrics["connections"]) == (2000 + beyond, 2000)
    assert (measured.trust.verdict == "unusable") == (beyond > 0)
    assert len(measured.trust.reasons) == (beyond > 0)


def test_peaks_are_lower_bounds_where_more_stamps_lie_in_a_window_than_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "stamps.pcap"
    path.write_bytes(hostile.port_scan(20_000))
    table = analysis.read_capture(path)
    member = np.zeros(len(table.flow_endpoints), np.bool_)
    exact, bounded = rates.RateAccumulator(), rates.RateAccumulator(most_stamps=1 << 12)
    for accumulator in (exact, bounded):
        accumulator.update(table, member)
    assert not exact.peaks_are_bounds
    assert bounded.peaks_are_bounds
    assert 0 < bounded.scope(0).peaks[1] < exact.scope(0).peaks[1]


@pytest.mark.parametrize("name", ["sections", "options"])
def test_blocks_that_are_no_packets_are_read_so_many_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(formats, "MOST_CONTROL_BYTES", 3000)
    path = tmp_path / "blocks.pcapng"
    made = {"sections": hostile.sections, "options": hostile.options}[name]
    path.write_bytes(made(90) + hostile.sections(1))
    assert not analysis.read_capture(path).source["damaged"]
    path.write_bytes(made(1000) + hostile.sections(1))
    source = analysis.read_capture(path).source
    assert source["damaged"]
    assert "more than 3000 bytes of blocks" in source["notes"][0]


def test_flows_that_had_room_are_found_again_among_many_that_had_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analysis.capture.decoder.MOST_FLOWS", 4096)
    twice = hostile.port_scan(20_000)
    path = tmp_path / "twice.pcap"
    path.write_bytes(twice + twice[24:])
    table = analysis.read_capture(path)
    room = len(table.flow_endpoints)
    assert 4096 <= room < 20_000
    expected = np.where(np.arange(20_000) < room, np.arange(20_000), NO_FLOW)
    np.testing.assert_array_equal(table.flow[:20_000], expected)
    np.testing.assert_array_equal(table.flow[20_000:], expected)
    assert table.source["packets_beyond_flow_limit"] == 2 * (20_000 - room)


@pytest.mark.parametrize("kind", ["gzip", "bzip2", "xz", "zstd"])
def test_compressed_streams_without_content_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """A gigabyte of them took four minutes, in which nothing else of the process ran."""
    empty = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "zstd": zstandard.compress}[kind](b"")
    path = tmp_path / "empty"
    path.write_bytes(empty * (300_000 // len(empty)))
    monkeypatch.setattr(compressed, "_MOST_EMPTY", 1 << 17)
    source = open_source(path)
    assert source.readinto(memoryview(bytearray(10))) == 0
    assert "have no content" in (source.problem or "")
    source.close()
