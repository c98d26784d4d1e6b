"""`python -m workers.keeper SOCKET OWNER`: the keeper of a worker on this machine. Both are inherited descriptors.

SOCKET carries the requests; OWNER is a pidfd of the worker. When either says that the worker is gone the keeper kills
everything and ends. A pidfd and not PR_SET_PDEATHSIG: that signal fires when the *thread* that forked ends, and a
forked child of the worker would keep the socket open; the pidfd means exactly the worker's process.
"""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

from workers.keeper import loop, wire
from workers.keeper.counters import Counters
from workers.testbed import fabric


class LocalKeeper(loop.Keeper):
    """Builds the test-bed's network around itself when told to."""

    def __init__(self, requests: wire.Packets, owner: int) -> None:
        super().__init__(requests, owner)
        self.answers["build"] = self.build

    def build(self, message: wire.Message, _beside: Any) -> loop.Answer:
        try:
            built = fabric.build(fabric.Plan(**message["plan"]))
        except fabric.FabricError as error:
            raise loop.Refusal(str(error)) from error
        self.counters = Counters(built.networks, built.ports, built.missing_bytes)
        return {"facts": built.facts}, ()


def main(socket_number: int, owner: int) -> None:
    """Keep, until there is nobody to keep for."""
    for descriptor in (socket_number, owner):
        os.set_inheritable(descriptor, False)
    loop.keep(LocalKeeper(wire.Packets(socket.socket(fileno=socket_number)), owner))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
