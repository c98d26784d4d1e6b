"""First bytes of MPI libraries on a TCP connection: the rank, or the use of MPI.

Open MPI since 3  jobid, rank, "OPAL-TCP-BTL" (docs/reference/metrics.md, Matrices); 24 bytes from either side
UCX               the magic number of its TCP transport, 0xCAFEBABE12345678, before the data of its connection manager
libfabric         a request of its TCP provider: version 3, type 0, bytes of data behind the header (MPICH 8, Intel MPI 24), and
                  20 bytes that are not used yet

Numbers are in the byte order of the sender; a build for mixed byte orders of Open MPI turns them. Ranks are small, so the smaller
reading is the rank; a jobid is no more than an identity and stays as it was read.
"""

from __future__ import annotations

from analysis.kernels import inlined, jit
from analysis.kernels.raw import u16, u32, u32_little
from analysis.packets import NO_SIGNATURE, WITHOUT_RANK

BTL_BYTES = 24
UCX_BYTES = 8
LIBFABRIC_HEADER_BYTES = 32
LIBFABRIC_FIXED_BYTES = 24
"""Bytes of libfabric's request that are the same on every connection."""
LIBFABRIC_MOST_DATA = 256

_OPAL, _TCP_, _BTL_ = 0x4F50414C, 0x2D544350, 0x2D42544C
"""'OPAL', '-TCP', '-BTL' in network byte order."""
_UCX_LOW, _UCX_HIGH = 0x78563412, 0xBEBAFECA
_LIBFABRIC = 0x0300
"""Version and type, before 16 bits that count the data."""


@jit
def _libfabric_bytes(first: int) -> int:
    """Return the length of a request of libfabric by its first word; 0 for other data."""
    data = first & 0xFFFF
    return LIBFABRIC_HEADER_BYTES + data if first >> 16 == _LIBFABRIC and 8 <= data <= LIBFABRIC_MOST_DATA else 0


@inlined
def handshake_signature(at: int, end: int, length: int) -> tuple[int, int]:
    """Return (jobid, rank) of a payload; jobid NO_SIGNATURE for other data.

    WITHOUT_RANK, 0 if the library does not state a rank.
    """
    if length < UCX_BYTES or at + UCX_BYTES > end:
        return NO_SIGNATURE, 0
    first, second = u32(at, end), u32(at + 4, end)
    if first == _UCX_LOW and second == _UCX_HIGH:
        return WITHOUT_RANK, 0
    if length >= BTL_BYTES and at + BTL_BYTES <= end and u32(at + 8, end) == _OPAL:
        if u32(at + 12, end) == _TCP_ and u32(at + 16, end) == _BTL_:
            return u32_little(at, end), min(second, u32_little(at + 4, end))
    elif length == _libfabric_bytes(first) and at + LIBFABRIC_FIXED_BYTES <= end:
        unused = second | u32(at + 8, end) | u32(at + 12, end) | u32(at + 16, end) | u32(at + 20, end)
        if unused == 0:
            return WITHOUT_RANK, 0
    return NO_SIGNATURE, 0


@jit
def signature_bytes(at: int, end: int) -> int:
    """Return the bytes of a signature without addresses, or 0."""
    length = end - at
    if length >= LIBFABRIC_FIXED_BYTES:
        length = _libfabric_bytes(u32(at, end)) or length  # possibly truncated
    jobid, _ = handshake_signature(at, end, length)
    if jobid == NO_SIGNATURE:
        return 0
    if jobid != WITHOUT_RANK:
        return BTL_BYTES
    return LIBFABRIC_FIXED_BYTES if u16(at, end) == _LIBFABRIC else UCX_BYTES
