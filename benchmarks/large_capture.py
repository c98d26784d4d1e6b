"""Analysis of a capture larger than memory: speed, memory and progress.

    python -m benchmarks.large_capture [--gb 20] [--at DIRECTORY]

Records LAMMPS on four ranks, keeps the 66 bytes of each packet's headers, and writes its connections again and again, sequence
numbers, acknowledgements and time going on, so that nothing is sent twice but what the recording repeats. The file is removed afterwards.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

import analysis
from analysis.packets import FIN, IPV4, REVERSE, RST, SYN, TCP
from tests.analysis.conftest import MPI_COMMAND, WATER
from tests.analysis.recordings.recording import record

HEADERS = 66
"""Ethernet, IPv4 without options, and TCP with time stamps."""
RECORD = np.dtype([
    ("seconds", "<u4"), ("ns", "<u4"), ("captured", "<u4"), ("original", "<u4"), ("before", "V38"), ("seq", ">u4"), ("ack", ">u4"),
    ("behind", f"V{HEADERS - 46}"),
])  # fmt: skip
FILE_HEADER = np.array([0xA1B23C4D, 0x00040002, 0, 0, HEADERS, 1], "<u4").tobytes()
_MEASURE = """
import json, resource, sys, time
from pathlib import Path
import analysis
analysis.analyse(sys.argv[2])  # loads the kernels: 0.2 s, however long the capture is
reports, before = [], resource.getrusage(resource.RUSAGE_SELF)
begin = time.monotonic()
result = analysis.analyse(sys.argv[1], progress=lambda done, of: reports.append((done, of, time.monotonic())))
wall_s = time.monotonic() - begin
used = resource.getrusage(resource.RUSAGE_SELF)
steps = [later[2] - earlier[2] for earlier, later in zip(reports, reports[1:])]
status = Path("/proc/self/status").read_text()
print(json.dumps({
    "wall_s": wall_s, "cpu_s": used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime,
    "system_s": used.ru_stime - before.ru_stime,
    "resident_mb": int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) * 1024 / 1e6,
    "reports": len(reports), "rising": [step[0] for step in reports] == sorted(step[0] for step in reports),
    "last_share": reports[-1][0] / reports[-1][1], "longest_silence_s": max(steps), "trust": result.trust.verdict,
    **{name: result.metrics[name] for name in ("packets", "wire_bytes", "connections", "retransmitted_segments")},
}))
"""


def steady_packets(
    path: Path,
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return records of packets within connections, and seq and ack per turn."""
    table = analysis.read_capture(path)
    content = np.fromfile(path, np.uint8)[24:]
    heads = np.flatnonzero((table.kind & (TCP | IPV4)) == TCP | IPV4)
    heads = heads[(table.tcp_flags[heads] & SYN == 0) & (table.cap_len[heads] == HEADERS)]
    ending = np.flatnonzero(table.tcp_flags[heads] & (FIN | RST))
    heads = heads[: ending[0] if len(ending) else len(heads)]
    places = np.concatenate([[0], np.cumsum(16 + table.cap_len.astype(np.int64))])[heads]
    rows = content[places[:, None] + np.arange(RECORD.itemsize)].view(RECORD).ravel()
    way = 2 * table.flow[heads].astype(np.int64) + (table.kind[heads] & REVERSE > 0)
    seq, payload = table.seq[heads].astype(np.int64), table.payload[heads].astype(np.int64)
    moved = np.zeros(int(way.max()) + 2, np.int64)
    for side in np.unique(way):
        ours = way == side
        offset = (seq[ours] - seq[ours][0] + 2**31) % 2**32 - 2**31
        moved[side] = (offset + payload[ours]).max() - offset.min()
    return rows.copy(), table.time_ns[heads] - table.time_ns[heads][0], moved[way], moved[way ^ 1]


def write(path: Path, model: Path, size_bytes: int) -> int:
    """Returns the number of packets."""
    rows, time_ns, seq_step, ack_step = steady_packets(model)
    seq, ack = rows["seq"].astype(np.int64), rows["ack"].astype(np.int64)
    period_ns, packets, turn = int(time_ns[-1]) + 1_000_000, 0, 0
    with path.open("wb") as file:
        file.write(FILE_HEADER)
        while file.tell() < size_bytes:
            rows["seconds"], rows["ns"] = np.divmod(10**18 + turn * period_ns + time_ns, 10**9)
            rows["seq"], rows["ack"] = (seq + turn * seq_step) % 2**32, (ack + turn * ack_step) % 2**32
            file.write(rows.tobytes())
            packets, turn = packets + len(rows), turn + 1
    return packets


def modelled(place: Path) -> Path:
    """A recording whose packets are cut to their headers."""
    for name in ("in.water", "water.mol"):
        shutil.copy(WATER / name, place / name)
    record(
        place / "mpi.pcapng",
        ["sh", "-c", 'cd "$0" && exec "$@" > output 2>&1', str(place), *MPI_COMMAND],
        snap_length=HEADERS,
    )
    subprocess.run(["editcap", "-F", "nsecpcap", str(place / "mpi.pcapng"), str(place / "mpi.pcap")], check=True)
    return place / "mpi.pcap"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gb", type=float, default=20)
    parser.add_argument("--at", type=Path, help="where the file is written; it needs so much room")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.at) as temporary:
        place = Path(temporary)
        model = modelled(place)
        written = write(place / "large.pcap", model, int(options.gb * 1e9))
        size = (place / "large.pcap").stat().st_size
        done = subprocess.run(
            [sys.executable, "-c", _MEASURE, str(place / "large.pcap"), str(model)],
            capture_output=True,
            check=True,
            text=True,
        )
    result = json.loads(done.stdout)
    assert result["packets"] == written, (result["packets"], written)
    packets, wall_s, cpu_s = result["packets"], result["wall_s"], result["cpu_s"]
    again = result["retransmitted_segments"]
    print(
        f"{packets:,.0f} packets, {size / 1e9:.2f} GB, {result['connections']:.0f} connections, {again:.0f} sent again"
    )
    print(f"{wall_s:.1f} s: {packets / wall_s / 1e6:.2f} million packets/s, {size / wall_s / 1e6:.0f} MB/s")
    print(
        f"{cpu_s:.1f} s of CPU ({result['system_s']:.1f} of the system): {packets / cpu_s / 1e6:.2f} million packets per second of CPU"
    )
    print(f"{result['resident_mb']:.0f} MB resident, trust {result['trust']}")
    print(
        f"progress reported {result['reports']} times, {'rising' if result['rising'] else 'NOT RISING'}, to {result['last_share']:.4f}; "
        f"longest silence {result['longest_silence_s']:.2f} s"
    )


if __name__ == "__main__":
    main()
