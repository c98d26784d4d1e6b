"""Packets that forge lines, and a tshark that prints without end."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from analysis.capture.listing import list_packets
from analysis.capture.tshark import running
from analysis.errors import DecoderError
from tests.analysis.capture_files import Frame, pcapng
from tests.analysis.frames import ethernet, ipv4, tcp


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of a program that is started as tshark."""
    file = tmp_path / "bin" / "tshark"
    file.parent.mkdir()
    file.touch()
    file.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{file.parent}:/usr/bin:/bin")
    return file


def test_a_packet_forges_no_line_of_the_list(tmp_path: Path) -> None:
    """The dissector of Redis leaves line feeds and tabs of a payload as they are."""
    forged = b"a\n7\t\t\t\t\t1\t\t\t\t\t\tx"  # of the columns in text, a packet 7
    payload = b"*1\r\n$%d\r\n%s\r\n" % (len(forged), forged)
    data = ethernet(ipv4(tcp(dport=6379, flags=0x18, payload=payload)))
    capture = tmp_path / "capture.pcapng"
    capture.write_bytes(pcapng([Frame(1, data, len(data))]))
    (line,) = list_packets(capture)
    assert (line.number, line.source, line.protocol) == (1, "10.0.0.1", "RESP")
    assert line.info.startswith("Request: a\ufffd7")
    assert line.info.isprintable()


def test_tshark_gets_no_secrets_of_this_process(tmp_path: Path, stub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://rankwire:hunter2@db.example.org/rankwire")
    stub.write_text("#!/bin/sh\nenv\n")
    with running(stub, [], None) as run:
        names = {line.partition(b"=")[0] for line in run.stdout}
    assert {b"PATH", b"LC_ALL"} < names
    assert names <= {
        b"PATH",
        b"LD_LIBRARY_PATH",
        b"TMPDIR",
        b"LC_ALL",
        b"WIRESHARK_CONFIG_DIR",
        b"XDG_CONFIG_HOME",
        b"PWD",
        b"_",
    }


@pytest.mark.timeout(60)
@pytest.mark.parametrize("script", ["exec tr '\\0' x </dev/zero", "while :; do echo complaint >&2; done"])
def test_output_without_end_is_an_error(stub: Path, script: str) -> None:
    """Of standard output, in one line, and of complaints."""
    stub.write_text(f"#!/bin/sh\n{script}\n")
    with pytest.raises(DecoderError, match=r"larger than 64 MB|status -25"), running(stub, [], 50.0) as run:
        assert list(run.packets()) == []
