"""Cost of reading counters: `python -m benchmarks.counters [SECONDS]`.

Trees of a host with two sockets, 128 hardware threads, two InfiniBand ports and four interfaces: files of a disk cost as much to open
as those of sysfs, whose drivers add their own time. Prints milliseconds per read of each source and the CPU time at 1 Hz.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.workers.hosts.trees import rapl, write
from workers.hosts.counters.__main__ import recorded

_PORT_COUNTERS: Final = (
    *("port_xmit_data", "port_rcv_data", "port_xmit_packets", "port_rcv_packets", "port_xmit_wait", "symbol_error"),
    *("link_error_recovery", "link_downed", "port_rcv_errors", "port_xmit_discards"),
)


def host(root: Path) -> Path:
    """Write the trees of a large host."""
    files: dict[str, object] = {}
    for socket in range(2):
        files |= rapl(f"{socket}", f"package-{socket}", 0) | rapl(f"{socket}:0", "dram", 0)
        port = f"sys/class/infiniband/mlx5_{socket}/ports/1"
        files |= {f"{port}/counters/{name}": 0 for name in _PORT_COUNTERS}
        files |= {
            f"{port}/hw_counters/{name}": 0 for name in ("packet_seq_err", "local_ack_timeout_err", "rp_cnp_handled")
        }
        files |= {
            f"{port}/state": "4: ACTIVE",
            f"{port}/rate": "200 Gb/sec (4X HDR)",
            f"{port}/link_layer": "InfiniBand",
        }
        files[f"sys/class/hwmon/hwmon{socket}/name"] = "coretemp"
        files |= {f"sys/class/hwmon/hwmon{socket}/temp{core}_input": 60_000 for core in range(1, 33)}
    for number in range(4):
        interface = f"sys/class/net/eth{number}"
        counts = ("bytes", "packets", "dropped", "errors")
        files |= {f"{interface}/statistics/{side}_{what}": 0 for side in ("rx", "tx") for what in counts}
        files |= {f"{interface}/{name}": 1 for name in ("type", "carrier", "speed", "device/vendor")}
    for cpu in range(128):
        folder = f"sys/devices/system/cpu/cpu{cpu}"
        files[f"{folder}/cpufreq/scaling_cur_freq"] = 3_000_000
        files[f"{folder}/thermal_throttle/core_throttle_count"] = 0
        files[f"{folder}/topology/thread_siblings_list"] = f"{cpu % 64},{cpu % 64 + 64}"
    mounts = "device srv:/home mounted on /home with fstype nfs4 statvers=1.1\n\tbytes:\t1 2 3 4 5 6 7 8\n"
    return write(root, {**files, "proc/self/mountstats": 20 * mounts})


def main(seconds: float) -> None:
    """Print reads and CPU time."""
    with tempfile.TemporaryDirectory() as folder:
        sources, cost = recorded(str(host(Path(folder))), seconds)
    for source in sources.values():
        if source["state"] == "ready":
            sys.stdout.write(f"{source['title']}: {source['read_s'] * 1e3:.2f} ms per read, {source['details']}\n")
    start_ms = cost["start_and_end_s"] * 1e3
    sys.stdout.write(
        f"All at 1 Hz: {cost['share_of_a_core']:.2%} of one core; start, first and last read: {start_ms:.0f} ms\n"
    )


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 30.0)
