"""The script that compares a directory of captures: what is equal, told, wrong silently or failed, and its status."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.analysis import capture_files as files
from tests.analysis.capture.encapsulations import outer_udp, vxlan
from tests.analysis.capture_files import Frame
from tests.analysis.frames import ethernet, ipv4, tcp
from tests.benchmarks import corpus

SCRIPT = Path(corpus.__file__)


def frames(count: int) -> list[Frame]:
    sent = [vxlan(ipv4(tcp(seq=1 + 50 * k, payload=b"d" * 50), identity=k), 7) for k in range(count)]
    return [Frame.whole(10**15 + 10**7 * k, frame) for k, frame in enumerate(sent)]


def test_every_content_is_compared_once_and_named_by_what_became_of_it(tmp_path: Path) -> None:
    captures, told = tmp_path / "captures", tmp_path / "told.json"
    captures.mkdir()
    for name in ("equal.pcap", "copy.pcap"):
        (captures / name).write_bytes(files.pcap(frames(4)))
    hidden = [Frame.whole(10**15, outer_udp(4341, bytes(8) + ipv4(tcp(payload=b"d" * 60))))]  # of LISP
    (captures / "told.pcap").write_bytes(files.pcap(hidden))
    (captures / "readme.txt").write_text("no capture")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(captures), "--json", str(told)], capture_output=True, text=True, timeout=140
    )
    assert done.returncode == 0, done.stdout + done.stderr
    verdicts = {Path(outcome["file"]).name: outcome["verdict"] for outcome in json.loads(told.read_text())}
    assert verdicts == {"copy.pcap": "equal", "told.pcap": "told"}


def test_a_difference_that_is_not_told_is_wrong_silently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "capture.pcap"
    path.write_bytes(files.pcap(frames(3)))
    ours, said = corpus.by_us(path, 140)
    assert ours is not None
    for verdict, expected in (("good", "wrong silently"), ("degraded", "told")):
        changed = ours | {
            "metrics": ours["metrics"] | {"payload_bytes": 1},
            "trust": {"verdict": verdict, "reasons": []},
        }
        monkeypatch.setattr(corpus, "by_us", lambda *_, changed=changed: (changed, said))
        outcome = corpus.judged(path, 140)
        assert outcome is not None
        assert (outcome.verdict, outcome.differences) == (expected, {"payload_bytes": [1, 150]})


def compared(path: Path, data: bytes) -> corpus.Outcome:
    path.write_bytes(data)
    outcome = corpus.judged(path, 140)
    assert outcome is not None
    return outcome


def test_connections_of_two_networks_are_kept_apart(tmp_path: Path) -> None:
    """tshark follows one connection through two networks."""
    path = tmp_path / "capture.pcap"
    twice = [Frame.whole(10**15 + k, vxlan(ipv4(tcp(seq=1, payload=b"d" * 40)), 7 + k)) for k in range(2)]
    assert compared(path, files.pcap(twice)).verdict == "equal"


def test_packets_behind_names_that_are_damaged_are_read_on_and_told_apart(tmp_path: Path) -> None:
    """capinfos stops there; no number depends on names of hosts."""
    names = files.block(4, struct.pack("<HH", 1, 4096) + bytes(8), "<")
    blocks = [files.enhanced(frame) for frame in frames(3)]
    data = files.section() + files.interface() + blocks[0] + names + b"".join(blocks[1:])
    outcome = compared(tmp_path / "capture.pcapng", data)
    assert (outcome.verdict, outcome.differences["payload_bytes"]) == ("read on", [150, 50])


def test_what_a_byte_stream_brings_is_not_compared_as_traffic(tmp_path: Path) -> None:
    """A frame that OpenFlow hands to a controller is payload of the packet that brings it."""
    inner = vxlan(ipv4(tcp(payload=b"i" * 30)), 7)
    handed_on = struct.pack("!BBHIIHHBB", 1, 10, 18 + len(inner), 1, 1, len(inner), 3, 0, 0) + inner
    outer = Frame.whole(10**15, ethernet(ipv4(tcp(5000, 6653, payload=handed_on, flags=0x18))))
    outcome = compared(tmp_path / "capture.pcap", files.pcap([outer]))
    assert (outcome.verdict, outcome.trust) == ("equal", "good")


def test_durations_are_compared_to_a_millisecond(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "capture.pcap"
    path.write_bytes(files.pcap(frames(3)))
    ours, said = corpus.by_us(path, 140)
    assert ours is not None
    for later_s, verdict in ((0.0009, "equal"), (0.0011, "wrong silently")):
        changed = ours | {"metrics": ours["metrics"] | {"duration_s": 0.02 + later_s}}
        monkeypatch.setattr(corpus, "by_us", lambda *_, changed=changed: (changed, said))
        outcome = corpus.judged(path, 140)
        assert outcome is not None
        assert outcome.verdict == verdict
