"""Mutated captures must give a result or one CaptureError.

Never a crash, a hang, a read out of bounds or endless memory.

    python tests/fuzz_capture.py [--count N | --seconds S] [--seed K] [--keep DIRECTORY]
    NUMBA_BOUNDSCHECK=1 python tests/fuzz_capture.py       every read and index checked

Prints one line of counts; leaves with 1 and the mutant's bytes in DIRECTORY at the first failure.
"""

from __future__ import annotations

import argparse
import bz2
import faulthandler
import gzip
import itertools
import json
import lzma
import random
import resource
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import zstandard

sys.path.insert(0, str(Path(__file__).parents[1]))

import analysis
from tests.analysis import capture_files as files
from tests.analysis.capture import hostile
from tests.analysis.capture.encapsulations import KINDS, conversation
from tests.analysis.capture.link_layers import LINKS
from tests.analysis.capture_files import Frame
from tests.analysis.frames import ethernet, ipv4, ipv6, tcp, udp

HANG_S = 30
COMPILING_S = 120
MEMORY_BYTES = 500_000_000
"""A mutant of a few kilobytes may not make the process grow by more than this."""
ADDRESS_BYTES = 2_000_000_000
"""Several decoders reserve room until the next collection of garbage."""
EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def seeds() -> list[bytes]:
    """Captures that hold something of everything."""
    syn = b"\x02\x04\x05\xb4\x04\x02\x08\x0a\0\0\0\1\0\0\0\0\1\3\3\7"
    handshake = struct.pack("<II", 7, 1) + b"OPAL-TCP-BTL".ljust(16, b"\0")
    back = {"source": "10.0.0.2", "destination": "10.0.0.1"}
    contents = [
        ethernet(ipv4(tcp(seq=0, ack=0, flags=0x02, options=syn))),
        ethernet(ipv4(tcp(20_000, 40_000, seq=9, ack=1, flags=0x12, options=syn), **back)),
        ethernet(ipv4(tcp(seq=1, ack=10, flags=0x18, payload=handshake))),
        ethernet(ipv4(tcp(20_000, 40_000, seq=10, ack=25, flags=0x18, payload=handshake), **back)),
        ethernet(ipv4(tcp(seq=25, ack=34, payload=b"d" * 900, options=syn[6:16]), options=b"\x07\x04\0\0")),
        ethernet(ipv6(tcp(seq=1, payload=b"six" * 50)), kind=0x86DD, vlans=((0x88A8, 1), (0x8100, 2))),
        ethernet(ipv6(b"\x2c\0\0\0\0\0\0\0" + b"\6\0\0\1\0\0\0\1" + tcp(), next_header=0), kind=0x86DD),
        ethernet(ipv4(udp(53, 53, b"name"), protocol=17)),
        ethernet(ipv4(tcp(), total_length=0) + b"s" * 3000),
        ethernet(b"who has", kind=0x0806),
    ]
    contents += [wrap(ipv4(tcp(seq=2, payload=b"inside")), 7) for wrap in KINDS.values()]
    contents.append(ethernet(ipv4(udp(9, 4791, bytes.fromhex("040000000000001100000001") + bytes(20)), protocol=17)))
    frames = [Frame.whole(10**15 + 300_000 * k, contents[k % len(contents)], 128) for k in range(40)]
    sections = files.section(">") + files.interface(">", tsresol=0x94, tsoffset_s=5)
    sections += b"".join(files.enhanced(frame, ">") for frame in frames[:9])
    sections += files.section() + files.interface(tsresol=12, snap_length=96) + files.simple(frames[3])
    sections += files.obsolete(frames[4]) + files.statistics(received=40, dropped=0)
    raw = [Frame(frame.time_ns, frame.data[14:], frame.orig_len - 14) for frame in frames]
    plain = [
        files.pcap(frames), files.pcap(frames, order=">", nanoseconds=False), files.pcapng(frames), sections,
        files.pcap(raw, link=101), files.pcap(frames, link=113), files.pcap(frames, link=276), files.pcap(raw, link=0),
    ]  # fmt: skip
    plain += [
        files.pcap(
            [Frame.whole(10**15 + 10**6 * k, wrap(packet), 160) for k, packet in enumerate(conversation())], link=link
        )
        for link, wrap in LINKS.values()
    ]
    made = [content for _, content in hostile.captures(60)]
    recorded = [path.read_bytes() for path in sorted((Path(__file__).parent / "analysis/data").glob("*.pcap"))]
    packed = [gzip.compress(plain[0]), bz2.compress(plain[0]), lzma.compress(plain[0]), zstandard.compress(plain[0])]
    return [*plain, *packed, *made, *(large(60) for large in hostile.LARGE.values()), *recorded]


def mutants(seed: int) -> Iterator[bytes]:
    """Endless and repeatable."""
    chance, originals = random.Random(seed), seeds()
    while True:
        data = bytearray(chance.choice(originals))
        for _ in range(chance.choice((1, 1, 2, 4, 16))):
            _mutate(data, chance, originals)
        yield bytes(data)


def _mutate(data: bytearray, chance: random.Random, originals: list[bytes]) -> None:
    at = chance.randrange(len(data) + 1) if chance.random() < 0.7 else min(chance.randrange(200), len(data))
    kind = chance.randrange(7)
    if kind == 0 and at < len(data):
        data[at] ^= 1 << chance.randrange(8)
    elif kind == 1 and at < len(data):
        data[at] = chance.randrange(256)
    elif kind == 2:
        value = chance.choice(EXTREMES)
        width = chance.choice([w for w in (1, 2, 4, 8) if value < 1 << 8 * w])
        data[at : at + width] = value.to_bytes(width, chance.choice(("big", "little")))
    elif kind == 3:
        del data[at:]
    elif kind == 4:
        del data[at : at + chance.randrange(1, 64)]
    elif kind == 5:
        data[at:at] = chance.randbytes(chance.randrange(1, 64))
    else:
        other = chance.choice(originals)
        begin = chance.randrange(len(other))
        data[at : at + 64] = other[begin : begin + chance.randrange(1, 256)]


def judge(data: bytes, path: Path, hang_s: int = HANG_S) -> str:
    """ "result", "degraded" or "refused"; raises whatever else happened."""
    path.write_bytes(data)
    faulthandler.dump_traceback_later(hang_s, exit=True)
    try:
        result = analysis.analyse(path, decoder="native")
    except analysis.CaptureError as error:
        return "refused" if str(error) else "refused without a word"
    finally:
        faulthandler.cancel_dump_traceback_later()
    json.dumps(result.to_dict(), allow_nan=False)
    facts = result.capture
    assert (
        facts["unparsed"] + facts["not_ip"] <= facts["packets"] <= result.metrics["packets"]
    )  # more: joined segments, split
    assert facts["packets"] == result.metrics["packets"] or result.metrics["super_segments"]
    if facts["truncated_tail"] or facts["damaged"]:
        assert result.trust.verdict != "good"
    return "result" if result.trust.verdict == "good" else "degraded"


def resident_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def limit_memory(more_bytes: int) -> None:
    """Bound the address space: a huge array fails though it is never touched."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + more_bytes
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def fuzz(count: int, seconds: float, seed: int, keep: Path) -> int:
    """Exit status."""
    counts = dict.fromkeys(("result", "degraded", "refused"), 0)
    deadline = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "mutant"
        for original in seeds():  # every kernel is compiled and every library loaded before memory is watched
            judge(original, path, hang_s=COMPILING_S)
        before = resident_bytes()
        limit_memory(ADDRESS_BYTES)
        for number, data in enumerate(itertools.islice(mutants(seed), count)):
            if time.monotonic() > deadline:
                break
            try:
                counts[judge(data, path)] += 1
                assert resident_bytes() - before < MEMORY_BYTES, "memory"
            except BaseException:
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"mutant-{seed}-{number}").write_bytes(data)
                raise
    print(json.dumps(counts | {"grown_bytes": resident_bytes() - before}))
    return 0 if sum(counts.values()) else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path("var/fuzz"))
    options = parser.parse_args()
    return fuzz(options.count, options.seconds, options.seed, options.keep)


if __name__ == "__main__":
    sys.exit(main())
