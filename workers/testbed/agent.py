"""Agent of a worker here: `python -m workers.testbed.agent SOCKET OWNER`.

Both arguments are inherited descriptors: SOCKET carries the requests; OWNER is a pidfd of the worker. When either shows that
the worker is gone, the agent kills everything and ends. A pidfd and not PR_SET_PDEATHSIG: that signal comes when the *thread*
that forked ends, and a forked child of the worker would keep the socket open; the pidfd means exactly the worker's process.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any

from workers.agent import process_table, rpc, sandbox, spawn, supervisor
from workers.agent.counters import Counters
from workers.testbed import fabric
from workers.testbed.rsh_server import RshServer

STREAMS = 3


class LocalSupervisor(supervisor.Supervisor):
    """Supervisor that builds the test-bed's network and runs jobs in sandboxes."""

    def __init__(self, requests: rpc.Packets, owner: int) -> None:
        super().__init__(requests, owner)
        self.answers["build"] = self.build
        self.answers["network"] = self.network
        self.answers["loopback"] = self.loopback
        self.answers["use"] = self.use
        self.answers["connections"] = self.connections
        self.sandbox: sandbox.Sandbox | None = None
        self.sandboxes: dict[int, sandbox.Sandbox] = {}
        self.refused: dict[str, int] = {}
        self.job: spawn.Order | None = None
        self.rsh_server: RshServer | None = None
        self.plan = fabric.Plan(())
        self.built = fabric.Built()
        self.dead_emulators: list[str] = []

    def build(self, message: rpc.Message, _attachment: Any) -> supervisor.Answer:
        self.plan = fabric.Plan(**message["plan"])
        try:
            self.built = fabric.build(self.plan, message["relay"])
        except fabric.FabricError as error:
            raise supervisor.Refusal(str(error)) from error
        self.counters = Counters(self.built.networks, self.built.ports, self.built.missing_bytes)
        for pid in self.built.emulators:  # tools: the sweep after a job spares them
            self.children[pid] = supervisor.Child(pid, job=False, started_ns=time.monotonic_ns())
        self.renew_rsh_server()
        return {"facts": self.built.facts}, ()

    def renew_rsh_server(self) -> None:
        if self.rsh_server is not None:
            self.rsh_server.close()
        self.rsh_server = RshServer(fabric.RSH_SOCKET, self.selector, self.start_elsewhere)

    def loopback(self, _message: rpc.Message, _attachment: Any) -> supervisor.Answer:
        """Switch on the loopback interface."""
        fabric.switch_on_loopback()
        return {}, ()

    def network(self, message: rpc.Message, _attachment: Any) -> supervisor.Answer:
        """Return dead emulators; with `settings`, also changed kernel settings."""
        changed: list[str] = []
        if message["settings"]:
            try:
                now = fabric.settings(self.plan)
            except fabric.FabricError as error:
                raise supervisor.Refusal(str(error)) from error
            changed = [location for location, built in self.built.settings.items() if now.get(location) != built]
        return {"dead": self.dead_emulators, "changed": changed}, ()

    def spawn(self, message: rpc.Message, descriptors: list[int]) -> supervisor.Answer:
        """Start a program; a job with a `sandbox` gets one for its directories."""
        if "sandbox" not in message:
            return super().spawn(message, descriptors)
        self.sandbox = made = sandbox.Sandbox(sandbox.SandboxPlan(**message["sandbox"]), descriptors[STREAMS:])
        self.sandboxes[made.pid] = made
        self.children[made.pid] = supervisor.Child(made.pid, job=False, started_ns=time.monotonic_ns())
        order = spawn.Order.from_message(message, descriptors[:STREAMS])
        order.sandbox = made
        order.environment |= made.variables()
        self.job = order
        try:
            return self.start(order, message)
        except OSError:
            made.end()
            raise

    def start_elsewhere(self, host: str, command: str, streams: list[int]) -> int:
        """Start a command of the running job on another host. Raises OSError."""
        if self.job is None or host not in self.plan.hosts:
            raise OSError(errno.EHOSTUNREACH, "there is no such host")
        argv = ["/bin/sh", "-c", command]
        return spawn.start(dataclasses.replace(self.job, argv=argv, host=host, descriptors=streams))

    def adopted_ended(self, pid: int, status: int) -> None:
        if self.rsh_server is not None:
            self.rsh_server.ended(pid, status)

    def connections(self, _message: rpc.Message, _attachment: Any) -> supervisor.Answer:
        """Return the most connections that ended jobs left in the network of a host."""
        return {"most": fabric.connections(self.plan)}, ()

    def use(self, _message: rpc.Message, _attachment: Any) -> supervisor.Answer:
        """Return the job's resources, and refusals of the sandbox's control group."""
        self._note_refusals()
        tools = frozenset(child.pid for child in self.children.values() if not child.job)
        members = process_table.descendants(os.getpid(), tools)
        return {
            "processes": sum(member.threads for member in members),
            "memory_bytes": self._memory_bytes([member.pid for member in members]),
            "refused": self.refused,
        }, ()

    def _memory_bytes(self, pids: Sequence[int]) -> int:
        """Return the memory of the job and its temporary files; shared pages once."""
        private = sum(map(process_table.private_memory_bytes, pids))
        if self.sandbox is None:
            return private
        scratch = self.sandbox.scratch_use_bytes()
        shared = max(
            scratch, sum(map(process_table.shared_memory_bytes, pids))
        )  # a page counts for each of its processes
        if private + shared > self.sandbox.limits["memory_bytes"]:
            shared = max(scratch, sum(process_table.shared_memory_bytes(pid, proportional=True) for pid in pids))
        return private + shared

    def _note_refusals(self) -> None:
        if self.sandbox is not None and self.sandbox.group is not None and self.sandbox.pid in self.sandboxes:
            self.refused = self.sandbox.group.events()

    def overdue(self, child: supervisor.Child) -> None:
        """End the sandbox: its first process ends everything, however fast it forks."""
        if child.job and self.sandbox is not None:
            self.sandbox.end()

    def tell(self, child: supervisor.Child) -> None:
        """Report programs only: the worker did not start emulators and sandboxes."""
        if child.job and self.sandbox is not None:
            self._note_refusals()
            self.sandbox.end()
            if self.rsh_server is not None:  # closing its clients can take time, which is to be of this job
                self.renew_rsh_server()
        if (ended := self.sandboxes.pop(child.pid, None)) is not None:
            ended.end()
            if ended.group is not None:
                ended.group.remove()
            return
        name = self.built.emulators.get(child.pid)
        if name is None:
            super().tell(child)
            return
        how = f"killed by signal {-child.status}" if child.status and child.status < 0 else f"status {child.status}"
        self.dead_emulators.append(f"{name} ({how})")


def main(socket_number: int, owner: int) -> None:
    """Serve until the worker is gone."""
    for descriptor in (socket_number, owner):
        os.set_inheritable(descriptor, False)
    supervisor.supervise(LocalSupervisor(rpc.Packets(socket.socket(fileno=socket_number)), owner))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
