"""Silent errors: captures of a directory against capinfos, tshark and a count.

    python -m benchmarks.corpus DIRECTORY [--json FILE] [--timeout SECONDS] [--limit FILES] [--jobs FILES]

For every file that capinfos or tshark can read, whatever its name, once for each content:

packets, bytes     capinfos -c -d
duration           capinfos -u, to a millisecond: from the earliest to the latest packet there, from the first to the last here
                   (not compared where no packet has a stamp)
payload            sum of tshark's tcp.len and udp.length - 8 of the innermost headers
zero windows       tshark's tcp.analysis.zero_window
                   (not compared where a datagram begins in a first fragment: tshark counts all of it there, or nothing)
unique bytes       a count of its own from tshark's sequence numbers: bytes of every connection's union, and bytes seen again

A file is "equal", `reported` (different, with trust below good, or refused with a sentence), "wrong silently" (different, trust good),
"read on" (more than what tshark had read where it and capinfos stopped at a block that is damaged inside, trust good: to be looked at),
or "failed" (crash, time-out). Leaves with 1 when anything is wrong silently or has failed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
NETWORKS: Final = ("vxlan.vni", "geneve.vni", "gre.key")
"""Hosts of two virtual networks may have the same addresses and ports: theirs are two connections."""
FIELDS: Final = (
    "frame.encap_type", "frame.protocols", "tcp.stream", "tcp.srcport", "tcp.seq_raw", "tcp.len", "tcp.flags", "udp.length",
    "tcp.analysis.zero_window", "ip.flags.mf", "ipv6.plen", "ipv6.fraghdr.more", *NETWORKS,
)  # fmt: skip
PREFERENCES: Final = (
    "tcp.desegment_tcp_streams:FALSE", "ip.defragment:FALSE", "ipv6.defragment:FALSE", "tcp.reassemble_out_of_order:FALSE",
)  # fmt: skip
SYN, RST = 0x02, 0x04
QUOTING: Final = ("icmp", "icmpv6", "sflow")
"""Protocols that quote packets of others; so do protocols with packets inside a TCP connection, such as OpenFlow."""
DURATION_S: Final = 0.001


@dataclass
class Outcome:
    """Result of one file; ``differences``: quantity -> [ours, theirs]."""

    file: str
    verdict: str
    trust: str | None = None
    differences: dict[str, list[Any]] = field(default_factory=dict)
    said: str = ""


class Union:
    """Bytes of one direction of one connection: which were seen."""

    def __init__(self) -> None:
        self.runs: list[tuple[int, int]] = []
        self.base: int | None = None

    def add(self, sequence: int, length: int) -> int:
        """Add a segment; returns how many of its bytes are new."""
        if self.base is None:
            self.base = sequence
        near = self.runs[-1][1] if self.runs else 0
        start = near + ((sequence - self.base - near + 2**31) & 0xFFFFFFFF) - 2**31
        end, new, kept = start + length, length, []
        low, high = start, end
        for first, last in self.runs:
            if last < start or first > end:
                kept.append((first, last))
            else:
                new -= max(0, min(end, last) - max(start, first))
                low, high = min(low, first), max(high, last)
        self.runs = sorted([*kept, (low, high)])
        return new


def run(argv: list[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=timeout_s, check=False)


def by_capinfos(path: Path, timeout_s: float) -> dict[str, float]:
    """Packets, bytes and duration; empty where capinfos refuses the file."""
    done = run(["capinfos", "-TmQ", "-c", "-d", "-u", "-S", str(path)], timeout_s)
    lines = [line.replace('"', "").split(",") for line in done.stdout.strip().splitlines()]
    if done.returncode or len(lines) != 2:
        return {}
    named = dict(zip(*lines, strict=True))
    numbers = {"packets": "Number of packets", "wire_bytes": "Data size (bytes)"}
    reported: dict[str, float] = {
        name: int(named[column]) for name, column in numbers.items() if named.get(column, "").isdigit()
    }
    with contextlib.suppress(KeyError, ValueError):  # "n/a" where no packet has a stamp
        reported["duration_s"] = float(named["Capture duration (seconds)"])
    return reported


def first_of(values: str) -> str:
    return values.partition(",")[0]


def last_of(values: str) -> str:
    return values.rpartition(",")[2]


def by_tshark(path: Path, timeout_s: float) -> dict[str, float]:
    """Return tshark's values and a count of its fields; empty if it refuses."""
    argv = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "occurrence=a", "-d", "udp.port==8472,vxlan"]
    argv += [word for preference in PREFERENCES for word in ("-o", preference)]
    done = run([*argv, *(word for name in FIELDS for word in ("-e", name))], timeout_s)
    if done.returncode not in (0, 2) or (done.returncode and not done.stdout):
        return {}
    counts: Counter[str] = Counter(payload_bytes=0, zero_window_events=0, goodput_bytes=0)
    seen: dict[tuple[str, ...], Union] = defaultdict(Union)
    for line in done.stdout.splitlines():
        row = dict(zip(FIELDS, line.split("\t"), strict=False))
        if row.get("frame.encap_type"):
            _count(row, counts, seen)
    compared = set(counts) - {"first_fragments"}
    if counts["first_fragments"]:  # tshark counts their whole datagrams, or nothing: not what these packets hold
        compared -= {"payload_bytes", "goodput_bytes"}
    return {name: counts[name] for name in compared}


def _count(row: dict[str, str], counts: Counter[str], seen: dict[tuple[str, ...], Union]) -> None:
    protocols = row["frame.protocols"].split(":")
    quoted = next((at for at, name in enumerate(protocols) if name in QUOTING), len(protocols))
    quoted = protocols.index("tcp") + 1 if "tcp" in protocols[:quoted] else quoted
    inner = next((name for name in reversed(protocols[:quoted]) if name in ("tcp", "udp", "ip", "ipv6")), "")
    if quoted < len(protocols) and protocols[quoted] in ("icmp", "icmpv6"):
        return
    counts["zero_window_events"] += bool(row["tcp.analysis.zero_window"])
    if inner in ("tcp", "udp"):
        counts["first_fragments"] += last_of(row["ip.flags.mf"]) in ("1", "True") or "1" in row["ipv6.fraghdr.more"]
    if inner == "udp" and row["udp.length"]:
        lengths = row["udp.length"].split(",")
        length = int(lengths[min(protocols[:quoted].count("udp"), len(lengths)) - 1])
        if not length and row["ipv6.plen"]:  # a jumbogram says 0, and holds what IPv6 has for it (RFC 2675)
            length = int(last_of(row["ipv6.plen"]))
        counts["payload_bytes"] += max(length - 8, 0)
    length = int(first_of(row["tcp.len"]) or 0) if inner == "tcp" else 0
    counts["payload_bytes"] += length
    flags = int(first_of(row["tcp.flags"]) or "0", 16)
    if length and not flags & RST and row["tcp.seq_raw"]:
        sequence = int(first_of(row["tcp.seq_raw"])) + bool(flags & SYN)
        network = [row[name] for name in NETWORKS]
        counts["goodput_bytes"] += seen[first_of(row["tcp.stream"]), first_of(row["tcp.srcport"]), *network].add(
            sequence, length
        )


def by_us(path: Path, timeout_s: float) -> tuple[dict[str, Any] | None, str]:
    """Return (output or None if refused, its sentence). Raise RuntimeError else."""
    argv = [sys.executable, "-m", "analysis", "stats", "--json", str(path)]
    done = subprocess.run(
        argv, capture_output=True, text=True, errors="replace", timeout=timeout_s, check=False, cwd=ROOT
    )
    if done.returncode == 2 and done.stderr.startswith("analysis: "):
        return None, done.stderr.strip()
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-500:] or f"status {done.returncode}")
    reported: dict[str, Any] = json.loads(done.stdout)
    return reported, "; ".join(reported["trust"]["reasons"])


def judged(path: Path, timeout_s: float) -> Outcome | None:
    """Return the comparison of one file; None if no tool can read it."""
    try:
        expected = by_capinfos(path, timeout_s) | by_tshark(path, timeout_s)
        ours, said = by_us(path, timeout_s)
    except (RuntimeError, ValueError, subprocess.TimeoutExpired) as error:
        return Outcome(str(path), "failed", said=str(error)[:500])
    if ours is None:
        return Outcome(str(path), "reported", said=said) if expected.get("packets") else None
    measured, trust = ours["metrics"], ours["trust"]["verdict"]
    differences = {
        name: [measured.get(name, 0), value]
        for name, value in expected.items()
        if abs(measured.get(name, 0) - value) > (DURATION_S if name == "duration_s" else 0)
    }
    stopped = "packets" not in expected and all(ours_has >= value for ours_has, value in differences.values())
    silently = "read on" if stopped else "wrong silently"
    verdict = "equal" if not differences else silently if trust == "good" else "reported"
    return Outcome(str(path), verdict, trust, differences, said)


def distinct(directory: Path) -> Iterator[Path]:
    """Return the files below a directory, each content once."""
    seen: set[bytes] = set()
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        content = hashlib.sha256(path.read_bytes()).digest()
        if content not in seen:
            seen.add(content)
            yield path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--json", type=Path, help="every outcome")
    parser.add_argument("--timeout", type=float, default=120.0, metavar="SECONDS")
    parser.add_argument("--limit", type=int, metavar="FILES")
    parser.add_argument("--jobs", type=int, default=1, metavar="FILES", help="compared at the same time")
    options = parser.parse_args()
    files = list(distinct(options.directory))[: options.limit]
    with ThreadPoolExecutor(options.jobs) as threads:
        judgements = threads.map(lambda path: judged(path, options.timeout), files)
        outcomes = [outcome for outcome in judgements if outcome is not None]
    for outcome in outcomes:
        if outcome.verdict in ("wrong silently", "read on", "failed"):
            print(f"{outcome.verdict}: {outcome.file}: {outcome.differences or outcome.said}")
    totals = Counter(outcome.verdict for outcome in outcomes)
    unequal = Counter(name for outcome in outcomes for name in outcome.differences)
    print(f"{len(outcomes)} captures of {len(files)} files: " + ", ".join(f"{n} {name}" for name, n in totals.items()))
    if unequal:
        print("different: " + ", ".join(f"{name} in {count}" for name, count in unequal.most_common()))
    if options.json:
        options.json.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1))
    return int(bool(totals["wrong silently"] + totals["failed"]))


if __name__ == "__main__":
    sys.exit(main())
