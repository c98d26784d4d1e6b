"""MPI connections are identified by the first bytes of the library."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import analysis
from analysis.capture.reduced import write_reduced
from tests.analysis.capture_files import Frame, pcap
from tests.analysis.frames import ethernet, ipv4, tcp

RECORDED = Path(__file__).parent.parent / "data"
"""MPICH 4.0.2 over UCX 1.13, MPICH 4.3.2 and Intel MPI 2021.19 over libfabric (TCP): two ranks that send each other four messages."""
JOB = 0x5A5A0001
A, B = ("10.0.0.1", 40_000), ("10.0.0.2", 20_000)
DECODERS = pytest.mark.parametrize("decoder", ["native", "pyshark"])


def exchange(first: bytes, answer: bytes, *, port: int = 40_000) -> list[bytes]:
    """A connection in which each side sends data, the first 100 bytes more."""
    a, b = {"source": A[0], "destination": B[0]}, {"source": B[0], "destination": A[0]}
    behind = 1 + len(first)
    return [
        ethernet(ipv4(tcp(port, B[1], seq=1, ack=1, payload=first), **a)),
        ethernet(ipv4(tcp(B[1], port, seq=1, ack=behind, payload=answer), **b)),
        ethernet(ipv4(tcp(port, B[1], seq=behind, ack=1 + len(answer), payload=bytes(100)), **a)),
    ]


def written(path: Path, frames: list[bytes]) -> Path:
    path.write_bytes(pcap([Frame.whole(10**15 + 10**6 * number, frame) for number, frame in enumerate(frames)]))
    return path


@DECODERS
@pytest.mark.parametrize(
    ("name", "of_mpi"), [("mpich-ucx.pcap", 41), ("mpich-libfabric.pcap", 48), ("intel-mpi.pcap", 36)]
)
def test_connections_of_other_libraries_are_mpi_without_ranks(name: str, of_mpi: int, decoder: str) -> None:
    measured = analysis.analyse(RECORDED / name, decoder=decoder)  # type: ignore[arg-type]
    assert measured.mpi.metrics["packets"] == of_mpi  # what is missing is ARP
    assert measured.matrices["ranks"]["labels"] == []
    assert measured.matrices["ranks"]["source"] is None
    assert measured.matrices["hosts"]["labels"] == ["10.217.0.1", "10.217.0.2"]
    assert [row["rank_a"] for row in measured.flows] == [None, None]


@DECODERS
def test_ranks_are_the_same_in_either_order_of_bytes(tmp_path: Path, decoder: str) -> None:
    """Open MPI for mixed machines sends jobid and rank in network byte order."""
    first, answer = (struct.pack(">II", JOB, rank) + b"OPAL-TCP-BTL".ljust(16, b"\0") for rank in (3, 256))
    measured = analysis.analyse(written(tmp_path / "mixed.pcap", exchange(first, answer)), decoder=decoder)  # type: ignore[arg-type]
    assert measured.matrices["ranks"]["labels"] == [3, 256]


@pytest.mark.parametrize(
    ("first", "of_mpi"),
    [
        (bytes([3, 0, 0, 24]) + bytes(52), True),
        (bytes([3, 0, 0, 24]) + bytes(51), False),  # shorter than its header states
        (bytes([3, 0, 0, 24, 0, 0, 0, 1]) + bytes(48), False),
        (bytes([3, 1, 0, 24]) + bytes(52), False),  # an answer first
        (bytes([3, 0, 0, 56]) + bytes(52), False),  # TPKT counts itself
        (bytes([3, 0, 2, 0]) + bytes(540), False),
        (bytes([3, 0, 0, 0]) + bytes(28), False),
    ],
)
@DECODERS
def test_libfabric_request_has_the_length_in_its_header(
    tmp_path: Path, first: bytes, of_mpi: bool, decoder: str
) -> None:
    measured = analysis.analyse(written(tmp_path / "asks.pcap", exchange(first, b"answer")), decoder=decoder)  # type: ignore[arg-type]
    assert measured.mpi.metrics.get("packets", 0) == (3 if of_mpi else 0)


@pytest.mark.parametrize("name", ["mpich-ucx.pcap", "mpich-libfabric.pcap", "intel-mpi.pcap"])
def test_a_capture_reduced_to_its_headers_keeps_them(tmp_path: Path, name: str) -> None:
    before = analysis.analyse(RECORDED / name)
    for source, target in (
        (RECORDED / name, tmp_path / "once.pcap"),
        (tmp_path / "once.pcap", tmp_path / "twice.pcap"),
    ):
        with target.open("wb") as stream:
            write_reduced(source, stream, hide=None)
        assert len(target.read_bytes()) < len(source.read_bytes()) or source.parent == tmp_path
    after = analysis.analyse(tmp_path / "twice.pcap")
    assert after.mpi.metrics == before.mpi.metrics
