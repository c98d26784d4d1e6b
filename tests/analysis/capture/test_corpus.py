"""The script that compares a directory of captures: what is equal, told, wrong silently or failed, and its status."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import corpus
from tests.analysis import capture_files as files
from tests.analysis.capture.encapsulations import outer_udp, vxlan
from tests.analysis.capture_files import Frame
from tests.analysis.frames import ipv4, tcp

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
