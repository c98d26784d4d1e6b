"""tcptrace's long report as dictionaries: the independent tool for connections."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

_LINE = re.compile(r"\s+(?P<name>\S.*?):\s+(?P<ab>\S+)(?: \S+)?\s+(?P=name):\s+(?P<ba>\S+)")


def tcptrace(path: Path) -> list[dict[str, tuple[str, str]]]:
    """Return one dictionary per connection, in order of first packets.

    {label: (a->b, b->a)}, and "host": (a, b).
    """
    command = ["tcptrace", "-n", "-l", "-W", "-r", str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, errors="replace", timeout=150)
    connections = []
    for block in re.split(r"^TCP connection \d+:$", done.stdout, flags=re.MULTILINE)[1:]:
        hosts = re.findall(r"^\s+host \w+:\s+(\S+)", block, flags=re.MULTILINE)
        both_ways = {
            match["name"]: (match["ab"], match["ba"]) for match in map(_LINE.match, block.splitlines()) if match
        }
        connections.append({"host": (hosts[0], hosts[1]), **both_ways})
    return connections
