"""Recording of packets: live counts, report, stored file, failures."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import zstandard

from tests.workers.clusters.trials import PlainLink, capinfos, frame_lengths, output_of, run, unpacked
from workers import launchers
from workers.capture import dumpcap, ring
from workers.capture.dumpcap import Capture
from workers.capture.ring import RingCapture
from workers.capture.slot_memory import SlotMemory
from workers.errors import CaptureUnavailable, LaunchFailed, TrialFailed
from workers.launchers import Job, Session
from workers.launchers.base import MachineSession
from workers.launchers.local import INTERFACE, LocalSession, capture_filter
from workers.testbed.commands import BRIDGE

MakeJob = Callable[..., Job]


def ping(session: Session, count: int, *options: str) -> None:
    """So many echo requests and as many replies between n1 and n2."""
    assert f"{count} received" in output_of(session, "ping", "-c", str(count), "-i", "0.002", *options, "n2", host="n1")


def programs_of(session: Session, name: str) -> list[psutil.Process]:
    """Return the programs of that name below the session's agent."""
    family = psutil.Process(session.agent.pid).children(recursive=True)
    return [process for process in family if not is_over(process) and process.name() == name]


def is_over(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def open_memory() -> list[str]:
    """Return names of files in memory that this process, a recorder, has open."""
    held = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            held.append(str(link.readlink()))
    return sorted(name for name in held if name.startswith("/memfd:"))


def test_the_last_packets_are_not_lost(testbed: Session, tmp_path: Path) -> None:
    ping(testbed, 1)
    for count in (1, 200, 37):  # fewer after more: the memory is that of the recording before
        with testbed.capture() as capture:
            ping(testbed, count)
            report = capture.stop()
            path = capture.save(tmp_path / "capture.pcapng.zst")
        assert report.captured >= 2 * count
        assert report.captured == report.received == capinfos(path)[0]
        assert (report.dropped, report.died, report.limit_reached) == (0, False, False)


def test_long_slots_become_a_file_in_pieces(testbed: Session, tmp_path: Path) -> None:
    """A slot is as long as the snap length: 8192 of the longest are 2 GB."""
    with testbed.capture(snap_length=262_144) as capture:
        ping(testbed, 60)
        tracemalloc.start()
        report = capture.stop()
        path = capture.save(tmp_path / "capture.pcapng.zst")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert report.captured == capinfos(path)[0] >= 120
    assert peak < 30 << 20


def test_packets_and_bytes_can_be_read_while_it_runs(testbed: Session, eventually: Callable[..., object]) -> None:
    with testbed.capture(snap_length=96) as capture:
        assert isinstance(capture, RingCapture)
        ping(testbed, 50, "-s", "1400")
        eventually(lambda: capture.tally()[0] >= 100)
        ping(testbed, 50, "-s", "100")
        report = capture.stop()
        packets, wire_bytes = capture.tally()
    assert packets == report.captured
    of_arp = packets - 200
    assert wire_bytes == 100 * (1400 + 42) + 100 * (100 + 42) + of_arp * 42


def test_the_stored_file_is_complete(testbed: Session, tmp_path: Path) -> None:
    path = tmp_path / "capture.pcapng.zst"
    with testbed.capture() as capture:
        ping(testbed, 20)
        report = capture.stop()
        capture.save(path)
    assert capinfos(path)[0] == report.captured >= 40
    assert zstandard.get_frame_parameters(path.read_bytes()[:18]).has_checksum
    assert sorted(child.name for child in tmp_path.iterdir()) == ["capture.pcapng", "capture.pcapng.zst"]


def test_only_the_snap_length_is_kept_and_the_wire_length_is_true(testbed: Session, tmp_path: Path) -> None:
    with testbed.capture(snap_length=96) as capture:
        ping(testbed, 20, "-s", "1400")
        capture.stop()
        stored = capture.save(tmp_path / "capture.pcapng.zst")
    assert frame_lengths(stored).count(1442) == 40
    assert unpacked(stored).stat().st_size < 60 * (96 + 32 + 50)


def test_the_local_cluster_records_mpi_alone(make_job: MakeJob, tmp_path: Path) -> None:
    with launchers.get("local").open(host_count=1, link=PlainLink()) as session, session.capture() as capture:
        assert "3 received" in output_of(session, "ping", "-c", "3", "-i", "0.01", "127.0.0.1")
        status, _, stderr = run(session, make_job(session, "true", ranks_per_host=2))
        assert status == 0, stderr
        assert capture.stop().captured == 0  # no message was sent, and everything else is none of MPI's


def test_at_its_limit_a_recording_ends_and_reports_it(testbed: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring, "available_memory_bytes", lambda: 80_000)
    with testbed.capture() as capture:
        ping(testbed, 300)
        report = capture.stop()
    assert report.limit_reached
    assert not report.died
    assert 20_000 // 208 <= report.captured < 600


def with_dumpcap(session: Session, capture_filter: str = "len > 0") -> Capture:
    """Record the bridge with the tool that other kinds of cluster use."""
    assert isinstance(session, MachineSession)
    return Capture.start(session.agent, BRIDGE, capture_filter)


@pytest.mark.parametrize("program", ["recorder", "dumpcap"])
def test_a_killed_recorder_is_reported_and_its_packets_are_kept(
    program: str, testbed: Session, tmp_path: Path, eventually: Callable[..., object]
) -> None:
    with testbed.capture() if program == "recorder" else with_dumpcap(testbed) as capture:
        ping(testbed, 50)

        def has_grown() -> bool:
            if isinstance(capture, RingCapture):
                return capture.tally()[0] >= 100
            return capture.file.stat().st_size > 100 * 132

        eventually(has_grown)
        (victim,) = programs_of(testbed, program)
        victim.send_signal(signal.SIGKILL)
        eventually(lambda: is_over(victim))
        report = capture.stop()
        path = capture.save(tmp_path / "capture.pcapng.zst")
    assert report.died
    assert capinfos(path)[0] >= 100
    ping(testbed, 1)


def test_it_records_as_dumpcap_does(testbed: Session, tmp_path: Path) -> None:
    """Lengths and bytes of each frame are those of dumpcap beside it."""
    paths = []
    with testbed.capture() as ours, with_dumpcap(testbed) as theirs:
        for size in (0, 1, 2, 3, 56, 85, 86, 87, 88, 1400):
            ping(testbed, 20, "-s", str(size))
        for name, capture in (("ours", ours), ("theirs", theirs)):
            capture.stop()
            paths.append(capture.save(tmp_path / f"{name}.pcapng.zst"))
    ours_read, theirs_read = (contents(path) for path in paths)
    assert len(ours_read) == 400
    assert sorted(ours_read) == sorted(theirs_read)


TALK = """
import socket
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    for port in (19999, 20000, 20999, 21000):
        with socket.create_server((host, port), family=family) as server, socket.create_connection((host, port)) as one:
            other = server.accept()[0]
            for size in (1, 70, 90, 100000):
                one.sendall(bytes(size))
                other.recv(size, socket.MSG_WAITALL)
            other.close()
    with socket.socket(family, socket.SOCK_DGRAM) as unheard:
        unheard.sendto(bytes(50), (host, 20000))
"""


@pytest.mark.parametrize("knows_ports", [True, False])
def test_the_local_cluster_records_as_dumpcap_does(knows_ports: bool, tmp_path: Path) -> None:
    """Each frame of the loopback once, filtered as the pcap filter in words does."""
    read = []
    with launchers.get("local").open(host_count=1, link=PlainLink()) as session:
        assert isinstance(session, LocalSession)
        session.knows_ports = knows_ports
        words = capture_filter(known_ports=knows_ports, confined=True)
        with session.capture() as ours, Capture.start(session.agent, INTERFACE, words) as theirs:
            output_of(session, "/usr/bin/python3", "-c", TALK)
            for name, capture in (("ours", ours), ("theirs", theirs)):
                report = capture.stop()
                path = capture.save(tmp_path / f"{name}.pcapng.zst")
                assert report.captured == report.received == capinfos(path)[0]
                read.append(sorted(contents(path, "tcp")))
    assert read[0] == read[1]
    assert len(read[0]) > (50 if knows_ports else 100)


def contents(path: Path, protocol: str = "icmp") -> list[str]:
    """Length on the wire and kept bytes of every packet of a protocol, by tshark."""
    argv = ["tshark", "-r", str(unpacked(path)), "-T", "json", "-x", "-J", "frame"]
    packets = json.loads(subprocess.run(argv, capture_output=True, check=True, timeout=90).stdout)
    layers = [
        packet["_source"]["layers"]
        for packet in packets
        if protocol in packet["_source"]["layers"]["frame"]["frame.protocols"]
    ]
    return [f"{layer['frame']['frame.len']} {layer['frame_raw'][0]}" for layer in layers]


def test_no_recorder_or_no_interface_is_a_reason_and_not_a_failure(
    testbed: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CaptureUnavailable, match="filter"):
        with_dumpcap(testbed, "no such filter").__enter__()
    with pytest.raises(CaptureUnavailable, match="there is no interface br9"):
        RingCapture.on_interface(testbed.agent, "br9", SlotMemory())
    monkeypatch.setattr(dumpcap, "find_program", lambda _: None)
    with pytest.raises(CaptureUnavailable, match="user may not record packets"):
        with_dumpcap(testbed)
    monkeypatch.setattr(dumpcap, "search_path", lambda: "/nonexistent")
    with pytest.raises(CaptureUnavailable, match="install the package wireshark-common"):
        with_dumpcap(testbed)


@pytest.mark.parametrize("program", ["recorder", "dumpcap"])
@pytest.mark.parametrize("error", [LaunchFailed("too late"), KeyboardInterrupt()])
def test_a_recording_that_cannot_begin_leaves_no_file_and_no_program(
    program: str,
    error: BaseException,
    testbed: Session,
    monkeypatch: pytest.MonkeyPatch,
    eventually: Callable[..., object],
) -> None:
    def fail(_: object) -> None:
        raise error

    monkeypatch.setattr(Capture, "_wait_until_recording", fail)
    opened = open_memory()
    memory = SlotMemory()
    monkeypatch.setattr(testbed, "_memory", memory)
    with pytest.raises((CaptureUnavailable, KeyboardInterrupt)):
        (testbed.capture() if program == "recorder" else with_dumpcap(testbed)).__enter__()
    memory.close()
    assert open_memory() == opened
    eventually(lambda: not programs_of(testbed, program))


def test_a_refused_permission_names_the_remedy() -> None:
    # As dumpcap 4.0 says it to an ordinary user on the loopback interface.
    words = """Capturing on 'Loopback: lo'
dumpcap: You do not have permission to capture on device "lo".
(socket: Operation not permitted)"""
    assert "add the worker's user to the group wireshark" in dumpcap.refusal(words)
    assert dumpcap.refusal("Capturing on 'br0'\ndumpcap: no memory\n") == "dumpcap: no memory"


def test_a_target_that_cannot_be_written_fails_the_trial_with_the_reason(testbed: Session, tmp_path: Path) -> None:
    with testbed.capture() as capture:
        capture.stop()
        with pytest.raises(TrialFailed, match=r"cannot be stored .*No such file"):
            capture.save(tmp_path / "absent" / "capture.pcapng.zst")
