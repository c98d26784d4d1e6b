"""Recording on a host of a real cluster, in the host's memory.

The packets are fetched after the trial, so that the measured program does not share the network with its recording.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from analysis.numbers import size
from workers.agent.process_table import available_memory_bytes
from workers.capture.dumpcap import DEFAULT_SNAP_LENGTH, NOT_PERMITTED, QUIET_S, Capture, CaptureReport, dumpcap_argv
from workers.capture.start import NICENESS, frames_on
from workers.errors import CaptureUnavailable, ClusterUnavailable, LaunchFailed
from workers.hosts.processes import ANSWER_LIMIT_BYTES, Process
from workers.hosts.remote_agent import CHUNK_BYTES, RemoteAgent

PACKETS, MESSAGES = "memory:packets", "memory:messages"
REMOTE_LIMIT_BYTES = 2 << 30


class RemoteCapture(Capture):
    """A recording on another host."""

    grows_here = False

    def __init__(self, agent: RemoteAgent, process: Process, interface: str, baseline: int | None) -> None:
        files = (os.memfd_create("packets"), os.memfd_create("messages"))
        super().__init__(agent, process, interface, files, baseline, REMOTE_LIMIT_BYTES)
        self._host_agent = agent
        self.where = f"on host {agent.host} "
        self._here = False

    @classmethod
    def on_host(
        cls,
        agent: RemoteAgent,
        interface: str,
        capture_filter: str | None,
        *,
        command: Sequence[str],
        snap_length: int = DEFAULT_SNAP_LENGTH,
    ) -> RemoteCapture:
        """Start to record from an interface of the host. Raises CaptureUnavailable."""
        path = agent.search_path()
        try:
            answer, _ = agent.ask("find", program=command[0], path=path, directory="/")
            if answer["found"] is None:
                raise CaptureUnavailable(
                    f"on host {agent.host} {NOT_PERMITTED}"
                    if answer["there"]
                    else f"the program {command[0]} is missing on host {agent.host}"
                )
            baseline = None if capture_filter else frames_on(agent, interface)
            process = agent.spawn(
                [*command, *dumpcap_argv("", interface, capture_filter, snap_length, REMOTE_LIMIT_BYTES)[1:]],
                environment={"PATH": path, "LANG": "C.UTF-8"},
                directory=Path("/"),
                files=(os.devnull, PACKETS, MESSAGES),
                niceness=NICENESS,
            )
        except (LaunchFailed, ClusterUnavailable, OSError) as error:
            raise CaptureUnavailable(str(error)) from error
        return cls(agent, process, interface, baseline)

    def stop(self, quiet_s: float = QUIET_S) -> CaptureReport:
        """End the recording and fetch the packets. Raises ClusterUnavailable."""
        if not self._here:
            try:
                super().stop(quiet_s)
                for name, local, most in (
                    (PACKETS, self._packets, self._room_bytes()),
                    (MESSAGES, self._messages, ANSWER_LIMIT_BYTES),
                ):
                    for part in self._host_agent.read(name, most=most):
                        os.write(local, part)
            except OSError as error:
                raise ClusterUnavailable(
                    f"The capture cannot be fetched from {self._host_agent.host}: {error.strerror}."
                ) from error
            self._here = True
        return super().stop(quiet_s)

    def _room_bytes(self) -> int:
        """Return the most bytes that are fetched.

        Raises ClusterUnavailable for a longer capture. Captures of several hosts are in this machine's memory together.
        """
        stored, room = self._host_agent.size(PACKETS), available_memory_bytes() * 3 // 4
        if stored > room:
            raise ClusterUnavailable(
                f"The capture of host {self._host_agent.host} has {size(stored)}, and the worker has memory for {size(room)}."
            )
        return min(room, REMOTE_LIMIT_BYTES + CHUNK_BYTES)  # the last packets may exceed the limit

    def _stored_bytes(self) -> int:
        if self._here:
            return super()._stored_bytes()
        try:
            return self._host_agent.size(PACKETS)
        except OSError:
            return 0

    def _read_messages(self) -> str:
        try:
            messages = self._host_agent.read(MESSAGES, most=ANSWER_LIMIT_BYTES)
            return b"".join(messages).decode(errors="replace")
        except (OSError, ClusterUnavailable):
            return ""
