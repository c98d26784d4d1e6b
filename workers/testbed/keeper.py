"""`python -m workers.testbed.keeper SOCKET OWNER`: the keeper of a worker on this machine. Both are inherited descriptors.

SOCKET carries the requests; OWNER is a pidfd of the worker. When either says that the worker is gone the keeper kills
everything and ends. A pidfd and not PR_SET_PDEATHSIG: that signal fires when the *thread* that forked ends, and a
forked child of the worker would keep the socket open; the pidfd means exactly the worker's process.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from typing import Any

from workers.keeper import loop, wire
from workers.keeper.counters import Counters
from workers.testbed import fabric


class LocalKeeper(loop.Keeper):
    """Builds the test-bed's network around itself when told to."""

    def __init__(self, requests: wire.Packets, owner: int) -> None:
        super().__init__(requests, owner)
        self.answers["build"] = self.build
        self.answers["network"] = self.network
        self.plan = fabric.Plan(())
        self.built = fabric.Built()
        self.dead_emulators: list[str] = []

    def build(self, message: wire.Message, _beside: Any) -> loop.Answer:
        self.plan = fabric.Plan(**message["plan"])
        try:
            self.built = fabric.build(self.plan)
        except fabric.FabricError as error:
            raise loop.Refusal(str(error)) from error
        self.counters = Counters(self.built.networks, self.built.ports, self.built.missing_bytes)
        for pid in self.built.emulators:  # tools: the sweep after a job spares them
            self.children[pid] = loop.Child(pid, job=False, started_ns=time.monotonic_ns())
        return {"facts": self.built.facts}, ()

    def network(self, message: wire.Message, _beside: Any) -> loop.Answer:
        """Dead emulators; with `settings`, also the places where the kernel's settings are not as they were built."""
        changed: list[str] = []
        if message["settings"]:
            try:
                now = fabric.settings(self.plan)
            except fabric.FabricError as error:
                raise loop.Refusal(str(error)) from error
            changed = [place for place, told in self.built.settings.items() if now.get(place) != told]
        return {"dead": self.dead_emulators, "changed": changed}, ()

    def tell(self, child: loop.Child) -> None:
        """The worker did not start the emulators and does not wait for them; it asks."""
        name = self.built.emulators.get(child.pid)
        if name is None:
            super().tell(child)
            return
        how = f"killed by signal {-child.status}" if child.status and child.status < 0 else f"status {child.status}"
        self.dead_emulators.append(f"{name} ({how})")


def main(socket_number: int, owner: int) -> None:
    """Keep, until there is nobody to keep for."""
    for descriptor in (socket_number, owner):
        os.set_inheritable(descriptor, False)
    loop.keep(LocalKeeper(wire.Packets(socket.socket(fileno=socket_number)), owner))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
