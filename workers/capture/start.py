"""Start of any recording: its files, its program, and their removal on failure."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from workers.errors import CaptureUnavailable, ClusterUnavailable, LaunchFailed
from workers.hosts.processes import Agent, LocalAgent, Process
from workers.hosts.programs import search_path

NICENESS: Final = 10
"""The measured program goes first; the kernel's buffer bridges the wait."""


@dataclass(frozen=True, slots=True)
class Start:
    """Started recorder: process, files of packets and messages, frames before it."""

    process: Process
    files: tuple[int, int]
    baseline: int | None


def start(agent: LocalAgent, argv: Sequence[str], *, counted: str | None = None, output: int | None = None) -> Start:
    """Start a recording program; a failure closes all files.

    `counted`: the interface whose frames are compared with the recording's; `output`: a descriptor that gets the program's standard
    output in place of the file of packets. Raises CaptureUnavailable.
    """
    with contextlib.ExitStack() as opened:
        if output is not None:
            opened.callback(os.close, output)
        try:
            packets, messages = files = (os.memfd_create("packets"), os.memfd_create("messages"))
            for descriptor in files:
                opened.callback(os.close, descriptor)
            baseline = None if counted is None else frames_on(agent, counted)
            with Path(os.devnull).open("rb") as nothing:
                process = agent.spawn(
                    argv,
                    environment={"PATH": search_path(), "LANG": "C.UTF-8"},
                    directory=Path("/"),
                    descriptors=(nothing.fileno(), packets if output is None else output, messages),
                    niceness=NICENESS,
                )
        except (LaunchFailed, ClusterUnavailable, OSError) as error:
            raise CaptureUnavailable(reason(error)) from error
        opened.pop_all()
    return Start(process, files, baseline)


def end_at_once(process: Process) -> None:
    """Kill the recorder; without its agent it has ended already."""
    with contextlib.suppress(ClusterUnavailable):
        process.terminate(0.0)


def frames_on(agent: Agent, interface: str) -> int:
    """Return the frames that an interface has received and sent, by its own counters."""
    frames: int = agent.ask("frames", interface=interface)[0]["frames"]
    return frames


def reason(error: Exception) -> str:
    """Return an error's sentence without the number of an OSError."""
    return str(getattr(error, "strerror", None) or error)
