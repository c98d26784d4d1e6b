"""Sample of the machine and its hosts; all counters are cumulative.

`workers.hosts.sampling` computes rates. On the test-bed the hosts share the machine's cores, so a host's CPU time is
the sum over the processes in its network namespace. A process that ends between two samples loses its last fraction of
a second: samples show the course over time; the sums of a trial come from getrusage (`workers.trial.rank_usage`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from experiments.common.processors import core_count
from workers.agent import disturbance, machine, process_table
from workers.agent.contention import Contention, CoreTimes, core_times, ranges
from workers.agent.ranks import Ranks

LOOKS = 3
"""At the processes, until none was waited for between the look at its parent and the look at itself."""


class Counters:
    """Running totals per host.

    `networks` maps inode numbers of network namespaces to host names, `ports` maps host names to their bridge port. Without
    networks everything the agent started is the one host "localhost". ``belongs`` finds processes of the trial that it did not start.
    """

    def __init__(
        self,
        networks: dict[int, str] | None = None,
        ports: dict[str, str] | None = None,
        missing_bytes: int = 0,
        belongs: Callable[[process_table.Entry], bool] | None = None,
    ) -> None:
        self.belongs = belongs
        self.missing_bytes = missing_bytes
        self.networks = networks or {}
        self.ports = ports or {"localhost": "lo"}
        self.totals = {host: [0.0, 0.0] for host in self.ports}
        self.processes: dict[tuple[int, int], tuple[str, float, float]] = {}
        self.ranks = Ranks()
        self.contention = Contention()
        self.ours_s = 0.0
        self.lost_s = 0.0

    def sample(self, beside_s: float = 0.0) -> dict[str, Any]:
        """Return the machine, then each host: CPU and frames so far, memory now.

        ``beside_s``: CPU time so far of instruments that the agent did not start.
        """
        hosts: dict[str, dict[str, Any]] = {
            host: {"memory_bytes": 0, "runnable": 0, "ranks": {}} for host in self.ports
        }
        seen: dict[tuple[int, int], tuple[str, float, float]] = {}
        processes = self._ours()
        statistics = {line.split()[0]: line.split()[1:] for line in Path("/proc/stat").read_text().splitlines()}
        cores, ranks = core_times(statistics), set()
        for entry in processes:
            key = (entry.pid, entry.started_ticks)
            host, user_s, system_s = self.processes.get(key) or (self._host(entry.pid), 0.0, 0.0)
            seen[key] = (host, entry.user_s, entry.system_s)
            if host not in hosts:
                continue
            self.totals[host][0] += entry.user_s - user_s
            self.totals[host][1] += entry.system_s - system_s
            hosts[host]["memory_bytes"] += entry.memory_bytes
            hosts[host]["runnable"] += entry.state == "R"
            if rank := self.ranks.of(key):
                ranks.add(key)
                used = hosts[host]["ranks"]
                used[rank] = used.get(rank, 0.0) + entry.user_s + entry.system_s + entry.waited_for_s
        self.processes = seen
        self.ranks.forget(seen)
        self.contention.look(time.monotonic(), cores, processes, ranks, self.ours_s, beside_s)
        counted = frames(self.missing_bytes)
        return {
            "monotonic_ns": time.monotonic_ns(),
            "machine": {
                **_machine(cores, int(statistics["procs_running"][0])),
                **disturbance.counters(),
                "cpu_ours_s": self.ours_s + beside_s,
                "rank_cores_s": self.contention.cores_s,
                "rank_cores_taken_s": self.contention.taken_s,
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
            processes = process_table.tree(os.getpid(), self.belongs)
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


def _machine(cores: dict[int, CoreTimes], runnable: int) -> dict[str, Any]:
    """Return the machine as far as programs here may use it."""
    times = cores.values()
    interrupts_s = sum(core.interrupts_s for core in times)
    user_s, stolen_s = sum(core.user_s for core in times), sum(core.stolen_s for core in times)
    usable = sorted(os.sched_getaffinity(0))
    return {
        "cpu_user_s": user_s,
        "cpu_system_s": sum(core.programs_s for core in times) - user_s - stolen_s + interrupts_s,
        "cpu_interrupts_s": interrupts_s,
        "cpu_idle_s": sum(core.idle_s for core in times),
        "cpu_stolen_s": stolen_s,
        "cpus": len(usable),
        "cores": core_count(usable),
        "cpu_numbers": ranges(usable),
        "memory_available_bytes": process_table.available_memory_bytes(),
        "runnable": runnable,
        "load_1min": os.getloadavg()[0],
    }
