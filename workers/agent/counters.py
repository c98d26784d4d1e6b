"""Sample of the machine and its hosts; all counters are cumulative.

`workers.hosts.sampling` computes rates. On the test-bed the hosts share the machine's cores, so a host's CPU time is
the sum over the processes in its network namespace. A process that ends between two samples loses its last fraction of
a second: samples show the course over time; the sums of a trial come from getrusage (`workers.trial.rank_usage`).
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from workers.agent import disturbance, machine, process_table
from workers.agent.ranks import Ranks

LOOKS = 3
"""At the processes, until none was waited for between the look at its parent and the look at itself."""


class Counters:
    """Running totals per host.

    `networks` maps inode numbers of network namespaces to host names, `ports` maps host names to their bridge port. Without
    networks everything the agent started is the one host "localhost".
    """

    def __init__(
        self, networks: dict[int, str] | None = None, ports: dict[str, str] | None = None, missing_bytes: int = 0
    ) -> None:
        self.missing_bytes = missing_bytes
        self.networks = networks or {}
        self.ports = ports or {"localhost": "lo"}
        self.totals = {host: [0.0, 0.0] for host in self.ports}
        self.known: dict[tuple[int, int], tuple[str, float, float]] = {}
        self.ranks = Ranks()
        self.ours_s = 0.0
        self.lost_s = 0.0

    def sample(self) -> dict[str, Any]:
        """Return the machine, then each host: CPU and frames so far, memory now."""
        hosts: dict[str, dict[str, Any]] = {
            host: {"memory_bytes": 0, "runnable": 0, "ranks": {}} for host in self.ports
        }
        seen: dict[tuple[int, int], tuple[str, float, float]] = {}
        for entry in self._ours():
            key = (entry.pid, entry.started_ticks)
            host, user_s, system_s = self.known.get(key) or (self._host(entry.pid), 0.0, 0.0)
            seen[key] = (host, entry.user_s, entry.system_s)
            if host not in hosts:
                continue
            self.totals[host][0] += entry.user_s - user_s
            self.totals[host][1] += entry.system_s - system_s
            hosts[host]["memory_bytes"] += entry.memory_bytes
            hosts[host]["runnable"] += entry.state == "R"
            if rank := self.ranks.of(key):
                used = hosts[host]["ranks"]
                used[rank] = used.get(rank, 0.0) + entry.user_s + entry.system_s + entry.waited_for_s
        self.known = seen
        self.ranks.forget(seen)
        counted = frames(self.missing_bytes)
        return {
            "monotonic_ns": time.monotonic_ns(),
            "machine": {
                **_machine(),
                **disturbance.counters(),
                "cpu_ours_s": self.ours_s,
                "memory_kills": machine.memory_kills(),
            },
            "hosts": [
                {
                    "host": host,
                    "cpu_user_s": self.totals[host][0],
                    "cpu_system_s": self.totals[host][1],
                    **hosts[host],
                    **counted.get(port, {}),
                }
                for host, port in self.ports.items()
            ],
        }

    def _ours(self) -> list[process_table.Entry]:
        """Return the processes below the agent, and bring their total up to date.

        Parents are read before their children: a child that is waited for meanwhile is missed, and never counted twice. What
        the last look misses is lost: of children whose parent ignores SIGCHLD the kernel records no time.
        """
        for _ in range(LOOKS):
            agent_s = sum(os.times()[:4])
            processes = process_table.tree(os.getpid())
            total_s = (
                self.lost_s + agent_s + sum(entry.user_s + entry.system_s + entry.waited_for_s for entry in processes)
            )
            if total_s >= self.ours_s:
                break
        self.lost_s += max(0.0, self.ours_s - total_s)
        self.ours_s = max(self.ours_s, total_s)
        return processes

    def _host(self, pid: int) -> str:
        if not self.networks:
            return "localhost"
        try:
            inode = os.stat(f"/proc/{pid}/ns/net").st_ino  # noqa: PTH116 - a hot path
        except OSError:
            return ""
        return self.networks.get(inode, "")


def frames(missing_bytes: int = 0) -> dict[str, dict[str, int]]:
    """Return the counters of every interface, as the host behind the port sees them.

    Frames that a bridge port receives its host has sent. `missing_bytes` per frame are added: veth in NAPI mode does not count
    the Ethernet header.
    """
    counted = {}
    for line in Path("/proc/net/dev").read_text().splitlines()[2:]:
        name, _, rest = line.partition(":")
        values = [int(value) for value in rest.split()]
        counted[name.strip()] = {
            "tx_bytes": values[0] + missing_bytes * values[1],
            "tx_packets": values[1],
            "rx_bytes": values[8] + missing_bytes * values[9],
            "rx_packets": values[9],
            "drops": values[3] + values[11],
        }
    return counted


def _machine() -> dict[str, Any]:
    statistics = {line.split()[0]: line.split()[1:] for line in Path("/proc/stat").read_text().splitlines()}
    user, nice, system, idle, waiting, *interrupts = (
        int(value) / process_table.TICKS_PER_SECOND for value in statistics["cpu"]
    )
    stolen = interrupts[2] if len(interrupts) > 2 else 0.0
    return {
        "cpu_user_s": user + nice,
        "cpu_system_s": system + sum(interrupts[:2]),
        "cpu_interrupts_s": sum(interrupts[:2]),
        "cpu_idle_s": idle + waiting,
        "cpu_stolen_s": stolen,
        "cores": len(os.sched_getaffinity(0)),
        "memory_available_bytes": process_table.available_memory_bytes(),
        "runnable": int(statistics["procs_running"][0]),
        "load_1min": os.getloadavg()[0],
    }
