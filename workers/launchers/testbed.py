"""The virtual test-bed: hosts n1 ... nN on one bridge of this machine."""

from __future__ import annotations

import os
from typing import Any

from workers.errors import ClusterUnavailable
from workers.launchers import openmpi
from workers.launchers.base import Job, Launcher, Link, MachineSession, Session, Tell, say_nothing
from workers.processes import LocalKeeper
from workers.testbed import commands, fabric
from workers.testbed.probe import probe, unshare_argv


class TestbedSession(MachineSession):
    """The fabric while it lives."""

    first_host = "n1"
    capture_interface = commands.BRIDGE
    interface = commands.HOST_INTERFACE
    temporary = fabric.TEMPORARY


class TestbedLauncher(Launcher):
    """mpirun in n1's namespace; a remote shell that enters the other hosts'."""

    kind = "testbed"

    def probe(self) -> list[str]:
        return probe()

    def host_names(self, host_count: int) -> tuple[str, ...]:
        return commands.host_names(host_count)

    def argv(self, job: Job) -> list[str]:
        remote = {"plm": "rsh", "plm_rsh_agent": str(fabric.REMOTE_SHELL), "plm_rsh_no_tree_spawn": "1"}
        return [
            *("mpirun", "--allow-run-as-root"),
            *openmpi.placement(job),
            *openmpi.shared_cores(),
            *openmpi.parameters({**remote, **openmpi.transport(job, commands.HOST_INTERFACE)}),
            *openmpi.exports(job),
            *job.wrapped_program(),
        ]

    def open(self, *, host_count: int, link: Link, tell: Tell = say_nothing) -> Session:
        if problems := [*self.probe(), *unsupported(link, host_count)]:
            raise ClusterUnavailable(" ".join(problems))
        plan = commands.Plan(
            hosts=self.host_names(host_count),
            mtu=link.mtu or commands.DEFAULT_MTU,
            bandwidth_bps=link.bandwidth_bps,
        )
        keeper = LocalKeeper(unshare_argv())
        try:
            answer, _ = keeper.ask(
                "build", plan={"hosts": plan.hosts, "mtu": plan.mtu, "bandwidth_bps": plan.bandwidth_bps}
            )
        except OSError as error:
            keeper.close()
            raise ClusterUnavailable(f"The virtual network cannot be built: {error.strerror}.") from error
        except BaseException:
            keeper.close()
            raise
        return TestbedSession(self, keeper, plan.hosts, facts(plan, answer["facts"]))


def unsupported(link: Link, host_count: int) -> list[str]:
    """What of the link this test-bed cannot make."""
    problems = []
    if link.delay_s or link.jitter_s or link.loss:
        problems.append("This test-bed shapes bandwidth and MTU only; delay, jitter and loss need an emulator.")
    if not 1 <= host_count <= commands.HOST_LIMIT:
        problems.append(f"A test-bed has 1 to {commands.HOST_LIMIT} hosts, not {host_count}.")
    return problems


def facts(plan: commands.Plan, built: dict[str, Any]) -> dict[str, Any]:
    """What a page must say beside every elapsed time of a virtual cluster."""
    cores = len(os.sched_getaffinity(0))
    count = len(plan.hosts)
    return {
        "hosts": list(plan.hosts),
        "cores": cores,
        "oversubscription": f"{count} virtual host{'s'[: count > 1]} on {cores} core{'s'[: cores > 1]}",
        "back_end": "bridge + veth" + (" + tbf" if plan.bandwidth_bps is not None else ""),
        "interface": commands.HOST_INTERFACE,
        "capture_interface": commands.BRIDGE,
        "link": {"bandwidth_bps": plan.bandwidth_bps, "mtu": plan.mtu},
        **built,
    }
